/**
 * Size of an image, and whether all of it has one colour, as the images of a model that has failed do. Pixels are read
 * of PNG (ISO/IEC 15948) with 8 bits for each sample, which image servers send.
 */
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { readImageFacts } from '../providers/decide/read-image-facts.ts';
import type { SeenImage } from './decide/judge-expectations.ts';

/** Samples of a pixel by the colour type of PNG. Palettes are not among them: their numbers are no shades. */
const SAMPLES: ReadonlyMap<number, number> = new Map([
  [0, 1],
  [2, 3],
  [4, 2],
  [6, 4],
]);
/** An image of 4096 x 4096 pixels with transparency. */
const MOST_BYTES = 2 ** 26;
/** Noise that nobody sees. */
const MOST_SPAN = 2;
/** Rows that are looked at without a pause take about a millisecond. */
const ROWS = 64;
const inflateAsync = promisify(inflate);

/** Undefined for what is no image. */
export async function lookAtImage(bytes: Buffer): Promise<SeenImage | undefined> {
  const facts = readImageFacts(bytes);
  if (facts === undefined) return undefined;
  const { format, width, height } = facts;
  return { width, height, isBlank: format === 'png' ? await isBlankPng(bytes, width, height) : undefined };
}

/** Undefined if the pixels cannot be read. */
async function isBlankPng(bytes: Buffer, width: number, height: number): Promise<boolean | undefined> {
  const samples = SAMPLES.get(bytes[25] ?? -1);
  const [depth, interlace] = [bytes[24], bytes[28]];
  if (samples === undefined || depth !== 8 || interlace !== 0) return undefined;
  const rowBytes = width * samples;
  const size = height * (rowBytes + 1);
  if (size > MOST_BYTES) return undefined;
  const pixels = await inflateAsync(dataOf(bytes), { maxOutputLength: size }).catch(() => undefined);
  if (pixels?.length !== size) return undefined;
  let before = Buffer.alloc(rowBytes);
  const span = { low: Array.from({ length: samples }, () => 255), high: Array.from({ length: samples }, () => 0) };
  for (let y = 0; y < height; y += 1) {
    const start = y * (rowBytes + 1) + 1;
    const row = pixels.subarray(start, start + rowBytes);
    unfilter(pixels[start - 1] ?? 0, row, before, samples);
    for (let at = 0; at < rowBytes; at += 1) {
      const [sample, value] = [at % samples, row[at] ?? 0];
      span.low[sample] = Math.min(span.low[sample] ?? 0, value);
      span.high[sample] = Math.max(span.high[sample] ?? 0, value);
    }
    if (span.high.some((high, sample) => high - (span.low[sample] ?? 0) > MOST_SPAN)) return false;
    before = row;
    if (y % ROWS === ROWS - 1) await setImmediate();
  }
  return true;
}

/** The chunks with pixels. */
function dataOf(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 8; at + 8 <= bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const isData = bytes.toString('latin1', at + 4, at + 8) === 'IDAT';
    if (isData) parts.push(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)));
  }
  return Buffer.concat(parts);
}

type Predict = (left: number, up: number, corner: number) => number;
const PREDICT: readonly (Predict | undefined)[] = [undefined, (left) => left, (_left, up) => up, (left, up) => (left + up) >> 1, paeth];

/** Replaces the differences in a row by its samples. */
function unfilter(filter: number, row: Buffer, above: Buffer, samples: number): void {
  const predict = PREDICT[filter];
  if (predict === undefined) return;
  for (let at = 0; at < row.length; at += 1) {
    const [left, corner] = at < samples ? [0, 0] : [row[at - samples] ?? 0, above[at - samples] ?? 0];
    row[at] = (row[at] ?? 0) + predict(left, above[at] ?? 0, corner);
  }
}

/** The neighbour that is nearest to their plane. */
function paeth(left: number, up: number, corner: number): number {
  const [toLeft, toUp, toCorner] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}
