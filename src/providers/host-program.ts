/** Programs that run without a container: one that the user installed, or an engine of `toolboxes/`. */
import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ProgramBackends } from '../schema/status/hardware.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import { ensureEngine, isEngineInstalled, type Engine } from './install-engine.ts';
import type { HostProgram, ProgramHost } from './provider.ts';

/** Listing devices loads the libraries of the driver, which takes a second or two. */
const OUTPUT_WITHIN_MS = 10_000;
const MAX_OUTPUT_BYTES = 256 * 1024;

export function installedProgram(program: string, env: ProgramHost['env'], advice: string) {
  const find = async (): Promise<Result<string>> => {
    const found = await findProgram(program, env['PATH']);
    return found === undefined ? fail('stalled', 'ProgramMissing', `Program "${program}" is not on this machine; ${advice}`) : ok(found);
  };
  return {
    find,
    async describe(): ReturnType<HostProgram['describe']> {
      const found = await find();
      return found.ok ? ok({ name: `"${found.value}"` }) : found;
    },
  };
}

/** The engine is installed into `folder` of the state directory. */
export function programOrEngine(
  program: string,
  engine: Engine,
  folder: string,
  { env, stateDir, onProgress }: ProgramHost,
): Pick<HostProgram, 'resolve' | 'describe'> & Required<Pick<HostProgram, 'find'>> {
  const dir = path.join(stateDir, folder);
  const find = async (): Promise<string | undefined> => findProgram(program, env['PATH']);
  return {
    find,
    async resolve(signal) {
      const installed = await find();
      return installed === undefined ? ensureEngine({ engine, dir, env, onProgress }, signal) : ok([installed]);
    },
    async describe() {
      const installed = await find();
      if (installed !== undefined) return ok({ name: `"${installed}"` });
      if (await isEngineInstalled(engine, dir)) return ok({ name: engine.name });
      return ok({ name: engine.name, installs: `${engine.download} are downloaded when the first slot is loaded` });
    },
  };
}

export function rememberBackends(
  ask: (program: string) => Promise<ProgramBackends | undefined>,
): (program: string, devices: string) => Promise<ProgramBackends | undefined> {
  let asked: { readonly key: string; readonly answer: Promise<ProgramBackends | undefined> } | undefined;
  return async (program, devices) => {
    const { mtimeMs, size } = await stat(program);
    const key = [program, mtimeMs, size, devices].join('\n');
    if (asked?.key !== key) asked = { key, answer: ask(program) };
    return asked.answer;
  };
}

/** `uid`, `gid`: the user who runs it. Default: this one. */
export async function outputOf(
  program: string,
  args: readonly string[],
  { PATH, HOME }: ProgramHost['env'],
  more: { readonly signal?: AbortSignal; readonly uid?: number; readonly gid?: number } = {},
) {
  const options = {
    cwd: '/',
    env: { PATH, HOME },
    timeout: OUTPUT_WITHIN_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
    killSignal: 'SIGKILL' as const,
    ...more,
  };
  return new Promise<{ readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile(program, args, options, (_error, stdout, stderr) => resolve({ stdout, stderr }));
  });
}

/** Returns the path of a program, unless it is one. Relative entries of `PATH` depend on the working directory. */
export async function findProgram(name: string, pathVariable: string | undefined): Promise<string | undefined> {
  for (const directory of path.isAbsolute(name) ? ['/'] : (pathVariable ?? '').split(path.delimiter)) {
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
