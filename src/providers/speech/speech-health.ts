/** Asks the speech server whether it is there, and whether it does what its slot is for. */
import { z } from 'zod';
import type { Endpoint, Health, ProbeIo, ProbeResponse } from '../provider.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';

/** The server answers within milliseconds, from another process than the one that computes. */
const ALIVE_TIMEOUT_MS = 3_000;
/** The first request may wait for a model of hundreds of megabytes to be read from the disk. */
const PROBE_TIMEOUT_MS = 30_000;

/** A small request for what the slot is for, and what its answer says. */
interface SpeechCheck {
  readonly path: string;
  readonly body: string | Uint8Array;
  /** Default: JSON. */
  readonly contentType?: string;
  judge(response: ProbeResponse): Health;
}

/**
 * Later probes ask for nothing that has to be computed: a recording of an hour occupies the engine for minutes. The server itself restarts an engine that crashes or that
 * exceeds the time of a request, and says so at this path.
 */
export async function askHealth(endpoint: Endpoint, io: ProbeIo, _slot: unknown, signal: AbortSignal): Promise<Health> {
  return judgeAlive(await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal }));
}

/** The check must pass before the server gets requests. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { judge, ...request }: SpeechCheck,
  signal: AbortSignal,
): Promise<Health> {
  const alive = await askHealth(endpoint, io, undefined, signal);
  if (alive.kind !== 'passing') return alive;
  return judge(await io.request(endpoint, { method: 'POST', ...request, timeoutMs: PROBE_TIMEOUT_MS, signal }));
}

/** What an answer of a speech server says about its health. Pure. */

const Ready = z.object({ status: z.enum(['ready', 'ok']) });
const Transcription = z.object({ text: z.string() });
const ErrorBody = z.object({ error: z.object({ message: z.string() }) });
const MAX_QUOTED_CHARACTERS = 200;
/** A header of a WAV file has 44 bytes, or a few more. */
const WAV_HEADER_CHARACTERS = 128;
const PASSING: Health = { kind: 'passing' };

/** The answer to `GET /health`: the server answers it at once, also while it is busy, and says whether its engine runs. */
function judgeAlive(response: ProbeResponse): Health {
  if (response.status === 0) return { kind: 'silent', message: `The server does not respond: ${response.error ?? 'no connection'}` };
  const failed = judgeStatus(response);
  if (failed !== undefined) return failed;
  if (Ready.safeParse(parseJson(response.body)).success) return PASSING;
  return { kind: 'failing', message: 'The answer to "/health" does not say that the server is ready' };
}

/** The answer to a recording of one second. What was understood does not matter: a sound model understands nothing in a tone. */
export function judgeTranscription(response: ProbeResponse): Health {
  const failed = judgeStatus(response);
  if (failed !== undefined) return failed;
  if (Transcription.safeParse(parseJson(response.body)).success) return PASSING;
  return { kind: 'failing', message: 'The transcription of a second of sound has no "text"' };
}

/** The answer to a short text, of which the beginning was read as if it were text. Bytes of zero stay what they are. */
export function judgeSpeech(response: ProbeResponse): Health {
  const failed = judgeStatus(response);
  if (failed !== undefined) return failed;
  const { body } = response;
  if (!body.startsWith('RIFF') || body.length <= WAV_HEADER_CHARACTERS) {
    return { kind: 'failing', message: 'The answer to a short text is not a WAV file with sound in it' };
  }
  // Samples of zero are silence.
  if (/[^\0]/.test(body.slice(WAV_HEADER_CHARACTERS))) return PASSING;
  return { kind: 'nonsense', message: 'The model answers nonsense: for a short text, it computed complete silence' };
}

/** Undefined for an answer that has to be looked at. */
function judgeStatus(response: ProbeResponse): Health | undefined {
  const { status, error = 'no response' } = response;
  if (status === 200) return undefined;
  if (status === 0) return { kind: 'loading', message: `The server is running, but the model has not answered a health probe: ${error}` };
  if (status === 503 || status === 429) return { kind: 'loading', message: `The server is loading the model, or busy: ${quote(response)}` };
  return { kind: 'failing', message: `A health probe failed with HTTP status ${status}: ${quote(response)}` };
}

function quote({ body }: ProbeResponse): string {
  const message = ErrorBody.safeParse(parseJson(body)).data?.error.message ?? body;
  return JSON.stringify(message.slice(0, MAX_QUOTED_CHARACTERS));
}
