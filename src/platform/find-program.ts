/** Finds a program that is installed on this machine. */
import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';

/**
 * Returns its absolute path. Ignores relative entries of `PATH`, because their meaning depends on the working
 * directory.
 */
export async function findProgram(name: string, pathVariable: string | undefined): Promise<string | undefined> {
  for (const directory of (pathVariable ?? '').split(path.delimiter)) {
    if (!path.isAbsolute(directory)) continue;
    const file = path.join(directory, name);
    const found = await access(file, constants.X_OK).then(
      async () => (await stat(file)).isFile(),
      () => false,
    );
    if (found) return file;
  }
  return undefined;
}
