/** What the service and its speech server add to the library, which is called directly in the same run, and the memory of an hour of sound. */
import { openAsBlob } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { alternate } from './alternate.ts';
import { atMost, median, note, type Row } from './measure.ts';
import { openLibrary, type Library } from './speech-library.ts';
import { RATE, startSpeechBed, tone, writeRecording, type SpeechBed } from './speech-bed.ts';

const ROUNDS = 31;
const SENTENCE = 'The first sentence is as long as most of them are in a text that is read aloud.';
/** Of a whole text. */
const SENTENCES = 4;
/** 80 ms for each character: what the demo voice makes of it. */
const SOUND_SECONDS = SENTENCE.length * 0.08;
const MEMORY_EVERY_MS = 100;
/**
 * Before each measurement. After a call, the threads of the library wait for the next one in a loop for about 30 ms, which takes a core from whoever computes next: from the
 * service after a call of the library in this process, and from the library after a request to the service. A machine that only serves has no such neighbour.
 */
const REST_MS = 100;

export async function measureSpeech(): Promise<readonly Row[]> {
  const bed = await startSpeechBed();
  try {
    const library = await openLibrary(bed);
    const transcription = await measureTranscription(bed, library);
    const first = await measureFirstByte(bed, library);
    const whole = await measureWhole(bed, library);
    const memory = await measureMemory(bed);
    return [
      atMost('transcription of 10 s, beyond the library', transcription, { limit: 15, unit: 'ms', digits: 1 }),
      atMost('memory of 60 minutes, beyond that of 1 minute', memory, { limit: 30, unit: 'MB', digits: 1 }),
      atMost('first byte of speech, against the library’s first sentence', first.ratio, { limit: 1.1, unit: '×' }),
      note('  beyond the library', `${first.beyondMs.toFixed(1)} ms`),
      atMost('a whole text as pcm, beyond the library', whole.pcm, { limit: 1, unit: 'ms/s of sound' }),
      atMost('a whole text as wav, beyond the library', whole.wav, { limit: 1, unit: 'ms/s of sound' }),
    ];
  } finally {
    await bed.service.dispose();
  }
}

/** Milliseconds. */
async function measureTranscription({ service }: SpeechBed, library: Library): Promise<number> {
  const samples = Float32Array.from(tone().subarray(0, 8 * RATE), (value) => value / 32_768);
  const file = await writeRecording(path.join(service.dir, 'short.wav'), 10);
  const direct = async (): Promise<number> => library.transcribe(samples, RATE);
  const served = async (): Promise<number> => transcribe(service.url, file);
  const of = await inRounds(ROUNDS, { direct, served });
  process.stdout.write(
    `  transcription of 10 s: library ${median(of('direct')).toFixed(1)} ms, served ${median(of('served')).toFixed(1)} ms\n`,
  );
  return median(beyond(of('served'), of('direct')));
}

async function transcribe(url: string, file: string): Promise<number> {
  const form = new FormData();
  form.append('model', 'stt');
  form.append('file', await openAsBlob(file), 'a.wav');
  const began = performance.now();
  const answer = await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', body: form });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`A transcription failed: ${text}`);
  return performance.now() - began;
}

/** With a voice that takes as long as a trained one: the ratio within a round, because the speed of machines drifts. */
async function measureFirstByte({ service }: SpeechBed, library: Library): Promise<{ readonly ratio: number; readonly beyondMs: number }> {
  const sentence = async (): Promise<number> => library.speakSlowly(SENTENCE);
  const served = async (): Promise<number> => (await speak(service.url, { model: 'slow', sentences: 2, format: 'pcm' })).firstMs;
  const of = await inRounds(ROUNDS, { sentence, served });
  const aloneMs = median(of('sentence'));
  const share = aloneMs / 1000 / SOUND_SECONDS;
  process.stdout.write(
    `  first sentence: library ${aloneMs.toFixed(1)} ms (${share.toFixed(3)} of its sound), first byte after ${median(of('served')).toFixed(1)} ms\n`,
  );
  return {
    ratio: median(of('served').map((ms, round) => ms / (of('sentence')[round] ?? Number.NaN))),
    beyondMs: median(beyond(of('served'), of('sentence'))),
  };
}

