/** Writes samples as 16-bit PCM, and WAV files, also those whose length is not known yet. Pure. */

const BYTES = 2;
const HEAD_BYTES = 44;
/** Readers take this for "until the end". */
const UNKNOWN_LENGTH = 0xffffffff;

export function toPcm(samples: Float32Array): Buffer {
  const values = new Int16Array(samples.length);
  for (let index = 0; index < samples.length; index += 1) {
    const value = samples[index] ?? 0;
    values[index] = Math.max(-1, Math.min(1, value)) * 32_767;
  }
  return Buffer.from(values.buffer);
}

/** A complete file. */
export function wavFile(samples: Float32Array, rate: number): Buffer<ArrayBuffer> {
  const pcm = toPcm(samples);
  return Buffer.concat([wavHead(rate, pcm.length), pcm]);
}

/** `bytes`: the length of the samples, if it is known. */
export function wavHead(rate: number, bytes?: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(bytes === undefined ? UNKNOWN_LENGTH : bytes + HEAD_BYTES - 8, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * BYTES, 28);
  head.writeUInt16LE(BYTES, 32);
  head.writeUInt16LE(BYTES * 8, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes ?? UNKNOWN_LENGTH, 40);
  return head;
}
