/** Decodes the vector in an answer to `/v1/embeddings`: an array of numbers, or little-endian 32-bit floats in base64. Pure. */
import { z } from 'zod';

const FLOAT_BYTES = 4;
const Vector = z.array(z.number().nullable());

/** Returns undefined where it is neither. `null`, as servers write it in place of a number that JSON cannot express, becomes NaN. */
export function decodeVector(embedding: unknown): readonly number[] | undefined {
  if (typeof embedding !== 'string') return Vector.safeParse(embedding).data?.map((value) => value ?? Number.NaN);
  const bytes = Buffer.from(embedding, 'base64');
  if (bytes.length % FLOAT_BYTES !== 0) return undefined;
  return Array.from({ length: bytes.length / FLOAT_BYTES }, (_, index) => bytes.readFloatLE(index * FLOAT_BYTES));
}
