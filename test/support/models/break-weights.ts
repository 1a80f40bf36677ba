/** Damages a generated model so that llama-server still loads it. */

/** Returns a copy of a GGUF file with 32-bit weights, with this value in every weight of its second half, which is far behind the header. */
export function breakWeights(model: Uint8Array, value: number): Uint8Array {
  const broken = Buffer.from(model);
  for (let offset = Math.floor(broken.length / 8) * 4; offset + 4 <= broken.length; offset += 4) broken.writeFloatLE(value, offset);
  return broken;
}
