/** Decides what to do with a member of an archive, which comes from others: outside paths are refused. Pure. */
import { shorten } from '../../schema/words/nearest-word.ts';

const LONGEST_QUOTE = 100;

export interface ArchiveMember {
  readonly name: string;
  readonly type: string | undefined;
  readonly sizeBytes: number;
  readonly linkName?: string | undefined;
}

/** Bytes of all files together, and the number of files, directories and links. */
export interface UnpackLimits {
  readonly bytes: number;
  readonly members: number;
}

export type MemberVerdict =
  /** `path`: relative to the directory into which the archive is unpacked. */
  | { readonly kind: 'file' | 'directory'; readonly path: string }
  /** `target`: another member, which gets a hard link. Symbolic links are never created. */
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'skip' }
  /** `message` completes the sentence "The archive has …". */
  | { readonly kind: 'refuse'; readonly message: string };

/** The list of unpacked files, beside them. No member may have its name. */
export const FILE_LIST = '.svc-files.json';

const MIB = 2 ** 20;
/** Weights hardly compress. Files of zeros do, such as the voices of a test model. */
const MOST_TIMES = 8;
const LEAST_LIMIT_BYTES = 256 * MIB;
/** The largest known speech model has some 500, most of them dictionaries. */
const MAX_MEMBERS = 20_000;
const MAX_PARTS = 16;
/** Limit of common file systems. */
const MAX_PART_BYTES = 255;
const MAX_PATH_BYTES = 1000;

export interface ArchiveSize {
  readonly sizeBytes: number;
  /** Stated by the source. */
  readonly unpackedBytes?: number | undefined;
}

export const unpackLimits = ({ sizeBytes, unpackedBytes }: ArchiveSize): UnpackLimits => ({
  bytes: unpackedBytes ?? MOST_TIMES * sizeBytes + LEAST_LIMIT_BYTES,
  members: MAX_MEMBERS,
});

/** Files are hardly ever smaller than their archive. */
export const leastUnpackedBytes = ({ sizeBytes, unpackedBytes = sizeBytes }: ArchiveSize): number => unpackedBytes;

export function judgeMember(member: ArchiveMember, soFar: UnpackLimits, limits: UnpackLimits): MemberVerdict {
  const name = quote(member.name);
  if (soFar.members >= limits.members) return refuse(`more than ${limits.members} files`);
  const parts = partsOf(member.name);
  if (parts === undefined) return refuse(`a file with the name ${name}, which leads out of its directory or cannot be a file name`);
  // Attribute files of macOS, and the root directory.
  if (parts.length === 0 || parts.some((part) => part.startsWith('._'))) return { kind: 'skip' };
  if (parts.at(-1) === FILE_LIST) return refuse(`a file with the name ${name}, which is kept for the list of its files`);
  const path = parts.join('/');
  switch (member.type) {
    case 'directory':
      return { kind: 'directory', path };
    case 'file':
    case undefined:
      if (soFar.bytes + member.sizeBytes > limits.bytes) return refuse(`more than ${limits.bytes} bytes of files`);
      return { kind: 'file', path };
    case 'symlink':
    case 'link':
      return judgeLink(member, path);
    default:
      return refuse(`${name}, which is neither a file nor a directory but a ${quote(member.type)}`);
  }
}

function judgeLink({ name, type, linkName = '' }: ArchiveMember, path: string): MemberVerdict {
  const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
  // A hard link names a member; a symbolic link is relative to its directory.
  const parts = linkName.startsWith('/') ? undefined : resolveParts(type === 'link' || parent === '' ? linkName : `${parent}/${linkName}`);
  if (parts === undefined || parts.length === 0)
    return refuse(`the link ${quote(name)} to ${quote(linkName)}, which leads out of its directory`);
  return { kind: 'link', path, target: parts.join('/') };
}

/** Undefined for a forbidden name. A name may begin with `./` and end with `/`. */
function partsOf(name: string): readonly string[] | undefined {
  if (name.startsWith('/')) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return isSafe(parts) ? parts : undefined;
}

/** Resolves `..`; undefined outside the archive. */
function resolveParts(name: string): readonly string[] | undefined {
  const parts: string[] = [];
  for (const part of name.split('/')) {
    if (part === '..' && parts.pop() === undefined) return undefined;
    if (part !== '' && part !== '.' && part !== '..') parts.push(part);
  }
  return isSafe(parts) ? parts : undefined;
}

function isSafe(parts: readonly string[]): boolean {
  const bytes = (text: string): number => new TextEncoder().encode(text).length;
  return (
    parts.length <= MAX_PARTS &&
    bytes(parts.join('/')) <= MAX_PATH_BYTES &&
    parts.every((part) => part !== '..' && !/[\p{C}\\]/u.test(part) && bytes(part) <= MAX_PART_BYTES)
  );
}

const refuse = (message: string): MemberVerdict => ({ kind: 'refuse', message });

/** A name from an archive may contain anything. */
const quote = (text: string): string => `"${shorten(text.replaceAll(/[\p{C}"\\]/gu, '?'), LONGEST_QUOTE)}"`;
