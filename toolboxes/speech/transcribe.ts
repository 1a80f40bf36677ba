/** Answers `/v1/audio/transcriptions` and `/v1/audio/translations`. */
import type { ServerResponse } from 'node:http';
import { beginStream, eventText, sendText, writePart } from './answer.ts';
import { createCutter, type Piece } from './decide/cut-at-pauses.ts';
import type { ModelFacts } from './decide/describe-model.ts';
import { deltaEvent, deltaOf, doneEvent, formatTranscript, type Segment, type Transcript } from './decide/format-transcript.ts';
import { soundsLikeSpeech } from './decide/hear-syllables.ts';
import { joinWords } from './decide/join-words.ts';
import type { Transcription } from './decide/parse-transcription.ts';
import { RefusalError } from './decide/refusal.ts';
import type { Engine } from './engine.ts';
import type { Sound } from './open-sound.ts';

export interface TranscribeOptions {
  readonly engine: Engine;
  readonly facts: ModelFacts;
  readonly task: Transcript['task'];
  readonly wanted: Transcription;
  readonly signal: AbortSignal;
}

/** Models are trained on longer sound than a short word; silence is added behind it. */
const LEAST_SECONDS = 1;
const EVENT_STREAM = 'text/event-stream; charset=utf-8';

export async function transcribe(sound: Sound, response: ServerResponse, options: TranscribeOptions): Promise<void> {
  const { task, wanted, signal } = options;
  if (wanted.stream) beginStream(response, EVENT_STREAM);
  const segments: Segment[] = [];
  let language = wanted.language ?? options.facts.languages[0] ?? '';
  const cutter = createCutter(sound.rate, options.facts.mostSeconds, sound.most);
  const hear = async (pieces: Iterable<Piece>): Promise<void> => {
    for (const piece of pieces) {
      const heard = await hearPiece(piece, sound.rate, options);
      if (heard.language !== '') language = heard.language;
      if (heard.segment.text === '') continue;
      if (wanted.stream) await writePart(response, eventText(deltaEvent(deltaOf(heard.segment.text, segments.length === 0))), signal);
      segments.push(heard.segment);
    }
  };
  for await (const samples of sound.samples) {
    signal.throwIfAborted();
    await hear(cutter.push(samples));
  }
  await hear(cutter.end());
  cutter.free();
  const transcript: Transcript = { task, language: task === 'translate' ? 'en' : language, duration: cutter.seconds(), segments };
  if (!wanted.stream) return sendText(response, 200, formatTranscript(wanted.format, transcript, wanted.granularities));
  await writePart(response, eventText(doneEvent(transcript)), signal);
  response.end();
}

async function hearPiece(piece: Piece, rate: number, { engine, facts, task, wanted, signal }: TranscribeOptions) {
  const end = piece.start + piece.samples.length / rate;
  const samples = padded(piece.samples, rate * LEAST_SECONDS);
  const { language = '', prompt, temperature } = wanted;
  const heard = await engine.listen({ samples, rate, language, task, prompt, temperature }, signal);
  if (heard.text.trim() === '' && facts.failsSilently === true && soundsLikeSpeech(piece.samples, rate))
    throw notUnderstood(piece.start, end);
  const words = joinWords(heard.tokens, heard.timestamps, piece.start, end);
  const segment: Segment = { start: piece.start, end, text: heard.text.trim(), words };
  return { segment, language: heard.language };
}

const notUnderstood = (start: number, end: number): RefusalError =>
  new RefusalError({
    status: 422,
    code: 'audio.not_understood',
    message: `The model returned no text for the speech from ${start.toFixed(1)} s to ${end.toFixed(1)} s; send a clearer recording, or choose another model`,
    param: 'file',
  });

function padded(samples: Float32Array, least: number): Float32Array {
  if (samples.length >= least) return samples;
  const longer = new Float32Array(least);
  longer.set(samples);
  return longer;
}
