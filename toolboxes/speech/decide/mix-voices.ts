/** Mixes voices of Kokoro, which are tables of numbers: a mix is their weighted mean. Pure. */

export interface MixPart {
  /** The number of the voice in the model. */
  readonly speaker: number;
  readonly weight: number;
}

const FLOAT_BYTES = 4;

/** The file of voices with the mix as its first voice; `count` voices are in it. The file keeps its size, which the library checks against the model. */
export function mixVoices(file: Uint8Array, count: number, parts: readonly MixPart[]): Buffer {
  const mixed = Buffer.from(file);
  const bytes = Math.floor(file.length / count / FLOAT_BYTES) * FLOAT_BYTES;
  const read = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  for (let at = 0; at < bytes; at += FLOAT_BYTES) {
    let value = 0;
    for (const { speaker, weight } of parts) value += read.getFloat32(speaker * bytes + at, true) * weight;
    mixed.writeFloatLE(value / total, at);
  }
  return mixed;
}
