/** Starts the real service for a measurement, in a directory of its own, and reads its memory and CPU from the kernel. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeDemoModels } from '../src/models/demo/demo-models.ts';
import { ensureEmbeddedEngine } from '../src/providers/gguf/embedded-engine.ts';
import { freePort } from '../test/support/free-port.ts';

export interface BenchService {
  readonly url: string;
  readonly pid: number;
  readonly configDir: string;
  readonly stateDir: string;
  /** Milliseconds from the spawn until the port took a connection. */
  readonly listeningMs: number;
  save(slot: string, text: string): Promise<void>;
  remove(slot: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startBenchService(
  environment: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): Promise<BenchService> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  const configDir = path.join(dir, 'config');
  const stateDir = path.join(dir, 'state');
  await mkdir(path.join(configDir, 'slots'), { recursive: true });
  await writeDemoModels(path.join(stateDir, 'models'));
  await shareEngine(stateDir);
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(configDir, name), text);
  const port = await freePort();
  const begun = performance.now();
  const child = spawn(process.execPath, ['src/cli/svcctl.ts', 'serve'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      SVC_LISTEN: `127.0.0.1:${port}`,
      SVC_CONFIG_DIR: configDir,
      SVC_STATE_DIR: stateDir,
      SVC_LOG_LEVEL: 'warn',
      SVC_ON_EXIT: 'stop',
      ...environment,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await untilListening(port, child);
  const listeningMs = performance.now() - begun;
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    configDir,
    stateDir,
    listeningMs,
    async save(slot, text) {
      const file = path.join(configDir, 'slots', `${slot}.toml`);
      await writeFile(`${file}~`, text);
      await rename(`${file}~`, file);
    },
    remove: (slot) => rm(path.join(configDir, 'slots', `${slot}.toml`), { force: true }),
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The embedded engine is installed once for all measurements. */
async function shareEngine(stateDir: string): Promise<void> {
  const dir = path.resolve('.svc/engine');
  const onProgress = (message: string): void => void process.stdout.write(`  ${message}\n`);
  const engine = await ensureEmbeddedEngine({ dir, env: process.env, onProgress }, new AbortController().signal);
  if (!engine.ok) throw new Error(engine.failure.message);
  await symlink(dir, path.join(stateDir, 'engine'));
}

/** Resident memory in MB (10^6 bytes). */
export async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024) / 1e6;
}

/** CPU seconds used so far; 100 ticks a second, as on every Linux that Node runs on. */
export async function cpuSeconds(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function untilListening(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error('The service did not start');
    await pause(2);
  }
}

export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
