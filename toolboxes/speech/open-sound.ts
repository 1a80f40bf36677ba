/** Opens a recording as a stream of samples in one channel. */
import { open } from 'node:fs/promises';
import { nameFormat, readWavHead, toMono, WAV_HEAD_BYTES, type WavSound } from './decide/read-wav.ts';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import { decodeWithFfmpeg, READ_RATE } from './ffmpeg.ts';
import type { Recording } from './recording.ts';

export interface Sound {
  /** Hertz. */
  readonly rate: number;
  /** How many samples there are at most; `Infinity` if that is not known. */
  readonly most: number;
  /** Parts, each of which is valid until the next one is asked for. */
  readonly samples: AsyncIterable<Float32Array>;
  /** Ends the program that decodes it. */
  close(): void;
}

const READ_BYTES = 64 * 1024;
const FLOAT_BYTES = 4;

const unusable = (why: string): RefusalError =>
  new RefusalError({ status: 400, code: 'audio.invalid', message: `Send another file: ${why}`, param: 'file' });
const needsFfmpeg = (format: string): Refusal => ({
  status: 422,
  code: 'audio.format_unsupported',
  message: `Send a WAV file, or install ffmpeg on the machine of the server: it is needed to read ${format}`,
  param: 'file',
});

/** `ffmpeg`: the program, if there is one. Throws a `RefusalError` if the file contains no sound. */
export async function openSound(recording: Recording, ffmpeg: string | undefined): Promise<Sound> {
  if (recording.size === 0) throw unusable('this one is empty');
  const head = recording.bytes?.subarray(0, WAV_HEAD_BYTES) ?? (await readHead(await recording.toFile()));
  const wav = readWavHead(head, recording.size);
  if (wav.kind === 'damaged') throw unusable(wav.why);
  if (wav.kind === 'sound') return openWav(recording, wav.sound);
  const format = nameFormat(head);
  if (ffmpeg === undefined) throw format === undefined ? unusable('this one is no audio') : new RefusalError(needsFfmpeg(format));
  const conversion = decodeWithFfmpeg(ffmpeg, await recording.toFile());
  const samples = floats(conversion.output);
  const first = await samples.next();
  if (first.done === true) {
    const ended = await conversion.ended;
    throw unusable(ended ? 'this one contains no sound' : 'this one is no audio that ffmpeg can read, or it is damaged');
  }
  return { rate: READ_RATE, most: Number.POSITIVE_INFINITY, samples: prepend(first.value, samples), close: conversion.stop };
}

async function openWav(recording: Recording, sound: WavSound): Promise<Sound> {
  const { from, to, rate } = sound;
  const most = Math.floor((to - from) / (sound.width * sound.channels));
  if (most === 0) throw unusable('this one contains no samples');
  const parts =
    recording.bytes === undefined ? partsOfFile(await recording.toFile(), from, to) : partsOf(recording.bytes.subarray(from, to));
  return { rate, most, samples: blocks(parts, sound), close: () => undefined };
}

/** All parts are read into the same memory: an hour of sound would leave 115 MB of garbage otherwise. */
async function* partsOfFile(file: string, from: number, to: number): AsyncGenerator<Buffer> {
  const part = Buffer.allocUnsafeSlow(READ_BYTES);
  const handle = await open(file, 'r');
  try {
    for (let at = from; at < to;) {
      const { bytesRead } = await handle.read(part, 0, Math.min(READ_BYTES, to - at), at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield part.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

async function* partsOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += READ_BYTES) yield bytes.subarray(at, at + READ_BYTES);
}

async function* blocks(stream: AsyncIterable<Buffer>, sound: WavSound): AsyncGenerator<Float32Array> {
  const block = sound.width * sound.channels;
  // Used again for each part, because new memory costs more than the numbers in it.
  let mono = new Float32Array(0);
  for await (const bytes of aligned(stream, block)) {
    const count = bytes.length / block;
    if (mono.length < count) mono = new Float32Array(count);
    yield toMono(bytes, sound, mono.subarray(0, count));
  }
}

async function* floats(stream: AsyncIterable<Buffer>): AsyncGenerator<Float32Array> {
  const layout: WavSound = { encoding: 'float', width: FLOAT_BYTES, channels: 1, rate: READ_RATE, from: 0, to: 0 };
  yield* blocks(stream, layout);
}

/** Parts whose length is a multiple of `block`, each of which is valid until the next one is asked for. */
async function* aligned(stream: AsyncIterable<Buffer>, block: number): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % block);
    // A copy, because the memory of a part may be used for the next one.
    rest = Buffer.from(bytes.subarray(whole));
    if (whole > 0) yield bytes.subarray(0, whole);
  }
}

async function* prepend<T>(first: T, more: AsyncIterable<T>): AsyncGenerator<T> {
  yield first;
  yield* more;
}

async function readHead(file: string): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(WAV_HEAD_BYTES), 0, WAV_HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
