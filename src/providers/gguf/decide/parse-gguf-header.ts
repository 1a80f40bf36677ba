/**
 * Parses the header of a GGUF file: the facts that providers need, and the minimum length of the file. Arrays are skipped instead of
 * stored, so that a vocabulary of 150,000 tokens costs a few milliseconds and no memory. Pure.
 */
import { ByteCursor, CorruptHeader, EndOfBytes, type Scalar } from './byte-cursor.ts';
import { tensorBytes } from './ggml-types.ts';

export interface GgufHeader {
  /** Scalars, and the mean of each short array of numbers (one value per layer). */
  readonly values: ReadonlyMap<string, Scalar>;
  /** Whether the file has tensors of a classifier head (`cls*`). */
  readonly hasClassifier: boolean;
  /** The minimum length of the file. */
  readonly fileBytes: number;
}

export type ParsedHeader =
  | { readonly kind: 'header'; readonly header: GgufHeader }
  /** The bytes end within the header. */
  | { readonly kind: 'more' }
  | { readonly kind: 'corrupt'; readonly message: string };

const MAGIC = 0x46554747;
const DEFAULT_ALIGNMENT = 32;
/** Far more than in any known model. A larger count is damage, and looping over it would take too long. */
const MAX_ENTRIES = 1_000_000;
const MAX_KEY_BYTES = 65_535;
const MAX_DIMENSIONS = 8;
/** More than the layers of any known model: a longer array does not hold one value per layer. */
const MAX_AVERAGED_NUMBERS = 1024;

const STRING = 8;
const ARRAY = 9;

/** `bytes` is the beginning of the file, of any length. */
export function parseGgufHeader(bytes: Uint8Array): ParsedHeader {
  try {
    return { kind: 'header', header: parseHeader(new ByteCursor(bytes)) };
  } catch (error) {
    if (error instanceof EndOfBytes) return { kind: 'more' };
    if (error instanceof CorruptHeader) return { kind: 'corrupt', message: error.message };
    throw error;
  }
}

function parseHeader(cursor: ByteCursor): GgufHeader {
  if (cursor.u32() !== MAGIC) throw new CorruptHeader('it does not start with "GGUF"');
  const version = cursor.u32();
  if (version !== 2 && version !== 3) throw new CorruptHeader(`its GGUF version is ${version}, but only 2 and 3 are supported`);
  const tensorCount = cursor.u64('tensors', MAX_ENTRIES);
  const valueCount = cursor.u64('metadata keys', MAX_ENTRIES);
  const values = new Map<string, Scalar>();
  for (let index = 0; index < valueCount; index += 1) {
    const key = cursor.text(MAX_KEY_BYTES);
    const type = cursor.u32();
    const value = type === ARRAY ? parseArray(cursor) : cursor.scalar(type);
    if (value !== undefined) values.set(key, value);
  }
  let hasClassifier = false;
  let dataBytes = 0;
  for (let index = 0; index < tensorCount; index += 1) {
    const tensor = parseTensor(cursor);
    hasClassifier ||= /^cls(\.|$)/.test(tensor.name);
    dataBytes = Math.max(dataBytes, tensor.end);
  }
  const alignment = alignmentOf(values);
  return { values, hasClassifier, fileBytes: Math.ceil(cursor.position / alignment) * alignment + dataBytes };
}

/** Returns the mean of a short array of numbers and skips any other array. */
function parseArray(cursor: ByteCursor): number | undefined {
  const type = cursor.u32();
  const length = cursor.u64('array items', Number.MAX_SAFE_INTEGER);
  if (type === ARRAY) throw new CorruptHeader('it has an array of arrays');
  if (type === STRING) {
    for (let index = 0; index < length; index += 1) cursor.skipText();
    return undefined;
  }
  const size = cursor.sizeOf(type);
  if (length > MAX_AVERAGED_NUMBERS || length === 0) {
    cursor.skip(size * length);
    return undefined;
  }
  let sum = 0;
  for (let index = 0; index < length; index += 1) sum += Number(cursor.scalar(type));
  return sum / length;
}

function parseTensor(cursor: ByteCursor): { readonly name: string; readonly end: number } {
  const name = cursor.text(MAX_KEY_BYTES);
  const dimensions = cursor.u32();
  if (dimensions > MAX_DIMENSIONS) throw new CorruptHeader(`its tensor "${name}" has ${dimensions} dimensions`);
  let elements = 1;
  for (let index = 0; index < dimensions; index += 1) elements *= cursor.u64('elements', Number.MAX_SAFE_INTEGER);
  const type = cursor.u32();
  const offset = cursor.u64('bytes of offset', Number.MAX_SAFE_INTEGER);
  const end = offset + tensorBytes(type, elements);
  if (!Number.isSafeInteger(end)) throw new CorruptHeader(`its tensor "${name}" is larger than any file`);
  return { name, end };
}

function alignmentOf(values: ReadonlyMap<string, Scalar>): number {
  const value = values.get('general.alignment') ?? DEFAULT_ALIGNMENT;
  if (typeof value === 'number' && value >= 8 && value % 8 === 0) return value;
  throw new CorruptHeader('its "general.alignment" is not a multiple of 8');
}
