/** Starts the command of a provider for speech with the real library: as the process that the service installs, or in the toolbox image. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import path from 'node:path';
import { promisify } from 'node:util';
import { writeDemoSpeech } from '../../../toolboxes/demo/demo-models.ts';
import { createModelStore } from '../../../src/models/store.ts';
import { ensureEngine } from '../../../src/providers/install-engine.ts';
import type { Health, ProbeIo, SlotContext } from '../../../src/providers/provider.ts';
import { MODEL_FORMATS, PROVIDERS } from '../../../src/providers/registry.ts';
import { SPEECH_ENGINE } from '../../../src/providers/speech/speech-server.ts';
import type { SpeechTask } from '../../../src/providers/speech/decide/speech-command.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { freePort } from '../../support/free-port.ts';
import { specOf } from '../../support/providers/odd-models.ts';
import { PODMAN, SPEECH_IMAGE } from '../../support/require/require-podman.ts';

const run = promisify(execFile);
const signal = new AbortController().signal;
const READY_WITHIN_MS = 120_000;

export interface ServerKind {
  readonly name: string;
  command(slot: SlotContext, modelsDir: string): Promise<readonly [string, ...string[]]>;
  /** `child`: the process that the command started. */
  send(slot: SlotContext, child: ChildProcess, name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): Promise<void>;
}

export const embedded: ServerKind = {
  name: 'as a process',
  async command(slot) {
    const dir = path.resolve('.svc/speech-engine');
    const engine = await ensureEngine({ engine: SPEECH_ENGINE, dir, env: process.env, onProgress: () => undefined }, signal);
    if (!engine.ok) throw new Error(engine.failure.message);
    const [program, ...args] = engine.value;
    return [program, ...args, ...providerOf(slot).startCmd(slot).slice(1)];
  },
  send: async (_slot, child, name) => void child.kill(name),
};

export const inPodman: ServerKind = {
  name: 'in its toolbox image',
  async command(slot, modelsDir) {
    const options = ['--rm', '--name', nameOf(slot), '--network', 'host', '--volume', `${modelsDir}:${modelsDir}:ro`, '--user', '0'];
    return ['podman', ...PODMAN, 'run', ...options, SPEECH_IMAGE, ...providerOf(slot).startCmd(slot)];
  },
  send: async (slot, _child, name) => void (await run('podman', [...PODMAN, 'kill', '--signal', name, nameOf(slot)])),
};

const nameOf = ({ name, listen }: SlotContext): string => `svc-test-${name}-${process.pid}-${listen.port}`;
const providerOf = ({ name }: SlotContext) => PROVIDERS[name === 'stt' ? 'stt' : 'tts'];

export interface RunningServer {
  readonly url: string;
  readonly slot: SlotContext;
  readonly provider: ReturnType<typeof providerOf>;
  readiness(): Promise<Health>;
  health(): Promise<Health>;
  send(name: 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** Sends SIGTERM and resolves to the exit code. */
  stop(): Promise<unknown>;
}

/** `model`: default is the demo model, which is written. Waits until the server passes the readiness check of its provider. */
export async function startServer(kind: ServerKind, task: SpeechTask, modelsDir: string, model?: string): Promise<RunningServer> {
  if (model === undefined) await writeDemoSpeech(modelsDir);
  const slot = await slotOf(task, modelsDir, model ?? (task === 'stt' ? 'demo-listener' : 'demo-speaker'));
  const provider = providerOf(slot);
  const [program, ...args] = await kind.command(slot, modelsDir);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close').then(([code]: unknown[]) => code);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const server: RunningServer = {
    url: `http://127.0.0.1:${slot.listen.port}`,
    slot,
    provider,
    readiness: async () => (provider.readiness ?? provider.health)(slot.listen, probeIo, slot, signal),
    health: async () => provider.health(slot.listen, probeIo, slot, signal),
    send: async (name) => kind.send(slot, child, name),
    async stop() {
      await kind.send(slot, child, 'SIGTERM');
      return ended;
    },
  };
  const deadline = performance.now() + READY_WITHIN_MS;
  for (let health = await server.readiness(); health.kind !== 'passing'; health = await server.readiness()) {
    const useless = child.exitCode !== null || health.kind === 'nonsense' || performance.now() > deadline;
    if (useless) throw new Error(`The server does not become ready: ${health.message}\n${output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return server;
}

async function slotOf(task: SpeechTask, modelsDir: string, model: string): Promise<SlotContext> {
  const id = ModelId.parse(model);
  const presence = (await createModelStore({ root: modelsDir, formats: MODEL_FORMATS }).observe([id], signal)).get(id);
  if (presence?.kind !== 'present') throw new Error(JSON.stringify(presence));
  const spec = specOf(task, { model: { default: model, aliases: ['other'], args: ['--threads', '1'] } });
  const listen = { host: '127.0.0.1', port: await freePort() };
  return { name: SlotName.parse(task), spec, model: presence.facts, modelPath: presence.facts.hostPath, listen };
}

/** Each request has a connection of its own: on a busy machine, one that waits is closed by the server just when it is used again. */
const probeIo: ProbeIo = {
  request: async ({ host, port }, { method, path: route, body, contentType = 'application/json', timeoutMs }) =>
    new Promise((resolve) => {
      const fail = (error: Error): void => resolve({ status: 0, body: '', error: error.message });
      const headers = body === undefined ? {} : { 'content-type': contentType };
      const outgoing = request(
        { host, port, method, path: route, headers, agent: false, signal: AbortSignal.timeout(timeoutMs) },
        (answer) => {
          let text = '';
          answer.setEncoding('latin1').on('data', (part: string) => (text += part));
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: text })).on('error', fail);
        },
      );
      outgoing.on('error', fail).end(body);
    }),
};
