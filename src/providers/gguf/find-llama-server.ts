/** Finds the host's own llama-server. */
import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import { PROGRAM } from './decide/server-command.ts';

/** Its absolute path, or undefined. Relative parts of `PATH` are passed over: they would mean another program in another directory. */
export async function findLlamaServer(pathVariable: string | undefined): Promise<string | undefined> {
  for (const directory of (pathVariable ?? '').split(path.delimiter)) {
    if (!path.isAbsolute(directory)) continue;
    const file = path.join(directory, PROGRAM);
    const found = await access(file, constants.X_OK).then(
      async () => (await stat(file)).isFile(),
      () => false,
    );
    if (found) return file;
  }
  return undefined;
}
