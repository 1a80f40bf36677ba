/** Starts and stops the command of the provider, with the real llama-server in a container or with the embedded engine. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { createModelStore } from '../../../src/models/store.ts';
import { EMBEDDED_ENGINE } from '../../../src/providers/gguf/gguf-server.ts';
import { ensureEngine } from '../../../src/providers/install-engine.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import type { Health, ProbeIo, SlotContext } from '../../../src/providers/provider.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import type { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { freePort } from '../../support/free-port.ts';
import { specOf } from './slot-context.ts';
import { MODEL_FORMATS } from '../../../src/providers/registry.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../../..');
const IMAGE = 'localhost/svc-test-gguf-cpu:v1';
const signal = new AbortController().signal;

export interface RunningServer {
  readonly url: string;
  readonly slot: SlotContext;
  health(): Promise<Health>;
  /** Stops its process as SIGSTOP does, and lets it go on. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Stops the server and returns its exit code. */
  stop(): Promise<number | null>;
  output(): string;
}

export interface WantedSlot {
  readonly name: string;
  /** A model id. */
  readonly model: string;
  readonly document?: Partial<SlotDocument>;
}

export interface ServerKind {
  readonly name: string;
  prepare(): Promise<void>;
  /** Returns the complete command. */
  command(slot: SlotContext, modelsDir: string): readonly [string, ...string[]];
  /** `child`: the process that the command started. */
  signal(slot: SlotContext, child: ChildProcess, name: 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** Removes what is left after the process has exited. */
  cleanUp(slot: SlotContext): Promise<void>;
}

export const embeddedEngine = (): ServerKind => {
  let prefix: readonly string[] = [];
  return {
    name: 'the embedded engine',
    async prepare() {
      const engine = await ensureEngine(
        { engine: EMBEDDED_ENGINE, dir: path.join(ROOT, '.svc', 'engine'), env: process.env, onProgress: () => {} },
        signal,
      );
      if (!engine.ok) throw new Error(engine.failure.message);
      prefix = engine.value;
    },
    command: (slot) => [prefix[0] ?? '', ...prefix.slice(1), ...gguf.startCmd(slot).slice(1)],
    signal: async (_slot, child, name) => void child.kill(name),
    cleanUp: async () => {},
  };
};

export const llamaServerInPodman = (): ServerKind => ({
  name: 'llama-server',
  async prepare() {
    const base = process.env['SVC_TEST_BASE'] ?? 'localhost/svc-base:forky';
    const build = ['build', '--network', 'host', '--build-arg', `BASE=${base}`, '--build-arg', 'BACKEND=cpu', '-t', IMAGE];
    await run('podman', [...build, path.join(ROOT, 'toolboxes', 'gguf')]);
  },
  command(slot, modelsDir) {
    const env = Object.entries(gguf.buildEnv(slot)).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const container = ['run', '--rm', '--name', nameOf(slot), '--network', 'host', '--volume', `${modelsDir}:${modelsDir}:ro`];
    return ['podman', ...container, ...env, IMAGE, ...gguf.startCmd(slot)];
  },
  async signal(slot, _child, name) {
    await run('podman', ['kill', '--signal', name, nameOf(slot)]);
  },
  cleanUp: async (slot) => {
    await run('podman', ['rm', '--force', '--ignore', '--time', '2', nameOf(slot)]);
  },
});

const nameOf = (slot: SlotContext): string => `svc-test-gguf-${process.pid}-${slot.listen.port}`;

/** Starts a server with a model of the store and waits until it is ready. */
export async function startServer(kind: ServerKind, modelsDir: string, wanted: WantedSlot): Promise<RunningServer> {
  const slot = await slotOf(modelsDir, wanted);
  const [program, ...args] = kind.command(slot, modelsDir);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...gguf.buildEnv(slot) } });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const server: RunningServer = {
    url: `http://127.0.0.1:${slot.listen.port}`,
    slot,
    health: () => gguf.health(slot.listen, probeIo, slot, signal),
    freeze: async () => await kind.signal(slot, child, 'SIGSTOP'),
    thaw: async () => await kind.signal(slot, child, 'SIGCONT'),
    stop: async () => {
      const code = await stopChild(child);
      await kind.cleanUp(slot);
      return code;
    },
    output: () => text,
  };
  const deadline = Date.now() + 30_000;
  const ready = async (): Promise<Health> => (gguf.readiness ?? gguf.health)(slot.listen, probeIo, slot, signal);
  for (let health = await ready(); health.kind !== 'passing'; health = await ready()) {
    const ended = child.exitCode !== null;
    if (health.kind === 'failing' || health.kind === 'nonsense' || ended || Date.now() > deadline) {
      await server.stop();
      throw new Error(`${kind.name} does not serve "${wanted.model}": ${health.message}\n${text}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return server;
}

async function slotOf(modelsDir: string, { name, model, document = {} }: WantedSlot): Promise<SlotContext> {
  const id = ModelId.parse(model);
  const presence = (await createModelStore({ root: modelsDir, formats: MODEL_FORMATS }).observe([id], signal)).get(id);
  if (presence?.kind !== 'present') throw new Error(JSON.stringify(presence));
  const spec = specOf(name, { backend: 'cpu', ...document, model: { default: model, ...document.model } });
  const listen = { host: '127.0.0.1', port: await freePort() };
  return { name: SlotName.parse(name), spec, model: presence.facts, modelPath: presence.facts.hostPath, listen };
}

const probeIo: ProbeIo = {
  async request(endpoint, options) {
    try {
      const answer = await fetch(`http://${endpoint.host}:${endpoint.port}${options.path}`, {
        method: options.method,
        signal: AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]),
        ...(options.body === undefined ? {} : { body: options.body, headers: { 'content-type': 'application/json' } }),
      });
      return { status: answer.status, body: await answer.text() };
    } catch (error) {
      return { status: 0, body: '', error: String(error) };
    }
  },
};

async function stopChild(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const last = setTimeout(() => child.kill('SIGKILL'), 10_000);
  const code = await ended;
  clearTimeout(last);
  return code;
}
