/**
 * Reads the head of a GGUF file: the few facts that a provider decides with, and how long the file must be. Arrays are stepped over,
 * not read, so that a vocabulary of 150,000 tokens costs a few milliseconds and no memory. Pure.
 */
import { ByteCursor, Corrupt, Short, type Scalar } from './byte-cursor.ts';
import { tensorBytes } from './ggml-types.ts';

export interface GgufHeader {
  /** Scalars, and short arrays of numbers as their mean (a value a layer). */
  readonly values: ReadonlyMap<string, Scalar>;
  readonly tensorCount: number;
  /** Whether tensors of a classifier head (`cls*`) are there. */
  readonly hasClassifier: boolean;
  /** The file must have at least this length. */
  readonly fileBytes: number;
}

export type HeaderRead =
  | { readonly kind: 'header'; readonly header: GgufHeader }
  /** The bytes end inside the header. */
  | { readonly kind: 'more' }
  | { readonly kind: 'corrupt'; readonly message: string };

const MAGIC = 0x46554747;
const DEFAULT_ALIGNMENT = 32;
/** Far above any model there is; a larger count is damage, and would be looped over. */
const MAX_ENTRIES = 1_000_000;
const MAX_KEY_BYTES = 65_535;
const MAX_DIMENSIONS = 8;
/** Above the layers of any model: such an array has one value a layer. */
const MAX_KEPT_NUMBERS = 1024;

const STRING = 8;
const ARRAY = 9;

/** `bytes` is the beginning of the file, as much of it as was read. */
export function readGgufHeader(bytes: Uint8Array): HeaderRead {
  try {
    return { kind: 'header', header: parse(new ByteCursor(bytes)) };
  } catch (error) {
    if (error instanceof Short) return { kind: 'more' };
    if (error instanceof Corrupt) return { kind: 'corrupt', message: error.message };
    throw error;
  }
}

function parse(cursor: ByteCursor): GgufHeader {
  if (cursor.u32() !== MAGIC) throw new Corrupt('it does not begin with "GGUF"');
  const version = cursor.u32();
  if (version !== 2 && version !== 3) throw new Corrupt(`its GGUF version is ${version}, and 2 and 3 are known`);
  const tensorCount = cursor.u64('tensors', MAX_ENTRIES);
  const valueCount = cursor.u64('metadata keys', MAX_ENTRIES);
  const values = new Map<string, Scalar>();
  for (let index = 0; index < valueCount; index += 1) {
    const key = cursor.text(MAX_KEY_BYTES);
    const value = readValue(cursor, cursor.u32());
    if (value !== undefined) values.set(key, value);
  }
  let hasClassifier = false;
  let dataBytes = 0;
  for (let index = 0; index < tensorCount; index += 1) {
    const tensor = readTensor(cursor);
    hasClassifier ||= /^cls(\.|$)/.test(tensor.name);
    dataBytes = Math.max(dataBytes, tensor.end);
  }
  const alignment = alignmentOf(values);
  return { values, tensorCount, hasClassifier, fileBytes: Math.ceil(cursor.position / alignment) * alignment + dataBytes };
}

function readValue(cursor: ByteCursor, type: number): Scalar | undefined {
  return type === ARRAY ? readArray(cursor) : cursor.scalar(type);
}

function readArray(cursor: ByteCursor): number | undefined {
  const type = cursor.u32();
  const length = cursor.u64('array items', Number.MAX_SAFE_INTEGER);
  if (type === ARRAY) throw new Corrupt('it has an array of arrays');
  if (type === STRING) {
    for (let index = 0; index < length; index += 1) cursor.skipText();
    return undefined;
  }
  const size = cursor.sizeOf(type);
  if (length > MAX_KEPT_NUMBERS || length === 0) {
    cursor.skip(size * length);
    return undefined;
  }
  let sum = 0;
  for (let index = 0; index < length; index += 1) sum += Number(cursor.scalar(type));
  return sum / length;
}

function readTensor(cursor: ByteCursor): { readonly name: string; readonly end: number } {
  const name = cursor.text(MAX_KEY_BYTES);
  const dimensions = cursor.u32();
  if (dimensions > MAX_DIMENSIONS) throw new Corrupt(`its tensor "${name}" has ${dimensions} dimensions`);
  let elements = 1;
  for (let index = 0; index < dimensions; index += 1) elements *= cursor.u64('elements', Number.MAX_SAFE_INTEGER);
  const type = cursor.u32();
  const offset = cursor.u64('bytes of offset', Number.MAX_SAFE_INTEGER);
  const end = offset + tensorBytes(type, elements);
  if (!Number.isSafeInteger(end)) throw new Corrupt(`its tensor "${name}" is larger than any file`);
  return { name, end };
}

function alignmentOf(values: ReadonlyMap<string, Scalar>): number {
  const value = values.get('general.alignment');
  if (value === undefined) return DEFAULT_ALIGNMENT;
  if (typeof value !== 'number' || value < 8 || value % 8 !== 0) throw new Corrupt('its "general.alignment" is not a multiple of 8');
  return value;
}
