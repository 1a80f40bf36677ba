/** Answers `/v1/audio/speech`. */
import type { ServerResponse } from 'node:http';
import { beginStream, eventText, writePart } from './answer.ts';
import type { ChosenVoice } from './decide/choose-voice.ts';
import type { ModelFacts } from './decide/describe-model.ts';
import { CONTENT_TYPES, isOwnFormat, type Speech } from './decide/parse-speech.ts';
import { RefusalError } from './decide/refusal.ts';
import { splitInTwo } from './decide/split-sentences.ts';
import { wavHead } from './decide/write-wav.ts';
import type { Engine } from './engine.ts';
import { NO_NUMBERS, type VoiceSample } from './messages.ts';
import { encodeWithFfmpeg } from './ffmpeg.ts';

/** A voice of the model, or one that it imitates. */
export type SpokenVoice = ChosenVoice & { readonly sample: VoiceSample | undefined };

export interface SpeakOptions {
  readonly engine: Engine;
  readonly facts: ModelFacts;
  readonly ffmpeg: string;
  readonly signal: AbortSignal;
}

/** OpenAI's clients play `pcm` at this rate. */
const PCM_RATE = 24_000;
const BYTES_OF_SAMPLE = 2;
/** What the library says when no character of a text has a sound in the model. */
const NO_SOUND = /produced no audio/;

/** Takes 16-bit samples and passes the encoded sound on. */
interface Encoder {
  write(pcm: Uint8Array): Promise<void>;
  end(): Promise<void>;
  stop(): void;
}

export async function speak(speech: Speech, voice: SpokenVoice, response: ServerResponse, options: SpeakOptions): Promise<void> {
  const { signal, facts } = options;
  const rate = speech.format === 'pcm' ? PCM_RATE : facts.sampleRate;
  const send = async (part: Uint8Array): Promise<void> => {
    if (part.length === 0) return;
    const event = { type: 'speech.audio.delta', audio: Buffer.from(part).toString('base64') };
    await writePart(response, speech.events ? eventText(event) : part, signal);
  };
  let encoder: Encoder | undefined;
  let samples = 0;
  const write = async (pcm: Uint8Array): Promise<void> => {
    // Only now, so that a text without any sound is answered with an error.
    beginStream(response, speech.events ? 'text/event-stream; charset=utf-8' : CONTENT_TYPES[speech.format]);
    encoder ??= await createEncoder(speech, rate, options.ffmpeg, send);
    samples += pcm.length / BYTES_OF_SAMPLE;
    await encoder.write(pcm);
  };
  try {
    for (const text of speech.sentences) {
      await speakSentence(text, { speech, voice, rate, write }, options);
    }
    if (encoder === undefined) throw unspeakable();
    await encoder.end();
  } finally {
    encoder?.stop();
  }
  if (speech.events) await writePart(response, eventText({ type: 'speech.audio.done', usage: usageOf(speech, samples / rate) }), signal);
  response.end();
}

interface SentenceOptions {
  readonly speech: Speech;
  readonly voice: SpokenVoice;
  readonly rate: number;
  /** Gets the sound as it comes from the engine, which does not wait for it. */
  write(pcm: Uint8Array): Promise<void>;
}

/**
 * Resolves once the sound of the sentence is written, so that the next one is not computed for a client that does not read. A sentence whose samples are no numbers is spoken
 * once more in two parts: quantised models fail for some lengths of some sentences. `whole`: the sentence of which the text is a part.
 */
async function speakSentence(text: string, speaking: SentenceOptions, options: SpeakOptions, whole?: string): Promise<void> {
  const { speech, voice, rate, write } = speaking;
  let written: Promise<void> | undefined;
  const onSamples = (pcm: Uint8Array): void => {
    written = (written ?? Promise.resolve()).then(async () => write(pcm));
    // Its failure is noticed below.
    written.catch(() => {});
  };
  try {
    const { speaker, mix, language, sample } = voice;
    const order = { kind: 'speak', text, speaker, mix, speed: speech.speed, language, rate, sample } as const;
    await options.engine.speak(order, onSamples, options.signal);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    if (message === NO_NUMBERS) {
      const parts = splitInTwo(text);
      if (written !== undefined || whole !== undefined || parts.length < 2) throw notSpoken(whole ?? text);
      for (const part of parts) await speakSentence(part, speaking, options, text);
    } else if (!NO_SOUND.test(message)) throw error;
  }
  await written;
}

const notSpoken = (sentence: string): RefusalError =>
  new RefusalError({
    status: 422,
    code: 'audio.not_spoken',
    message: `The model has no sound for "${sentence}": its samples are no numbers; change the sentence, or choose another voice, or a model that is not quantised`,
    param: 'input',
  });

async function createEncoder(speech: Speech, rate: number, ffmpeg: string, send: (part: Uint8Array) => Promise<void>): Promise<Encoder> {
  const { format } = speech;
  if (isOwnFormat(format)) {
    if (format === 'wav') await send(wavHead(rate));
    return { write: send, end: async () => {}, stop: () => {} };
  }
  const { input, output, ended, stop } = encodeWithFfmpeg(ffmpeg, format, rate);
  const passed = (async () => {
    for await (const part of output) await send(part);
  })();
  passed.catch(stop);
  return {
    async write(pcm) {
      if (!input.write(pcm)) await Promise.race([new Promise<void>((resolve) => input.once('drain', resolve)), passed, ended]);
    },
    async end() {
      input.end();
      await passed;
      if (!(await ended)) throw new Error('ffmpeg could not encode the speech');
    },
    stop,
  };
}

const unspeakable = (): RefusalError =>
  new RefusalError({
    status: 422,
    code: 'audio.text_unsupported',
    message: 'Choose a voice for the language of the text: this one has no sound for any of its characters',
    param: 'input',
  });

/** There are no tokens: characters and sentences stand for them. `seconds` of sound are not in OpenAI's. */
const usageOf = ({ characters, sentences }: Speech, seconds: number): object => ({
  input_tokens: characters,
  output_tokens: sentences.length,
  total_tokens: characters + sentences.length,
  seconds: Math.round(seconds * 1000) / 1000,
});
