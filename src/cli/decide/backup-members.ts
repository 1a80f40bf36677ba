/** What a backup contains, and what a restore accepts. Pure. */
import { z } from 'zod';
import { judgeMember, type ArchiveMember, type UnpackLimits } from '../../models/decide/judge-member.ts';

/** Raised when an older version would restore an archive wrongly. */
export const BACKUP_FORMAT = 1;
/** The first member. */
export const BACKUP_MANIFEST = 'svc-backup.json';

const BackupManifest = z.object({
  format: z.int().min(1),
  version: z.string(),
  created_at: z.string(),
  /** Models of the store, which the archive does not contain. */
  models: z.array(z.string()),
});
export type BackupManifest = z.output<typeof BackupManifest>;

/**
 * Entries of the state directory. The others follow from these (status, last good texts), belong to this machine
 * (runtime, processes, logs), or can be had again (models, images, engines, prompts). None is a program. A catalogue is
 * checked against its signature wherever it is read.
 */
const STATE_ENTRIES = [
  'slots',
  'revisions',
  'timelines',
  'voices',
  'learned',
  'token-use.json',
  'accepted-files.json',
  'catalogue.toml',
  'catalogue.toml.previous',
];

/** Thousands of slots have some MB, and thousands of voices some GB. */
export const BACKUP_LIMITS: UnpackLimits = { bytes: 4 * 2 ** 30, members: 100_000 };
/** Files are in memory as a whole. The largest ones are recordings and timelines. */
export const BACKUP_FILE_BYTES = 256 * 2 ** 20;

export type BackupPlace = 'config' | 'state';

type BackupVerdict =
  | { readonly kind: 'manifest' }
  /** `path`: relative to the directory of the place. */
  | { readonly kind: 'file'; readonly place: BackupPlace; readonly path: string }
  /** `message` completes the sentence "The archive has …". */
  | { readonly kind: 'refuse'; readonly message: string };

/** Names of locks, and of files being written, begin with a dot. */
export function isBackedUp(place: BackupPlace, parts: readonly string[]): boolean {
  if (parts.length === 0 || parts.some((part) => part.startsWith('.'))) return false;
  return place === 'config' || STATE_ENTRIES.some((entry) => entry === parts[0]);
}

/** Accepts only regular files of the limited size that a backup contains. */
export function judgeBackupMember(member: ArchiveMember, soFar: UnpackLimits): BackupVerdict {
  const judged = judgeMember(member, soFar, BACKUP_LIMITS);
  if (judged.kind === 'refuse') return judged;
  const name = JSON.stringify(member.name);
  if (judged.kind !== 'file') return { kind: 'refuse', message: `${name}, which is not a regular file` };
  if (member.sizeBytes > BACKUP_FILE_BYTES) return { kind: 'refuse', message: `${name} with more than ${BACKUP_FILE_BYTES} bytes` };
  if (judged.path === BACKUP_MANIFEST) return { kind: 'manifest' };
  const [place, ...parts] = judged.path.split('/');
  if ((place === 'config' || place === 'state') && isBackedUp(place, parts)) return { kind: 'file', place, path: parts.join('/') };
  return { kind: 'refuse', message: `${name}, which no backup contains` };
}

/** Returns why the archive cannot be restored as a text that completes the sentence "The archive has …". */
export function parseManifest(document: unknown): BackupManifest | string {
  const parsed = BackupManifest.safeParse(document).data;
  const { format } = parsed ?? z.object({ format: z.int() }).safeParse(document).data ?? { format: 0 };
  if (format > BACKUP_FORMAT) return `the format ${format}, and this version reads up to ${BACKUP_FORMAT}; restore it with a newer version`;
  return parsed ?? `no valid "${BACKUP_MANIFEST}"`;
}
