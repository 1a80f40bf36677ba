/** Starts the real llama-server as the provider would, from the PATH or in a container, and reads how much memory it takes. */
import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findProgram } from '../src/providers/host-program.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import type { ModelFacts } from '../src/providers/provider.ts';
import type { SlotName } from '../src/schema/words/names.ts';
import type { SlotSpec } from '../src/schema/slot/slot-spec.ts';

const run = promisify(execFile);
const IMAGE = process.env['SVC_BENCH_IMAGE'] ?? 'localhost/svc-toolbox-gguf-cpu:v1';
const START_WITHIN_MS = 120_000;
const KIB = 1024;

export interface LlamaServer {
  readonly url: string;
  /** Resident memory of the process: what it has allocated and used, and what it has mapped of its model. */
  residentBytes(): Promise<number>;
  /** Resolves when it has ended. Default: SIGKILL. Containers are always removed. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface WantedServer {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  /** Of the model. */
  readonly directory: string;
  /** Gets each line of its log, of a server from the PATH only. */
  readonly onLine?: (line: string) => void;
}

export async function startLlamaServer({ name, spec, model, directory, onLine }: WantedServer): Promise<LlamaServer> {
  const listen = { host: '127.0.0.1', port: await freePort() };
  const slot = { name, spec, model, modelPath: model.hostPath, listen };
  const [, ...args] = gguf.startCmd(slot);
  const env = gguf.buildEnv(slot);
  const program = await findProgram(gguf.program, process.env['PATH']);
  const server = program === undefined ? await startContainer({ args, env, directory }) : startProcess(program, args, { env, onLine });
  const url = `http://127.0.0.1:${listen.port}`;
  try {
    await answers(`${url}/health`);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { url, residentBytes: async () => residentBytes(await server.pid()), stop: server.stop };
}

interface Started {
  pid(): Promise<number>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

function startProcess(
  program: string,
  args: readonly string[],
  { env, onLine }: { readonly env: Readonly<Record<string, string>>; readonly onLine: WantedServer['onLine'] },
): Started {
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', onLine === undefined ? 'ignore' : 'pipe'],
    env: { ...process.env, ...env },
  });
  if (child.stderr !== null) createInterface(child.stderr).on('line', (line) => onLine?.(line));
  return {
    pid: () => Promise.resolve(child.pid ?? 0),
    stop: async (signal = 'SIGKILL') => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill(signal);
      await ended;
    },
  };
}

async function startContainer({
  args,
  env,
  directory,
}: {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
}): Promise<Started> {
  const variables = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const options = ['--detach', '--network', 'host', '--volume', `${directory}:${directory}:ro`, ...variables];
  const { stdout } = await run('podman', ['run', ...options, IMAGE, 'llama-server', ...args]);
  const id = stdout.trim();
  return {
    pid: async () => Number((await run('podman', ['inspect', '--format', '{{.State.Pid}}', id])).stdout),
    stop: async () => void (await run('podman', ['rm', '--force', '--time', '0', id])),
  };
}

async function answers(url: string): Promise<void> {
  for (const deadline = Date.now() + START_WITHIN_MS; Date.now() < deadline; await sleep(20)) {
    const ok = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ok) return;
  }
  throw new Error('llama-server does not answer');
}

async function residentBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Rss:\s+(\d+) kB$/m.exec(text)?.[1]) * KIB;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
