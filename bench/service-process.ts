/** Starts the real service as a process of its own for a measurement, and reads a process's memory and CPU time from the kernel. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeDemoModels } from '../toolboxes/demo/demo-models.ts';
import { EMBEDDED_ENGINE } from '../src/providers/gguf/gguf-server.ts';
import { ensureEngine } from '../src/providers/install-engine.ts';
import { freePort } from '../test/support/free-port.ts';
import { waitUntil } from './wait-until.ts';

export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  /** `performance.now()` at the start. */
  readonly startedAt: number;
  /** Milliseconds from the start until the port accepted a connection. */
  readonly listeningMs: number;
  /** Requests the slots of `GET /api/status`. */
  status(): Promise<readonly { readonly name: string; readonly ready: boolean }[]>;
  /** Also removes `dir`. */
  stop(): Promise<void>;
}

export interface ServiceProcessOptions {
  /** A temporary directory for this process alone. */
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
  /** A command that runs the program given as its last arguments. */
  readonly runner?: readonly string[];
  readonly nodeFlags?: readonly string[];
  readonly startMs: number;
}

let bundle: string | undefined;
/** Releases and images run a bundle, which is staged once for all measurements. */
function bundledProgram(): string {
  if (bundle === undefined) {
    bundle = path.resolve('.svc/bundle');
    execFileSync(process.execPath, ['scripts/stage-bundle.mjs', bundle], { stdio: ['ignore', 'inherit', 'inherit'] });
  }
  return path.join(bundle, 'src/cli/svcctl.mjs');
}

/** Runs `svcctl serve` on a free port and waits until it listens. */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  const { dir, env, runner = [], nodeFlags = [], startMs } = options;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const [program, ...args] = [...runner, process.execPath, ...nodeFlags, bundledProgram(), 'serve'];
  const startedAt = performance.now();
  const child = spawn(program, args, {
    // As in the unit and in the image.
    env: { PATH: process.env['PATH'] ?? '', SVC_LISTEN: `127.0.0.1:${port}`, MALLOC_ARENA_MAX: '2', ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const listens = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`The service exited with code ${child.exitCode}`);
    return accepts(port);
  };
  await waitUntil(listens, { withinMs: startMs, everyMs: 2, failure: () => 'The service did not start' });
  return {
    url,
    pid: child.pid ?? 0,
    startedAt,
    listeningMs: performance.now() - startedAt,
    async status() {
      const body: { slots: { name: string; ready: boolean }[] } = JSON.parse(await (await fetch(`${url}/api/status`)).text());
      return body.slots;
    },
    async stop() {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export interface BenchService extends ServiceProcess {
  readonly stateDir: string;
  /** Writes a slot file atomically, as an editor does. */
  save(slot: string, text: string): Promise<void>;
  remove(slot: string): Promise<void>;
}

/** Starts the service on slot files, with the demo models and the embedded engine. `runner`: as in `ServiceProcessOptions`. */
export async function startBenchService(
  env: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
  runner: readonly string[] = [],
): Promise<BenchService> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  const configDir = path.join(dir, 'config');
  const stateDir = path.join(dir, 'state');
  await mkdir(path.join(configDir, 'slots'), { recursive: true });
  await writeDemoModels(path.join(stateDir, 'models'));
  await shareEngine(stateDir);
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(configDir, name), text, { mode: 0o600 });
  const fixed = { SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir, SVC_LOG_LEVEL: 'warn', SVC_ON_EXIT: 'stop' };
  const service = await startServiceProcess({ dir, env: { HOME: process.env['HOME'] ?? '/', ...fixed, ...env }, runner, startMs: 30_000 });
  const fileOf = (slot: string): string => path.join(configDir, 'slots', `${slot}.toml`);
  return {
    ...service,
    stateDir,
    async save(slot, text) {
      await writeFile(`${fileOf(slot)}~`, text);
      await rename(`${fileOf(slot)}~`, fileOf(slot));
    },
    remove: (slot) => rm(fileOf(slot), { force: true }),
  };
}

/** The embedded engine is installed once for all measurements. */
async function shareEngine(stateDir: string): Promise<void> {
  const dir = path.resolve('.svc/engine');
  const onProgress = (message: string): void => void process.stdout.write(`  ${message}\n`);
  const engine = await ensureEngine({ engine: EMBEDDED_ENGINE, dir, env: process.env, onProgress }, new AbortController().signal);
  if (!engine.ok) throw new Error(engine.failure.message);
  await symlink(dir, path.join(stateDir, 'engine'));
}

/** Resident memory in MB (10^6 bytes). */
export async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024) / 1e6;
}

/** User and system time of a process with all its threads; 100 ticks per second, as on every Linux that Node supports. */
export async function cpuSeconds(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Returns whether a port on the loopback accepts a connection. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
