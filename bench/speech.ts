/** What the service and its speech server add to the library, which is called directly in the same run, and the memory of an hour of sound. */
import { openAsBlob } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { atMost, median, type Row } from './measure.ts';
import { openLibrary, type Library } from './speech-library.ts';
import { RATE, startSpeechBed, tone, writeRecording, type SpeechBed } from './speech-bed.ts';

const ROUNDS = 31;
const SPOKEN_ROUNDS = 5;
const SENTENCE = 'The first sentence is as long as most of them are in a text that is read aloud.';
const SENTENCES = Array.from({ length: 4 }, () => SENTENCE);
/** 80 ms for each character. */
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
    const library = await openLibrary(bed.listener, bed.speaker);
    const transcription = await measureTranscription(bed, library);
    const speech = await measureSpoken(bed, library);
    const memory = await measureMemory(bed);
    return [
      atMost('transcription of 10 s, beyond the library', transcription, { limit: 15, unit: 'ms', digits: 1 }),
      atMost('memory of 60 minutes, beyond that of 1 minute', memory, { limit: 30, unit: 'MB', digits: 1 }),
      atMost('first byte of speech, against the library’s first sentence', speech.first, { limit: 1.1, unit: '×' }),
      atMost('a whole text as pcm, beyond the library', speech.pcm, { limit: 1, unit: 'ms/s of sound' }),
      atMost('a whole text as wav, beyond the library', speech.wav, { limit: 1, unit: 'ms/s of sound' }),
    ];
  } finally {
    await bed.service.dispose();
  }
}

/** Milliseconds; the kind of request is alternated, so that both meet the same machine. */
async function measureTranscription({ service }: SpeechBed, library: Library): Promise<number> {
  const samples = Float32Array.from(tone().subarray(0, 8 * RATE), (value) => value / 32_768);
  const file = await writeRecording(path.join(service.dir, 'short.wav'), 10);
  const direct: number[] = [];
  const served: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const times = [await rested(() => library.transcribe(samples, RATE)), await rested(() => transcribe(service.url, file))] as const;
    // The first round fills caches.
    if (round > 0) direct.push(times[0]);
    if (round > 0) served.push(times[1]);
  }
  process.stdout.write(`  transcription of 10 s: library ${median(direct).toFixed(1)} ms, served ${median(served).toFixed(1)} ms\n`);
  return median(served) - median(direct);
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

async function measureSpoken({ service }: SpeechBed, library: Library) {
  const rounds: { first: number; pcm: number; wav: number; sentence: number }[] = [];
  for (let round = 0; round <= SPOKEN_ROUNDS; round += 1) {
    const sentence = await rested(() => library.speak(SENTENCE));
    const pcm = await rested(() => speak(service.url, 'pcm'));
    const wav = await rested(() => speak(service.url, 'wav'));
    // The same text once more with the library alone, one sentence after the other.
    const whole = await rested(() => speakAll(library));
    const beyond = (ms: number): number => (ms - whole) / (SENTENCES.length * SOUND_SECONDS);
    if (round > 0) rounds.push({ first: pcm.firstMs, pcm: beyond(pcm.wholeMs), wav: beyond(wav.wholeMs), sentence });
  }
  const of = (key: keyof (typeof rounds)[number]): number => median(rounds.map((each) => each[key]));
  process.stdout.write(`  first sentence: library ${of('sentence').toFixed(1)} ms, first byte after ${of('first').toFixed(1)} ms\n`);
  return { first: of('first') / of('sentence'), pcm: of('pcm'), wav: of('wav') };
}

async function rested<T>(measure: () => Promise<T>): Promise<T> {
  await pause(REST_MS);
  return measure();
}

/** Milliseconds of all sentences, one after the other. */
async function speakAll(library: Library): Promise<number> {
  let ms = 0;
  for (const sentence of SENTENCES) ms += await library.speak(sentence);
  return ms;
}

async function speak(url: string, format: string): Promise<{ firstMs: number; wholeMs: number }> {
  const body = JSON.stringify({ model: 'tts', input: SENTENCES.join(' '), response_format: format });
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
