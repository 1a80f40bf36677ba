/** Runs ComfyUI without containers, if it is installed. */
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../schema/words/failure.ts';
import { installedProgram } from '../host-program.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { MODEL_PATHS_YAML, PROGRAM } from './decide/image-command.ts';

/** Longer than any request lasts; images are fetched at once. */
const KEEP_MS = 3_600_000;

export function openComfyUi({ env, stateDir }: ProgramHost): HostProgram {
  const dir = path.join(stateDir, 'comfyui');
  const advice = 'install ComfyUI, and put a program of this name that starts its main.py on the PATH of the service';
  const { find, describe } = installedProgram(PROGRAM, env, advice);
  return {
    async resolve() {
      const found = await find();
      if (!found.ok) return found;
      const paths = { output: path.join(dir, 'output'), input: path.join(dir, 'input'), user: path.join(dir, 'user') };
      for (const each of Object.values(paths)) await mkdir(each, { recursive: true, mode: 0o700 });
      await removeOld([path.join(paths.output, 'svc'), path.join(paths.input, 'svc')], Date.now() - KEEP_MS);
      const modelPaths = path.join(dir, 'model-paths.yaml');
      await writeFile(modelPaths, MODEL_PATHS_YAML);
      const directories = Object.entries({ ...paths, temp: dir }).flatMap(([name, each]) => [`--${name}-directory`, each]);
      return ok([found.value, '--extra-model-paths-config', modelPaths, ...directories]);
    },
    describe,
  };
}

/** ComfyUI never removes saved images. */
async function removeOld(directories: readonly string[], before: number): Promise<void> {
  for (const directory of directories) {
    for (const name of await readdir(directory).catch(() => [])) {
      const file = path.join(directory, name);
      const facts = await stat(file).catch(() => undefined);
      if (facts?.isFile() === true && facts.mtimeMs < before) await rm(file, { force: true });
    }
  }
}
