/**
 * Asks FastFlowLM for its health. It must not lose a client while it computes, and computes one request after the other: so a probe asks for nothing that has to be
 * computed, and the first one does it only while nobody else is served.
 */
import { z } from 'zod';
import type { Endpoint, Health, ProbeIo, SlotContext, ProbeResponse } from '../provider.ts';
import { PROBE_FORM_TYPE, probeForm } from '../speech/decide/probe-recording.ts';
import { EMBEDDER, LISTENER } from './decide/npu-models.ts';
import { capabilitiesOf } from './decide/npu-command.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';

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

/** What an answer of FastFlowLM says about its health. A status of 200 says nothing: errors have it, too. Pure. */

const Status = z.object({ npu_available: z.boolean(), active_requests: z.number() });
const ErrorBody = z.object({ error: z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)]) });
/** A model that thinks may have nothing else to say in one token. */
const Message = z.object({ content: z.string().nullish(), reasoning_content: z.string().nullish() });
const Chat = z.object({ choices: z.array(z.object({ message: Message })).min(1) });
const Embedding = z.object({ data: z.tuple([z.object({ embedding: z.array(z.number()).min(1) })], z.unknown()) });
const Transcription = z.object({ text: z.string() });
const MAX_QUOTED_CHARACTERS = 200;

type Alive = Health | { readonly kind: 'busy' };

/** The answer to `GET /api/npu/status`, which comes at once, also while the NPU computes. */
function judgeStatus({ status, body, error = 'no connection' }: ProbeResponse): Alive {
  if (status === 0) return { kind: 'silent', message: `The server does not respond: ${error}` };
  if (status === 503) return { kind: 'loading', message: 'The server is still starting' };
  if (status !== 200) return { kind: 'failing', message: `A health probe failed with HTTP status ${status}` };
  const known = Status.safeParse(parseJson(body)).data;
  if (known === undefined) return { kind: 'failing', message: 'The answer of the server does not say whether the NPU is available' };
  return known.npu_available && known.active_requests <= 0 ? { kind: 'passing' } : { kind: 'busy' };
}

const SHAPES = { chat: Chat, embedding: Embedding, transcription: Transcription } as const;

/** The answer to the first request for something that the slot serves. */
function judgeFirst(capability: Capability, { status, body, error = 'no response' }: ProbeResponse): Health {
  if (status === 0) return { kind: 'loading', message: `The server is running, but the model has not answered a health probe: ${error}` };
  if (status === 503) return { kind: 'loading', message: 'The server is still loading the model' };
  const value = parseJson(body);
  const failure = ErrorBody.safeParse(value).data?.error;
  if (status !== 200 || failure !== undefined) {
    const quoted = JSON.stringify((failure ?? body).slice(0, MAX_QUOTED_CHARACTERS));
    return { kind: 'failing', message: `The server cannot serve "${capability}": it answers ${status}: ${quoted}` };
  }
  const shape = Object.entries(SHAPES).find(([name]) => name === capability)?.[1];
  if (shape?.safeParse(value).success !== true) {
    return { kind: 'failing', message: `The server does not serve "${capability}", although it was started for it` };
  }
  const vector = Embedding.safeParse(value).data?.data[0].embedding;
  if (capability === 'embedding' && vector?.every((number) => number === 0) === true) {
    return { kind: 'nonsense', message: 'The model answers nonsense: each number of the vector of a text is 0' };
  }
  return { kind: 'passing' };
}
