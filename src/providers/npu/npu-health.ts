/**
 * Asks FastFlowLM for its health. It must not lose a client while it computes, and computes one request after the other: so a probe asks for nothing that has to be
 * computed, and the first one does it only while nobody else is served.
 */
import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { PROBE_FORM_TYPE, probeForm } from '../speech/decide/probe-recording.ts';
import { judgeFirst, judgeStatus, type Alive } from './decide/judge-health.ts';
import { EMBEDDER, LISTENER } from './decide/npu-models.ts';
import { capabilitiesOf } from './decide/npu-command.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';

/** The server sleeps for a third of a second in the threads that answer, between two requests for the NPU. */
const STATUS_TIMEOUT_MS = 10_000;
/** The first request may be the one for which a model is moved into the memory of the NPU. */
const FIRST_TIMEOUT_MS = 60_000;

export const READY_PATH = '/api/npu/status';

export async function askHealth(endpoint: Endpoint, io: ProbeIo, _slot: unknown, signal: AbortSignal): Promise<Health> {
  const alive = await askStatus(endpoint, io, signal);
  return alive.kind === 'busy' ? { kind: 'passing' } : alive;
}

/** One request for each thing that the slot serves, one after the other. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec, model }: Pick<SlotContext, 'spec' | 'model'>,
  signal: AbortSignal,
): Promise<Health> {
  const alive = await askStatus(endpoint, io, signal);
  // It is asked again later. A request that waits behind others could be given up before its turn, which can crash the server.
  if (alive.kind === 'busy') return { kind: 'loading', message: 'The NPU still computes an earlier request' };
  if (alive.kind !== 'passing') return alive;
  for (const capability of capabilitiesOf(spec, model)) {
    const request = { method: 'POST', timeoutMs: FIRST_TIMEOUT_MS, signal, ...firstRequest(capability, model.id) } as const;
    const verdict = judgeFirst(capability, await io.request(endpoint, request));
    if (verdict.kind !== 'passing') return verdict;
  }
  return { kind: 'passing' };
}

async function askStatus(endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<Alive> {
  return judgeStatus(await io.request(endpoint, { method: 'GET', path: READY_PATH, timeoutMs: STATUS_TIMEOUT_MS, signal }));
}

function firstRequest(
  capability: Capability,
  model: string,
): { readonly path: string; readonly body: string | Uint8Array; readonly contentType?: string } {
  if (capability === 'transcription') return { path: '/v1/audio/transcriptions', body: probeForm(LISTENER), contentType: PROBE_FORM_TYPE };
  if (capability === 'embedding') return { path: '/v1/embeddings', body: JSON.stringify({ model: EMBEDDER, input: 'Hi' }) };
  return { path: '/v1/chat/completions', body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 }) };
}
