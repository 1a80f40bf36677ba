/** The provider for models in GGUF files, which llama-server of llama.cpp serves. */
import type { Provider, SlotContext } from '../provider.ts';
import { inferPath } from './decide/infer-path.ts';
import { ggufModel } from './decide/gguf-model.ts';
import { roleOf } from './decide/model-role.ts';
import { deriveHealth, type Probe } from './decide/derive-health.ts';
import { SAFE_FLAGS } from './decide/safe-flags.ts';
import { devicesOf, PROGRAM, serverCommand, serverEnvironment, type GgufSlot } from './decide/server-command.ts';
import { serverMemory } from './decide/server-memory.ts';
import { ggufFormat } from './gguf-format.ts';

/** The first request may compile shaders, which takes many seconds on a slow GPU. */
const PROBE_TIMEOUT_MS = 30_000;
/** `/health` is answered by threads that wait for nothing, within milliseconds. */
const ALIVE_TIMEOUT_MS = 3_000;

export const gguf: Provider = {
  kind: 'gguf',
  program: PROGRAM,
  containerPort: 8080,
  readyPath: '/health',
  safeFlags: SAFE_FLAGS,
  models: ggufFormat,
  devices: devicesOf,
  buildEnv: (slot) => serverEnvironment(ggufSlot(slot)),
  startCmd: (slot) => serverCommand(ggufSlot(slot)),
  estimateMemory: (name, spec, model) => serverMemory(name, spec, ggufModel(model)),
  capabilities: (name, spec, model) => roleOf(name, spec, ggufModel(model)).capabilities,
  /** A server that is busy with long requests answers the probe late, but `/health` immediately. */
  async health(endpoint, io, slot, signal) {
    const alive = await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal });
    const probe = probeFor(slot);
    if (alive.status !== 200) return deriveHealth(probe, alive);
    const answer = await io.request(endpoint, { method: 'POST', ...PROBES[probe], timeoutMs: PROBE_TIMEOUT_MS, signal });
    if (answer.status !== 0) return deriveHealth(probe, answer);
    const why = answer.error ?? 'no response';
    return { kind: 'loading', message: `The server is running, but the model has not answered a health probe: ${why}` };
  },
  infer: inferPath,
};

const PROBES: Readonly<Record<Probe, { readonly path: string; readonly body: string }>> = {
  completion: { path: '/v1/completions', body: JSON.stringify({ prompt: 'Hi', max_tokens: 1, temperature: 0, cache_prompt: false }) },
  embedding: { path: '/v1/embeddings', body: JSON.stringify({ input: 'Hi', encoding_format: 'float' }) },
  rerank: { path: '/v1/rerank', body: JSON.stringify({ query: 'Hi', documents: ['Hello'] }) },
};

function ggufSlot(slot: SlotContext): GgufSlot {
  return { ...slot, model: ggufModel(slot.model) };
}

function probeFor({ name, spec, model }: Pick<SlotContext, 'name' | 'spec' | 'model'>): Probe {
  const { start } = roleOf(name, spec, ggufModel(model));
  if (start === 'rerank') return 'rerank';
  return start === 'embed' ? 'embedding' : 'completion';
}
