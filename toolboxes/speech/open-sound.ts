/** Opens a file with sound as a stream of samples in one channel. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { nameFormat, readWavHead, toMono, WAV_HEAD_BYTES, type WavSound } from './decide/read-wav.ts';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import { decodeWithFfmpeg, READ_RATE } from './ffmpeg.ts';

export interface Sound {
  /** Hertz. */
  readonly rate: number;
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
export async function openSound(file: string, size: number, ffmpeg: string | undefined): Promise<Sound> {
  if (size === 0) throw unusable('this one is empty');
  const head = await readHead(file);
  const wav = readWavHead(head, size);
  if (wav.kind === 'damaged') throw unusable(wav.why);
  if (wav.kind === 'sound') return openWav(file, wav.sound);
  const format = nameFormat(head);
  if (ffmpeg === undefined) throw format === undefined ? unusable('this one is no audio') : new RefusalError(needsFfmpeg(format));
  const conversion = decodeWithFfmpeg(ffmpeg, file);
  const samples = floats(conversion.output);
  const first = await samples.next();
  if (first.done === true) {
    const ended = await conversion.ended;
    throw unusable(ended ? 'this one contains no sound' : 'this one is no audio that ffmpeg can read, or it is damaged');
  }
  return { rate: READ_RATE, samples: prepend(first.value, samples), close: conversion.stop };
}

function openWav(file: string, sound: WavSound): Sound {
  if (sound.to - sound.from < sound.width * sound.channels) throw unusable('this one contains no samples');
  const stream = createReadStream(file, { start: sound.from, end: sound.to - 1, highWaterMark: READ_BYTES });
  return { rate: sound.rate, samples: blocks(stream, sound), close: () => stream.destroy() };
}

async function* blocks(stream: AsyncIterable<Buffer>, sound: WavSound): AsyncGenerator<Float32Array> {
  for await (const bytes of aligned(stream, sound.width * sound.channels)) yield toMono(bytes, sound);
}

async function* floats(stream: AsyncIterable<Buffer>): AsyncGenerator<Float32Array> {
  const layout: WavSound = { encoding: 'float', width: FLOAT_BYTES, channels: 1, rate: READ_RATE, from: 0, to: 0 };
  for await (const bytes of aligned(stream, FLOAT_BYTES)) yield toMono(bytes, layout);
}

/** Parts whose length is a multiple of `block`. */
async function* aligned(stream: AsyncIterable<Buffer>, block: number): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % block);
    rest = bytes.subarray(whole);
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
