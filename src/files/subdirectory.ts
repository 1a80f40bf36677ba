/** Creates a directory inside one that must exist: a state directory that was moved away must not come into being again, empty, behind the user's back. */
import { mkdir } from 'node:fs/promises';
import { codeOf } from '../platform/error-text.ts';

/** Does nothing if it exists. Throws `ENOENT` if its parent does not. */
export async function makeSubdirectory(directory: string, mode?: number): Promise<void> {
  await mkdir(directory, mode).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}
