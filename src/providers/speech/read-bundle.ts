/** Reads the files of a model for sherpa-onnx as far as they can be checked. */
import type { ModelFiles } from '../provider.ts';
import type { Readable } from '../../schema/words/failure.ts';
import type { Bundle } from './decide/bundle.ts';

type BundleReading =
  | {
      readonly ok: true;
      readonly sizeBytes: number;
      readonly metadata: ReadonlyMap<string, string>;
      readonly sizes: ReadonlyMap<string, number>;
    }
  | { readonly ok: false; readonly message: string };

/** Weights of a network larger than 2 GiB: `encoder.weights`, `model.onnx.data`. */
const EXTERNAL_WEIGHTS = /\.(weights|data)$/;

export async function readBundle(id: string, bundle: Bundle, files: ModelFiles): Promise<BundleReading> {
  const sizes = new Map<string, number>();
  const metadata = new Map<string, string>();
  for (const name of bundle.networks) {
    const reading = await readOnnx(files, name);
    if (!reading.ok) return { ok: false, message: `The file "${name}" of "${id}" ${reading.problem}` };
    sizes.set(name, reading.sizeBytes);
    for (const [key, value] of reading.metadata) metadata.set(key, value);
  }
  const names = await files.names();
  for (const name of [...bundle.others, ...names.filter((each) => EXTERNAL_WEIGHTS.test(each))]) {
    const sizeBytes = await files.sizeOf(name);
    if (sizeBytes === 0) return { ok: false, message: `The file "${name}" of "${id}" is empty; wait until it is copied, or get it again` };
    sizes.set(name, sizeBytes);
  }
  return { ok: true, sizeBytes: sizes.values().reduce((sum, each) => sum + each, 0), metadata, sizes };
}

type OnnxReading = Readable<{ readonly sizeBytes: number; readonly metadata: ReadonlyMap<string, string> }>;

const GRAPH = 7;
const METADATA = 14;
const KEY = 1;
const VALUE = 2;
/** Most files have about ten fields, and one more for each function. */
const MAX_FIELDS = 5000;
/** The longest known, a lexicon, has less. */
const MAX_METADATA_BYTES = 4 * 2 ** 20;
const ORT_IDENTIFIER = 'ORTM';
const RUNTIME_HEAD_BYTES = 8;
const GET_AGAIN = 'wait until it is copied, or get it again';

/** Reads metadata: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, `ModelProto`. Skips the graph. */
async function readOnnx(files: ModelFiles, name: string): Promise<OnnxReading> {
  const sizeBytes = await files.sizeOf(name);
  const metadata = new Map<string, string>();
  const first = await files.read(name, 0, LONGEST_HEAD_BYTES);
  if (new TextDecoder('latin1').decode(first.subarray(4, RUNTIME_HEAD_BYTES)) === ORT_IDENTIFIER) return { ok: true, sizeBytes, metadata };
  let hasGraph = false;
  let at = 0;
  for (let count = 0; at < sizeBytes; count += 1) {
    const bytes = at === 0 ? first : await files.read(name, at, LONGEST_HEAD_BYTES);
    const head = readFieldHead(bytes, 0);
    if (head === undefined || count >= MAX_FIELDS) return damaged();
    const valueAt = at + head.valueAt;
    const end = valueAt + head.valueBytes;
    if (end > sizeBytes) return at === 0 ? damaged() : { ok: false, problem: `is cut off; ${GET_AGAIN}` };
    if (head.field === GRAPH) hasGraph = true;
    if (head.field === METADATA && head.hasLength) {
      if (head.valueBytes > MAX_METADATA_BYTES) return damaged();
      const entry = readTexts(await files.read(name, valueAt, head.valueBytes));
      metadata.set(entry.get(KEY) ?? '', entry.get(VALUE) ?? '');
    }
    at = end;
  }
  return hasGraph ? { ok: true, sizeBytes, metadata } : damaged();
}

const damaged = (): OnnxReading => ({ ok: false, problem: `is damaged or not an ONNX file; ${GET_AGAIN}` });

/** Longest varint: 10 bytes. A head has at most two. */
const LONGEST_HEAD_BYTES = 20;
const LONGEST_NUMBER_BYTES = 10;
const FIXED_BYTES: Readonly<Partial<Record<number, number>>> = { 1: 8, 5: 4 };

/** The value may reach beyond the bytes. https://protobuf.dev/programming-guides/encoding/ */
function readFieldHead(bytes: Uint8Array, at: number) {
  const tag = readNumber(bytes, at);
  if (tag === undefined || tag.value < 8) return undefined;
  const wireType = tag.value % 8;
  const field = Math.floor(tag.value / 8);
  const fixed = FIXED_BYTES[wireType];
  if (fixed !== undefined) return { field, valueAt: tag.end, valueBytes: fixed, hasLength: false };
  const next = wireType === 0 || wireType === 2 ? readNumber(bytes, tag.end) : undefined;
  if (next === undefined) return undefined;
  if (wireType === 0) return { field, valueAt: tag.end, valueBytes: next.end - tag.end, hasLength: false };
  return { field, valueAt: next.end, valueBytes: next.value, hasLength: true };
}

/** Exact up to 2^53, longer than any file. */
function readNumber(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let index = 0; index < LONGEST_NUMBER_BYTES; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, end: at + index + 1 };
  }
  return undefined;
}

function readTexts(message: Uint8Array): ReadonlyMap<number, string> {
  const texts = new Map<number, string>();
  for (let at = 0; at < message.length;) {
    const head = readFieldHead(message, at);
    if (head === undefined || head.valueAt + head.valueBytes > message.length) return texts;
    at = head.valueAt + head.valueBytes;
    if (head.hasLength) texts.set(head.field, new TextDecoder().decode(message.subarray(head.valueAt, at)));
  }
  return texts;
}
