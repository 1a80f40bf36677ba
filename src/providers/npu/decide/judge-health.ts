/** What an answer of FastFlowLM says about its health. A status of 200 says nothing: errors have it, too. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import type { Health, ProbeResponse } from '../../provider.ts';

const Status = z.object({ npu_available: z.boolean(), active_requests: z.number() });
const ErrorBody = z.object({ error: z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)]) });
/** A model that thinks may have nothing else to say in one token. */
const Message = z.object({ content: z.string().nullish(), reasoning_content: z.string().nullish() });
const Chat = z.object({ choices: z.array(z.object({ message: Message })).min(1) });
const Embedding = z.object({ data: z.tuple([z.object({ embedding: z.array(z.number()).min(1) })], z.unknown()) });
const Transcription = z.object({ text: z.string() });
const MAX_QUOTED_CHARACTERS = 200;

export type Alive = Health | { readonly kind: 'busy' };

/** The answer to `GET /api/npu/status`, which comes at once, also while the NPU computes. */
export function judgeStatus({ status, body, error = 'no connection' }: ProbeResponse): Alive {
  if (status === 0) return { kind: 'silent', message: `The server does not respond: ${error}` };
  if (status === 503) return { kind: 'loading', message: 'The server is still starting' };
  if (status !== 200) return { kind: 'failing', message: `A health probe failed with HTTP status ${status}` };
  const known = Status.safeParse(parseJson(body)).data;
  if (known === undefined) return { kind: 'failing', message: 'The answer of the server does not say whether the NPU is available' };
  return known.npu_available && known.active_requests <= 0 ? { kind: 'passing' } : { kind: 'busy' };
}

const SHAPES = { chat: Chat, embedding: Embedding, transcription: Transcription } as const;

/** The answer to the first request for something that the slot serves. */
export function judgeFirst(capability: Capability, { status, body, error = 'no response' }: ProbeResponse): Health {
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