/**
 * Milliseconds for each second of sound. The voice takes almost no time: with one that is as slow as a trained one, the time of the computation differs from one time to the next by more than the goal.
 */
async function measureWhole({ service }: SpeechBed, library: Library) {
  const whole = async (format: string): Promise<number> =>
    (await speak(service.url, { model: 'tts', sentences: SENTENCES, format })).wholeMs;
  const direct = async (): Promise<number> => speakAll(library);
  const of = await inRounds(ROUNDS, { direct, pcm: async () => whole('pcm'), wav: async () => whole('wav') });
  const alone = of('direct');
  process.stdout.write(
    `  whole text: library ${median(alone).toFixed(1)} ms, pcm ${median(of('pcm')).toFixed(1)} ms, wav ${median(of('wav')).toFixed(1)} ms\n`,
  );
  const added = (served: readonly number[]): number => median(beyond(served, alone)) / (SENTENCES * SOUND_SECONDS);
  return { pcm: added(of('pcm')), wav: added(of('wav')) };
}

/** Returns the milliseconds of a subject in each round. All of them are measured in each round, so that they meet the same machine, in turning order; each is rested before. */
async function inRounds<K extends string>(
  rounds: number,
  subjects: Readonly<Record<K, () => Promise<number>>>,
): Promise<(name: K) => readonly number[]> {
  const runs = await alternate(new Map(Object.entries<() => Promise<number>>(subjects)), rounds, rested);
  return (name) => runs.get(name) ?? [];
}

/** The differences within each round. */
function beyond(served: readonly number[], direct: readonly number[]): readonly number[] {
  return served.map((ms, round) => ms - (direct[round] ?? Number.NaN));
}

async function rested<T>(measure: () => Promise<T>): Promise<T> {
  await pause(REST_MS);
  return measure();
}

/** Milliseconds of all sentences, one after the other. */
async function speakAll(library: Library): Promise<number> {
  let ms = 0;
  for (let sentence = 0; sentence < SENTENCES; sentence += 1) ms += await library.speak(SENTENCE);
  return ms;
}

interface Spoken {
  /** The slot. */
  readonly model: string;
  readonly sentences: number;
  readonly format: string;
}

async function speak(url: string, { model, sentences, format }: Spoken): Promise<{ firstMs: number; wholeMs: number }> {
  const input = Array.from({ length: sentences }, () => SENTENCE).join(' ');
  const body = JSON.stringify({ model, input, response_format: format });
  const began = performance.now();
  const answer = await fetch(`${url}/v1/audio/speech`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  let firstMs = Number.NaN;
  for await (const _ of answer.body ?? []) if (Number.isNaN(firstMs)) firstMs = performance.now() - began;
  if (answer.status !== 200) throw new Error(`Speech failed with HTTP status ${answer.status}`);
  return { firstMs, wholeMs: performance.now() - began };
}

/** Megabytes that the peak of an hour is above the peak of a minute. */
async function measureMemory(bed: SpeechBed): Promise<number> {
  const { dir } = bed.service;
  const minute = await writeRecording(path.join(dir, 'minute.wav'), 60);
  const hour = await writeRecording(path.join(dir, 'hour.wav'), 3600);
  // What allocators keep grows with the first ones.
  for (let run = 0; run < 20; run += 1) await transcribe(bed.service.url, minute);
  const short = await peakMb(bed, minute);
  const long = await peakMb(bed, hour);
  process.stdout.write(`  memory of all processes: ${short.toFixed(1)} MB with a minute, ${long.toFixed(1)} MB with an hour\n`);
  return long - short;
}

async function peakMb({ service, memoryMb }: SpeechBed, file: string): Promise<number> {
  let pending = true;
  const answered = transcribe(service.url, file).finally(() => (pending = false));
  let peak = 0;
  while (pending) {
    peak = Math.max(peak, await memoryMb());
    await pause(MEMORY_EVERY_MS);
  }
  await answered;
  return Math.max(peak, await memoryMb());
}
