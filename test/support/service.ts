/** Starts the real service as a user does, in a directory of its own, and sends HTTP requests to it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { writeDemoModels, writeDemoSpeech } from '../../toolboxes/demo/demo-models.ts';
import { EMBEDDED_ENGINE } from '../../src/providers/gguf/gguf-server.ts';
import { ensureEngine, type Engine } from '../../src/providers/install-engine.ts';
import { SPEECH_ENGINE } from '../../src/providers/speech/speech-server.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import type { NetworkHost } from './require/require-network.ts';

/** As for `startGateway()` (`npm run test:long -- fast-path`). */
const FAST_PATH = process.env['SVC_TEST_FAST_PATH'];
/** `SVC_TEST_WORKERS=4` runs every suite of real services with so many processes (`npm run test:long -- workers`). */
const WORKERS = process.env['SVC_TEST_WORKERS'];

interface SlotCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly last_transition_at: string | null;
}

export interface SlotView {
  readonly name: string;
  readonly status: {
    readonly state: string;
    readonly model: string;
    readonly restarts: number;
    readonly endpoint?: string;
    readonly conditions: readonly SlotCondition[];
  };
}

export interface Service {
  readonly url: string;
  readonly dir: string;
  readonly configDir: string;
  readonly modelsDir: string;
  readonly environment: Readonly<Record<string, string>>;
  output(): string;
  /** Of the process of the controller; 0 while it does not run. */
  pid(): number;
  /** Writes `slots/<name>.toml` as editors do: to a temporary file that is then renamed. */
  save(name: string, text: string): Promise<void>;
  /** Deletes the file of a slot. */
  remove(name: string): Promise<void>;
  slot(name: string): Promise<SlotView | undefined>;
  /** Polls until the predicate holds; fails with the slot's last view and the service's output. */
  until(name: string, what: string, holds: (slot: SlotView | undefined) => boolean, timeoutMs?: number): Promise<SlotView>;
  chat(body?: object, signal?: AbortSignal): Promise<Response>;
  /** Starts the same service again after it has ended. */
  start(): Promise<void>;
  /** Ends the controller only. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Ends the controller and all its workloads, and removes the directory. */
  dispose(): Promise<void>;
}

export interface ServiceOptions {
  readonly runtime: 'process' | 'podman';
  readonly environment?: Readonly<Record<string, string>>;
  readonly toolboxes?: string;
  /** Most files that the service may open. Default: as many as this process. */
  readonly descriptors?: number;
  /** No engine is shared: the programs are on the PATH. */
  readonly engine?: 'installed';
  /** The engine of speech is shared as well, and its demo models are written. */
  readonly speech?: true;
  /** Its files are below this directory. Default: that of temporary files, which may be in memory. */
  readonly above?: string;
  /** Default: that of this checkout. */
  readonly program?: string;
  /** It runs there, and listens on all addresses. `url` leads to it all the same. */
  readonly host?: NetworkHost;
}

const READY_MS = 60_000;

