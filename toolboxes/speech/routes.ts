/** What happens with a request from its place in the queue to its answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { chooseLanguage, chooseVoice } from './decide/choose-voice.ts';
import type { Flags } from './decide/parse-flags.ts';
import { parseSpeech, SAMPLE_BYTES } from './decide/parse-speech.ts';
import { parseTranscription } from './decide/parse-transcription.ts';
import { RefusalError, type Outcome, type Refusal } from './decide/refusal.ts';
import type { Loaded } from './loaded.ts';
import { openSound } from './open-sound.ts';
import { openSample } from './open-sample.ts';
import type { Budget } from './recording.ts';
import { readUpload } from './read-upload.ts';
import { speak } from './speak.ts';
import { transcribe } from './transcribe.ts';

export type Route = 'transcribe' | 'translate' | 'speak';

export interface Exchange extends Loaded {
  readonly flags: Flags;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborted when the client leaves or the server stops. */
  readonly client: AbortSignal;
  readonly disk: Budget;
  readonly memory: Budget;
  turn(signal: AbortSignal): Promise<void>;
}

export const NOT_FOUND: Refusal = {
  status: 404,
  code: 'route.not_found',
  message: 'Choose another path: this server does not have this one',
};
export const FULL: Refusal = {
  status: 429,
  code: 'engine.queue_full',
  message: 'Send the request again later: too many requests are waiting already',
  retryAfter: 5,
};
export const STOPPING: Refusal = {
  status: 503,
  code: 'engine.stopping',
  message: 'Send the request again: the server is stopping',
  retryAfter: 1,
};

/** A text of 4,096 characters is much shorter, even if every character is escaped. */
const JSON_BYTES_PER_CHARACTER = 12;
const JSON_BYTES = 64 * 1024;

export async function handleRoute(route: Route, exchange: Exchange): Promise<void> {
  return route === 'speak' ? handleSpeech(exchange) : handleTranscription(route, exchange);
}

async function handleTranscription(task: 'transcribe' | 'translate', exchange: Exchange): Promise<void> {
  const { request, response, client, facts, flags } = exchange;
  const { fields, recording } = await readUpload(request, { ...exchange, limit: flags.limit });
  try {
    const wanted = unwrap(parseTranscription(fields, task, facts));
    addNote(response, wanted.note);
    await exchange.turn(client);
    await withinTime(exchange, async (signal) => {
      const sound = await openSound(recording, exchange.ffmpeg);
      const close = (): void => sound.close();
      signal.addEventListener('abort', close, { once: true });
      try {
        await transcribe(sound, response, { engine: exchange.engine, facts, task, wanted, signal });
      } finally {
        sound.close();
      }
    });
  } finally {
    await recording.remove();
  }
}

async function handleSpeech(exchange: Exchange): Promise<void> {
  const { request, response, client, facts, flags, ffmpeg } = exchange;
  if (!/^application\/(?:[a-z.+-]+\+)?json\b/i.test(request.headers['content-type'] ?? ''))
    throw new RefusalError({ status: 415, code: 'request.media_type', message: 'Send the request as "application/json"' });
  const most = JSON_BYTES + JSON_BYTES_PER_CHARACTER * flags.maxInput + (facts.clones ? 2 * SAMPLE_BYTES : 0);
  const text = await readText(request, most);
  const speech = unwrap(parseSpeech(text, { compression: ffmpeg !== undefined, maxInput: flags.maxInput }));
  const voice = unwrap(chooseVoice(facts, speech));
  const { language, note } = chooseLanguage(facts.languages, voice, speech.language);
  addNote(response, note);
  await exchange.turn(client);
  await withinTime(exchange, async (signal) => {
    const sample = await openSample(speech.sample, { ...exchange, signal });
    await speak(speech, { ...voice, language, sample }, response, { engine: exchange.engine, facts, ffmpeg: ffmpeg ?? 'none', signal });
  });
}

function addNote(response: ServerResponse, note: string | undefined): void {
  if (note !== undefined) response.setHeader('x-svc-note', note);
}

/** Ends the work when the client leaves, the server stops, or the request has taken too long. */
async function withinTime({ client, flags }: Exchange, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const late = new AbortController();
  const message = `Send less at once, or let the server take longer with "--timeout": the request took longer than ${flags.timeout} s`;
  const timer = setTimeout(() => late.abort(new RefusalError({ status: 504, code: 'engine.timeout', message })), flags.timeout * 1000);
  const signal = AbortSignal.any([client, late.signal]);
  try {
    await work(signal);
  } catch (error) {
    // What fails after the end of the signal fails because of it.
    throw signal.aborted ? signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

async function readText(request: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limit) throw new RefusalError({ status: 413, code: 'request.too_large', message: `Send a body of at most ${limit} bytes` });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function unwrap<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new RefusalError(outcome.refusal);
  return outcome.value;
}
