/** Runs ComfyUI without containers, if somebody has installed it: with directories of its own for what it draws, and a file that says where models are. */
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findProgram } from '../../platform/find-program.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { MODEL_PATHS_YAML, PROGRAM } from './decide/image-command.ts';

/** Images that ComfyUI wrote are fetched at once. This is longer than any request lasts. */
const KEEP_MS = 3_600_000;

export function openComfyUi({ env, stateDir }: ProgramHost): HostProgram {
  const dir = path.join(stateDir, 'comfyui');
  const find = async (): Promise<Result<string>> => {
    const found = await findProgram(PROGRAM, env['PATH']);
    if (found !== undefined) return ok(found);
    const message = `Install ComfyUI, and put a program "${PROGRAM}" on the PATH of the service that starts its main.py: it is not on this machine`;
    return fail('stalled', 'ProgramMissing', message);
  };
  return {
    async resolve() {
      const found = await find();
      if (!found.ok) return found;
      const paths = { output: path.join(dir, 'output'), input: path.join(dir, 'input'), user: path.join(dir, 'user') };
      for (const each of Object.values(paths)) await mkdir(each, { recursive: true, mode: 0o700 });
      await removeOld([path.join(paths.output, 'svc'), path.join(paths.input, 'svc')], Date.now() - KEEP_MS);
      const modelPaths = path.join(dir, 'model-paths.yaml');
      await writeFile(modelPaths, MODEL_PATHS_YAML);
      return ok([
        found.value,
        '--extra-model-paths-config',
        modelPaths,
        '--output-directory',
        paths.output,
        '--input-directory',
        paths.input,
        '--temp-directory',
        dir,
        '--user-directory',
        paths.user,
      ]);
    },
    async describe() {
      const found = await find();
      return found.ok ? ok({ name: `"${found.value}"` }) : found;
    },
  };
}

/** ComfyUI itself never removes what it has saved. */
async function removeOld(directories: readonly string[], before: number): Promise<void> {
  for (const directory of directories) {
    for (const name of await readdir(directory).catch(() => [])) {
      const file = path.join(directory, name);
      const facts = await stat(file).catch(() => undefined);
      if (facts?.isFile() === true && facts.mtimeMs < before) await rm(file, { force: true });
    }
  }
}
