/** A port: the repository that declares the configuration of a host, with its status as `/api/source` answers it. */
import { z } from 'zod';
import { SlotName } from '../words/names.ts';

export const SOURCE_REASONS = {
  GitMissing: 'The program `git` is not installed',
  FetchFailed: 'The repository cannot be fetched; the message says why',
  RefMissing: 'The repository has no branch or tag of the name in `SVC_GIT_REF`',
  SignatureRefused: 'The commit is not signed by a key of `SVC_GIT_ALLOWED_SIGNERS`',
  CommitInvalid: 'A file of the commit has a mistake, or is none that a repository may declare',
  WriteFailed: 'The files cannot be written, for example because the disk is full',
} as const;
export type SourceReason = keyof typeof SOURCE_REASONS;
const REASONS = [
  'GitMissing',
  'FetchFailed',
  'RefMissing',
  'SignatureRefused',
  'CommitInvalid',
  'WriteFailed',
] as const satisfies readonly SourceReason[];

const STATES = ['Synced', 'OutOfSync', 'Unknown'] as const;
const Commit = z.string().regex(/^[0-9a-f]{40,64}$/);
const Time = z.iso.datetime();

export const SourceFile = z.object({
  path: z.string().describe('In the directory of the configuration'),
  slot: SlotName.nullable().describe('The slot that the file declares; null for other files'),
  state: z.enum(['Synced', 'OutOfSync']),
  change: z
    .enum(['edited', 'deleted', 'pending'])
    .nullable()
    .describe('"edited", "deleted": here, and not in the repository; "pending": a commit changes it that is not applied; null: neither'),
  revision: Commit.nullable().describe('The commit whose text of the file was applied; null if none was'),
});

export const SourceStatus = z.object({
  url: z.string(),
  ref: z.string(),
  path: z.string(),
  state: z.enum(STATES).describe('"Unknown": nothing differs, but the newest commit is not known'),
  self_heal: z.boolean().describe('Local edits are put back (`SVC_GIT_SELF_HEAL`)'),
  suspended: z.boolean().describe('Nothing is fetched, applied or put back (`svcctl source suspend`)'),
  revision: Commit.nullable().describe('The commit that was applied last'),
  applied_at: Time.nullable(),
  head: z
    .object({ commit: Commit, subject: z.string(), author: z.string(), at: Time.nullable() })
    .nullable()
    .describe('The newest commit that was fetched'),
  fetched_at: Time.nullable().describe('When the repository answered last'),
  held_until: Time.nullable().describe('When `SVC_CHANGE_WINDOWS` permits the newest commit, which waits; null if none does'),
  problem: z
    .object({ reason: z.enum(REASONS), message: z.string(), commit: Commit.nullable(), since: Time })
    .nullable()
    .describe('Why the newest commit is not in force, and what to do; what was applied last serves'),
  files: z.array(SourceFile),
});
export type SourceStatus = z.output<typeof SourceStatus>;

export const SourceDiff = z.object({
  commit: Commit.nullable().describe('The commit that the differences lead to'),
  files: z.array(
    z.object({
      path: z.string(),
      before: z.string().nullable().describe('The text here; null if there is no file'),
      after: z.string().nullable().describe('The text after "svcctl source sync"; null if the file is removed'),
    }),
  ),
});
export type SourceDiff = z.output<typeof SourceDiff>;

export interface SyncOptions {
  /** Applies a commit outside of `SVC_CHANGE_WINDOWS`. */
  readonly force: boolean;
}

export interface ConfigSource {
  status(): Promise<SourceStatus>;
  /** What `sync` would change, without fetching. */
  diff(): Promise<SourceDiff>;
  /** Fetches, applies and puts local edits back. Changes nothing while suspended. */
  sync(options: SyncOptions): Promise<SourceStatus>;
  /** Fetches and applies soon, and once for several calls. */
  notify(): void;
  setSuspended(suspended: boolean): Promise<SourceStatus>;
  /** The commit that brought the text of a slot, unless the source is suspended or does not declare the slot. */
  commitOf(slot: SlotName): string | undefined;
  /** Whether a webhook's body has this signature, in the form of `X-Hub-Signature-256`. */
  isSigned(body: Uint8Array, signature: string): Promise<boolean>;
  /** As the last look found it. Undefined before the first one. */
  isSynced(): boolean | undefined;
}
