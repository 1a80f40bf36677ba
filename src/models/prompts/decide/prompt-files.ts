/** Names of the files of kept prompts, and which of them make way for others. Pure. */
import { createHash } from 'node:crypto';
import type { PromptServer } from '../../../reconciler/ports.ts';

export interface PromptFile {
  readonly name: string;
  /** See `keyOf`. */
  readonly key: string;
  /** Unix milliseconds. */
  readonly savedAt: number;
  readonly tokens: number;
  /** How often this conversation was restored. */
  readonly uses: number;
}

export interface StoredFile extends PromptFile {
  readonly bytes: number;
  readonly ageMs: number;
}

const NAME = /^(?<key>[0-9a-f]{16})-(?<savedAt>\d{1,16})-(?<tokens>\d{1,9})-(?<uses>\d{1,6})\.prompt$/;
/** Ends the name of a file that is being saved or restored, which is deleted if that does not succeed. */
export const UNFINISHED = '.part';

/**
 * What must be the same for a server to continue from a file. Servers restore files of other weights in the same shape
 * without a word, and then answer from a foreign cache. The revision stands for arguments, environment and image.
 */
export function keyOf({ revision, modelFiles, variable }: PromptServer, build: string): string {
  return createHash('sha256')
    .update(JSON.stringify([revision, modelFiles, variable, build]))
    .digest('hex')
    .slice(0, 16);
}

export const nameOf = ({ key, savedAt, tokens, uses }: Omit<PromptFile, 'name'>): string => `${key}-${savedAt}-${tokens}-${uses}.prompt`;

/** Undefined for a name that was not made here. */
export function parseName(name: string): PromptFile | undefined {
  const { key, savedAt, tokens, uses } = NAME.exec(name)?.groups ?? {};
  return key === undefined ? undefined : { name, key, savedAt: Number(savedAt), tokens: Number(tokens), uses: Number(uses) };
}

/**
 * A file begins with "qsgg", its version and three numbers that are not of interest here; the tokens follow, 4 bytes
 * each. Seen with llama-server b11669 on 2026-11-26.
 */
const MAGIC = Buffer.from('7173676704000000', 'hex');
const TOKENS_AT = 24;
const TOKEN_BYTES = 4;
/** A template may render the end of an answer anew in the next turn. */
const COMMON_SHARE = 0.9;

const TOKENS_IN_HEAD = 65_536;
/** Bytes of a file that `isContinued` looks at. */
export const HEAD_BYTES = TOKENS_AT + TOKENS_IN_HEAD * TOKEN_BYTES;

/**
 * Whether the newer file is the same conversation some turns later, so that it replaces the older one. True where the
 * format is not known: then only the newest conversation is kept.
 */
export function isContinued(older: Uint8Array, olderTokens: number, newer: Uint8Array, newerTokens: number): boolean {
  const isKnown = (head: Uint8Array): boolean => MAGIC.equals(head.subarray(0, MAGIC.length));
  if (!isKnown(older) || !isKnown(newer)) return true;
  const most = Math.min(olderTokens, newerTokens, TOKENS_IN_HEAD);
  const end = Math.min(TOKENS_AT + most * TOKEN_BYTES, older.length, newer.length);
  let at = TOKENS_AT;
  while (at < end && older[at] === newer[at]) at += 1;
  return at - TOKENS_AT >= COMMON_SHARE * Math.min(olderTokens, TOKENS_IN_HEAD) * TOKEN_BYTES;
}

const HOUR_MS = 3_600_000;

/** Time that a conversation saves, how often it has, and how long ago that was. */
const worthOf = ({ tokens, uses, ageMs }: StoredFile): number => (tokens * (1 + uses)) / (1 + Math.max(0, ageMs) / HOUR_MS);

/** Returns the files to delete, the least useful ones, so that the others take at most `limitBytes`. */
export function chooseSuperfluous<File extends StoredFile>(files: readonly File[], limitBytes: number): readonly File[] {
  let left = files.reduce((sum, { bytes }) => sum + bytes, 0);
  return files
    .toSorted((one, other) => worthOf(one) - worthOf(other))
    .filter(({ bytes }) => {
      if (left <= limitBytes) return false;
      left -= bytes;
      return true;
    });
}
