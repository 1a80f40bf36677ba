/** The types that llama-server offers for its cache of keys and values, with their size. Pure. */

/** Bytes of a block of 32 numbers. */
const BLOCK_BYTES: Readonly<Record<string, number>> = {
  f32: 128,
  f16: 64,
  bf16: 64,
  q8_0: 34,
  q5_1: 24,
  q5_0: 22,
  q4_1: 20,
  q4_0: 18,
  iq4_nl: 18,
};
const BLOCK_NUMBERS = 32;
const DEFAULT_TYPE = 'f16';

/** Returns the bytes of one number. A type that is not known counts as the default. */
export function cacheNumberBytes(type: string = DEFAULT_TYPE): number {
  return (BLOCK_BYTES[type] ?? 2 * BLOCK_NUMBERS) / BLOCK_NUMBERS;
}
