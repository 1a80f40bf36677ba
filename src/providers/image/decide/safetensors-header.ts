/** Reads the header of a safetensors file: 8 bytes with the length of a JSON text in little-endian order, the text, and then the values of the tensors. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** Bytes before the JSON text. */
export const LENGTH_BYTES = 8;
/** The headers of image models have less than 1 MiB. The format allows 100 MB. */
const MOST_HEADER_BYTES = 16 * 2 ** 20;

export interface TensorFacts {
  readonly shape: readonly number[];
}

export interface SafetensorsHeader {
  /** By name. */
  readonly tensors: ReadonlyMap<string, TensorFacts>;
  /** What the whole file has, in bytes. */
  readonly fileBytes: number;
}

const Tensor = z.object({
  shape: z.array(z.int().min(0)).max(16),
  data_offsets: z.tuple([z.int().min(0), z.int().min(0)]),
});
const Header = z.record(z.string(), z.unknown());
/** Notes of the program that wrote the file. */
const NOTES = '__metadata__';

/** Returns the length of the JSON text; undefined if it cannot be one. */
export function headerBytesOf(first: Uint8Array): number | undefined {
  if (first.length < LENGTH_BYTES) return undefined;
  const length = new DataView(first.buffer, first.byteOffset, LENGTH_BYTES).getBigUint64(0, true);
  return length < 2n || length > BigInt(MOST_HEADER_BYTES) ? undefined : Number(length);
}

/** Returns undefined if the text is no header. */
export function parseHeader(text: Uint8Array): SafetensorsHeader | undefined {
  const parsed = Header.safeParse(parseJson(new TextDecoder().decode(text))).data;
  if (parsed === undefined) return undefined;
  const tensors = new Map<string, TensorFacts>();
  let endsAt = 0;
  for (const [name, value] of Object.entries(parsed)) {
    if (name === NOTES) continue;
    const tensor = Tensor.safeParse(value).data;
    if (tensor === undefined) return undefined;
    tensors.set(name, { shape: tensor.shape });
    endsAt = Math.max(endsAt, tensor.data_offsets[1]);
  }
  return { tensors, fileBytes: LENGTH_BYTES + text.length + endsAt };
}
