/**
 * Reads the outermost fields of an ONNX file, to find damage and metadata before the engine loads it: the engine aborts on a damaged file.
 * The numbers of the fields are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. Pure.
 */

/** What to read next: bytes from `at` on, or nothing more. */
export type OnnxStep =
  | { readonly kind: 'read'; readonly at: number; readonly length: number }
  | { readonly kind: 'damaged'; readonly why: string }
  | { readonly kind: 'done'; readonly metadata: Readonly<Record<string, string>> };

const GRAPH = 7;
const METADATA = 14;
/** A key and its value. The longest known ones are lists of speakers with some kilobytes. */
const METADATA_LIMIT = 1024 * 1024;
const HEAD_BYTES = 20;

/**
 * Walks over the fields of a file of `size` bytes: yields which bytes it needs and is resumed with them. It skips the graph, so that it
 * reads a few kilobytes of a model of any size.
 */
export function* walkOnnx(size: number): Generator<OnnxStep, OnnxStep, Uint8Array> {
  const metadata: Record<string, string> = {};
  let graph = false;
  let at = 0;
  while (at < size) {
    const head = yield { kind: 'read', at, length: Math.min(HEAD_BYTES, size - at) };
    const field = readHead(head);
    if (field === undefined) return { kind: 'damaged', why: `it is not an ONNX file: byte ${at} begins no field` };
    const end = at + field.headLength + field.length;
    if (end > size) return { kind: 'damaged', why: `it ends after ${size} bytes, but its content needs ${end}` };
    if (field.number === GRAPH && field.bytes) graph = true;
    if (field.number === METADATA && field.bytes && field.length <= METADATA_LIMIT) {
      const entry = readEntry(yield { kind: 'read', at: at + field.headLength, length: field.length });
      if (entry === undefined) return { kind: 'damaged', why: 'its metadata cannot be read' };
      metadata[entry.key] = entry.value;
    }
    at = end;
  }
  return graph ? { kind: 'done', metadata } : { kind: 'damaged', why: 'it is not an ONNX file: it contains no graph' };
}

interface Head {
  readonly number: number;
  readonly bytes: boolean;
  readonly headLength: number;
  readonly length: number;
}

function readHead(bytes: Uint8Array): Head | undefined {
  const tag = readVarint(bytes, 0);
  if (tag === undefined || tag.value > 0xff) return undefined;
  const number = tag.value >> 3;
  const wire = tag.value & 7;
  if (number === 0 || number > 32) return undefined;
  const value = wire === 0 || wire === 2 ? readVarint(bytes, tag.next) : undefined;
  if (value === undefined) return undefined;
  return wire === 2
    ? { number, bytes: true, headLength: value.next, length: value.value }
    : { number, bytes: false, headLength: value.next, length: 0 };
}

function readEntry(bytes: Uint8Array): { readonly key: string; readonly value: string } | undefined {
  const texts: Record<number, string> = {};
  let at = 0;
  while (at < bytes.length) {
    const tag = readVarint(bytes, at);
    const length = tag === undefined ? undefined : readVarint(bytes, tag.next);
    if (tag === undefined || length === undefined || (tag.value & 7) !== 2 || length.next + length.value > bytes.length) return undefined;
    texts[tag.value >> 3] = new TextDecoder().decode(bytes.subarray(length.next, length.next + length.value));
    at = length.next + length.value;
  }
  return texts[1] === undefined ? undefined : { key: texts[1], value: texts[2] ?? '' };
}

function readVarint(bytes: Uint8Array, from: number): { readonly value: number; readonly next: number } | undefined {
  let value = 0;
  for (let index = 0; index < 8; index += 1) {
    const byte = bytes[from + index];
    if (byte === undefined) return undefined;
    value += (byte & 127) * 2 ** (7 * index);
    if (byte < 128) return { value, next: from + index + 1 };
  }
  return undefined;
}
