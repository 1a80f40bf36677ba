/** Names of the files of kept prompts, and which of them make way for others. Pure. */
import { createHash } from 'node:crypto';
import type { PromptServer } from '../../../reconciler/ports.ts';

export interface PromptFile {
  readonly name: string;
  /** See `keyOf`. */
  readonly key: string;
  readonly place: number;
  readonly tokens: number;
  /** How often this conversation was restored. */
  readonly uses: number;
}

export interface StoredFile extends PromptFile {
  readonly bytes: number;
  readonly ageMs: number;
}

const NAME = /^(?<key>[0-9a-f]{16})-(?<place>\d{1,4})-(?<tokens>\d{1,9})-(?<uses>\d{1,6})\.prompt$/;
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

export const nameOf = ({ key, place, tokens, uses }: Omit<PromptFile, 'name'>): string => `${key}-${place}-${tokens}-${uses}.prompt`;

/** Undefined for a name that was not made here. */
export function parseName(name: string): PromptFile | undefined {
  const { key, place, tokens, uses } = NAME.exec(name)?.groups ?? {};
  return key === undefined ? undefined : { name, key, place: Number(place), tokens: Number(tokens), uses: Number(uses) };
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
