/**
 * A provider for tests, whole and small: its models are directories, its server is a real process that repeats the phrase of its model, and
 * speaks a language of its own about embeddings. It takes the place of a kind
 * that this version has no provider for.
 */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { rankBackends } from '../../../src/providers/decide/rank-backends.ts';
import type { Health, ModelFacts, ProbeResponse, Provider } from '../../../src/providers/provider.ts';
import { findProgram } from '../../../src/providers/host-program.ts';
import { parseJson } from '../../../src/platform/decide/parse-json.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import { translateEmbedding } from './toy-embedding.ts';
import { toyFormat, ToyContents } from './toy-format.ts';

export const TOY_SERVER = fileURLToPath(new URL('toy-server.mjs', import.meta.url));
const PROGRAM = 'toy-server';
const MIB = 2 ** 20;
const DEFAULT_CONTEXT = 1024;
const ALIVE_TIMEOUT_MS = 3000;
const PROBE_TIMEOUT_MS = 10_000;

export const toy: Provider = {
  kind: 'npu',
  program: PROGRAM,
  toolbox: { folder: 'toy', backends: ['npu'] },
  containerPort: 8080,
  readyPath: '/alive',
  safeFlags: new Set(['--slowly']),
  models: toyFormat,
  openProgram({ env }) {
    const find = async () => {
      const found = await findProgram(PROGRAM, env['PATH']);
      return found === undefined
        ? fail('stalled', 'ProgramMissing', `Install "${PROGRAM}", and put it on the PATH of the service: it is not on this machine`)
        : ok([found] as const);
    };
    return {
      resolve: find,
      async describe() {
        const found = await find();
        return found.ok ? ok({ name: `"${found.value[0]}"` }) : found;
      },
      // It computes with whatever there is and says so, as a simulator would.
      async reportBackends() {
        const found = await find();
        return found.ok ? { name: `"${path.basename(found.value[0])}"`, backends: ['npu'] } : undefined;
      },
    };
  },
  rankBackends: (hardware) => rankBackends('npu', hardware),
  devices: (backend) => (backend === 'npu' ? ['/dev/accel'] : []),
  buildEnv: () => ({ TOY_LANGUAGE: 'en' }),
  startCmd: ({ modelPath, listen, spec }) => [
    PROGRAM,
    '--host',
    listen.host,
    '--port',
    String(listen.port),
    '--model',
    modelPath,
    ...spec.model.args,
  ],
  estimateMemory(_name, { model, resources }, facts) {
    const weights = contentsOf(facts)?.weightsBytes ?? facts.sizeBytes;
    const onDevice = weights + (model.context ?? DEFAULT_CONTEXT) * 1024;
    return resources.gpus === 0 ? { hostBytes: MIB + onDevice, deviceBytes: 0 } : { hostBytes: MIB, deviceBytes: onDevice };
  },
  capabilities: (_name, _spec, facts) => (contentsOf(facts) === undefined ? [] : ['chat', 'embedding']),
  async health(endpoint, io, _slot, signal) {
    const alive = await io.request(endpoint, { method: 'GET', path: '/alive', timeoutMs: ALIVE_TIMEOUT_MS, signal });
    if (alive.status !== 200) return judge(alive);
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }] });
    return judge(await io.request(endpoint, { method: 'POST', path: '/chat', body, timeoutMs: PROBE_TIMEOUT_MS, signal }), true);
  },
  infer({ capability, path: asked }, capabilities) {
    if (capabilities.includes(capability) && asked === '/v1/embeddings') return { kind: 'translate', run: translateEmbedding };
    if (capabilities.includes(capability) && asked === '/v1/chat/completions') return { kind: 'forward', path: '/chat' };
    return {
      kind: 'refuse',
      message: `Send this request to a slot with another model: a toy does not answer "${asked}"`,
    };
  },
};

function contentsOf({ provider, contents }: ModelFacts) {
  return provider === 'npu' ? ToyContents.safeParse(contents).data : undefined;
}

const Answer = z.object({ choices: z.tuple([z.object({ message: z.object({ content: z.string().min(1) }) })], z.unknown()) });

function judge({ status, body, error = 'no connection' }: ProbeResponse, isAlive = false): Health {
  if (status === 0 && isAlive) return { kind: 'loading', message: `The server is busy: ${error}` };
  if (status === 0) return { kind: 'silent', message: `The server does not respond: ${error}` };
  if (status === 503) return { kind: 'loading', message: 'The server is still loading the model' };
  if (status !== 200) return { kind: 'failing', message: `A health probe failed with HTTP status ${status}` };
  if (!Answer.safeParse(parseJson(body)).success) return { kind: 'failing', message: 'The response to a health probe has no text' };
  return { kind: 'passing' };
}
