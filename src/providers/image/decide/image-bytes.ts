/** Recognises image formats, and writes images as base64 in pieces. Pure. */
import type { ImageParameters } from './image-parameters.ts';

export const MAGIC_BYTES = 12;

type Format = ImageParameters['outputFormat'];

export function beginsAs(format: Format, bytes: Uint8Array): boolean {
  const text = latin1(bytes.subarray(0, MAGIC_BYTES));
  if (format === 'png') return text.startsWith('\u0089PNG\r\n\u001a\n');
  if (format === 'jpeg') return text.startsWith('\u00ff\u00d8\u00ff');
  return text.startsWith('RIFF') && text.slice(8, 12) === 'WEBP';
}

/** Half an image has other last bytes. */
export function endsAs(format: Format, bytes: Uint8Array): boolean {
  if (format === 'png') return latin1(bytes.subarray(-8, -4)) === 'IEND';
  // The head of a WebP image has its length, and readers complain.
  return format === 'jpeg' ? latin1(bytes.subarray(-2)) === '\u00ff\u00d9' : bytes.length > MAGIC_BYTES;
}

const latin1 = (bytes: Uint8Array): string => String.fromCharCode(...bytes);

export function encodePiece(rest: Uint8Array, piece: Uint8Array) {
  const all: Uint8Array = Buffer.concat([rest, piece]);
  const whole = all.length - (all.length % 3);
  return { text: base64(all.subarray(0, whole)), rest: all.subarray(whole) };
}

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');

/** A multiple of three, so that the pieces join to one base64 string. */
const PIECE_BYTES = 768 * 1024;

/** As one string, a large image would be in memory several times. */
export function* textAround(before: string, image: Uint8Array, after: string): Generator<string> {
  for (let from = 0; from === 0 || from < image.length; from += PIECE_BYTES) {
    const end = from + PIECE_BYTES;
    yield (from === 0 ? before : '') + base64(image.subarray(from, end)) + (end >= image.length ? after : '');
  }
}