export async function startService(options: ServiceOptions): Promise<Service> {
  const dir = await mkdtemp(join(options.above ?? tmpdir(), 'svc-e2e-'));
  const configDir = join(dir, 'config');
  const modelsDir = join(dir, 'models');
  await mkdir(join(configDir, 'slots'), { recursive: true });
  await mkdir(modelsDir, { recursive: true });
  await writeDemoModels(modelsDir);
  if (options.runtime === 'process' && options.engine === undefined) await shareEngine(join(dir, 'state'));
  if (options.speech === true) {
    await writeDemoSpeech(modelsDir);
    await shareSpeechEngine(join(dir, 'state'));
  }
  if (options.toolboxes !== undefined) await writeFile(join(configDir, 'toolboxes.toml'), options.toolboxes);
  const { host } = options;
  const port = await freePort();
  await host?.forward(port);
  const firstPort = 20_000 + (port % 60) * 200;
  const environment = {
    SVC_LISTEN: `${host === undefined ? '127.0.0.1' : '0.0.0.0'}:${port}`,
    SVC_RUNTIME: options.runtime,
    // After a clean stop no workload remains on the machine; after SIGKILL they do.
    SVC_ON_EXIT: 'stop',
    SVC_CONFIG_DIR: configDir,
    SVC_STATE_DIR: join(dir, 'state'),
    SVC_MODELS_DIR: modelsDir,
    SVC_PORT_RANGE: `${firstPort}-${firstPort + 199}`,
    ...(FAST_PATH === undefined ? {} : { SVC_FAST_PATH: FAST_PATH }),
    ...(WORKERS === undefined ? {} : { SVC_WORKERS: WORKERS }),
    ...options.environment,
  };
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  let text = '';

  async function start(): Promise<void> {
    const command = [options.program ?? 'src/cli/svcctl.mjs', 'serve'];
    const env = { ...ownEnvironment(), ...environment };
    const limited = options.descriptors === undefined ? [] : ['prlimit', `--nofile=${options.descriptors}`];
    const [program = '', ...args] = [...limited, process.execPath, ...command];
    const started = host === undefined ? spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }) : host.spawn(command, env);
    child = started;
    started.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    started.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const deadline = Date.now() + READY_MS;
    while (!(await answers(`${url}/api/health/system`))) {
      if (started.exitCode !== null || Date.now() > deadline) throw new Error(`The service did not start:\n${text}`);
      await pause(25);
    }
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    const running = child;
    child = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill(signal);
    await ended;
  }

  async function slot(name: string): Promise<SlotView | undefined> {
    const answer = await fetch(`${url}/api/slots/${name}`);
    // 503: no pass has read the slots yet.
    if (answer.status === 404 || answer.status === 503) return undefined;
    const body: SlotView = JSON.parse(await answer.text());
    return body;
  }

  const service: Service = {
    url,
    dir,
    configDir,
    modelsDir,
    environment,
    output: () => text,
    pid: () => child?.pid ?? 0,
    async save(name, toml) {
      const path = join(configDir, 'slots', `${name}.toml`);
      await writeFile(`${path}~`, toml);
      await rename(`${path}~`, path);
    },
    remove: (name) => rm(join(configDir, 'slots', `${name}.toml`), { force: true }),
    slot,
    async until(name, what, holds, timeoutMs = READY_MS) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const seen = await slot(name);
        if (holds(seen) && seen !== undefined) return seen;
        if (Date.now() > deadline)
          throw new Error(`"${name}" did not become ${what}: ${JSON.stringify(seen?.status)}\n${text.slice(-4000)}`);
        await pause(25);
      }
    },
    chat: (body = {}, signal) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
        ...(signal === undefined ? {} : { signal }),
      }),
    start,
    kill,
    async dispose() {
      if (child === undefined) await start();
      await kill('SIGTERM');
      // A program that a killed service had started, such as npm, may still write.
      await rm(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
  await start();
  return service;
}

export function isAnswering(slot: SlotView | undefined): boolean {
  return slot !== undefined && ['ready', 'serving', 'idle'].includes(slot.status.state);
}

export function condition(slot: SlotView | undefined, type: string) {
  return slot?.status.conditions.find((entry) => entry.type === type);
}

/** The process that answers for a slot, which `explain` names as `<name>:<pid>:<start>`; undefined while none does. */
export async function servingProcess({ url }: Service, name = 'primary'): Promise<number | undefined> {
  const { text }: { text: string } = JSON.parse(await (await fetch(`${url}/api/slots/${name}/explain`)).text());
  const pid = /served by "svc-slot-[^:]*:(\d+):/.exec(text)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/**
 * Kills the process that answers for the slot, and resolves once another one does. Where that is soon, a poll may miss
 * that nothing answers; but Ready then has another transition.
 */
export async function killServer(service: Service, withinMs = READY_MS): Promise<void> {
  const before = condition(await service.slot('primary'), 'Ready');
  const pid = await servingProcess(service);
  if (pid === undefined) throw new Error('No process answers');
  process.kill(pid, 'SIGKILL');
  await eventually('the dead process serves no longer', async () => (await servingProcess(service)) !== pid, withinMs);
  const after = condition(await service.until('primary', 'ready again', isAnswering, withinMs), 'Ready');
  if (after?.last_transition_at === before?.last_transition_at) throw new Error(`Ready did not change: ${JSON.stringify(after)}`);
}

/** The text of a non-streaming chat answer. */
export async function chatText(answer: Response): Promise<string> {
  const body: { choices: { message: { content: string } }[] } = JSON.parse(await answer.text());
  return (body.choices[0]?.message.content ?? '').trim();
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The embedded engine is installed once for all suites. */
export async function shareEngine(stateDir: string): Promise<void> {
  await share(EMBEDDED_ENGINE, 'engine', stateDir);
}

/** And so is that of speech. */
export async function shareSpeechEngine(stateDir: string): Promise<void> {
  await share(SPEECH_ENGINE, 'speech-engine', stateDir);
}

async function share(engine: Engine, name: string, stateDir: string): Promise<void> {
  const dir = resolve('.svc', name);
  const options = { engine, dir, env: process.env, onProgress: () => undefined };
  const installed = await ensureEngine(options, new AbortController().signal);
  if (!installed.ok) throw new Error(installed.failure.message);
  await mkdir(stateDir, { recursive: true });
  await symlink(dir, join(stateDir, name));
}

/** The environment of this process, without any settings of the service. */
export function ownEnvironment(): Record<string, string | undefined> {
  return { ...Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SVC_'))), NODE_OPTIONS: '' };
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    (answer) => answer.ok,
    () => false,
  );
}
