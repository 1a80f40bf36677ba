/** WAV files for tests. */

export interface SoundOptions {
  readonly rate?: number;
  readonly channels?: number;
  /** What the head says about the length of the samples, if it lies. */
  readonly declared?: number;
}

/** A tone or silence for each part: its seconds, and its loudness from 0 to 1. */
export type Part = readonly [seconds: number, loudness: number];

export function wavFile(parts: readonly Part[], { rate = 16_000, channels = 1, declared }: SoundOptions = {}): Buffer {
  const samples = parts.flatMap(([seconds, loudness]) =>
    Array.from({ length: Math.round(seconds * rate) }, (_, index) => Math.round(32_767 * loudness * Math.sin(index * 0.17))),
  );
  const data = Buffer.alloc(samples.length * channels * 2);
  samples.forEach((sample, index) => {
    for (let channel = 0; channel < channels; channel += 1) data.writeInt16LE(sample, (index * channels + channel) * 2);
  });
  return Buffer.concat([wavHeadOf({ rate, channels, bytes: declared ?? data.length }), data]);
}

export function wavHeadOf({ rate = 16_000, channels = 1, bytes = 0, bits = 16, tag = 1 }): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE((bytes + 36) % 2 ** 32, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(tag, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE((rate * channels * (bits / 8)) % 2 ** 32, 28);
  head.writeUInt16LE((channels * bits) / 8, 32);
  head.writeUInt16LE(bits, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes, 40);
  return head;
}

/** The beginning of each format that needs ffmpeg, and of a zip archive. */
export const HEADS = {
  mp3: Buffer.from('ID3\x04\x00', 'latin1'),
  flac: Buffer.from('fLaC\x00\x00', 'latin1'),
  ogg: Buffer.from('OggS\x00\x02', 'latin1'),
  webm: Buffer.from('\x1aE\xdf\xa3\x9fB\x86', 'latin1'),
  mp4: Buffer.from('\x00\x00\x00\x20ftypM4A ', 'latin1'),
  zip: Buffer.from('PK\x03\x04\x14\x00\x00\x00\x08\x00', 'latin1'),
} as const;

/** A tone in one channel, which stands for a voice. */
export function toneFile({ hertz = 300, seconds = 1, rate = 16_000 }): Buffer {
  const samples = Int16Array.from({ length: seconds * rate }, (_, index) => 9000 * Math.sin((index * 2 * Math.PI * hertz) / rate));
  return Buffer.concat([wavHeadOf({ rate, bytes: samples.byteLength }), Buffer.from(samples.buffer)]);
}

/** Rising zero crossings of 16-bit samples in a second. */
export function pitchOf(pcm: Buffer, rate: number): number {
  const samples = Array.from({ length: pcm.length / 2 }, (_, index) => pcm.readInt16LE(index * 2));
  const rising = samples.filter((sample, index) => index > 0 && (samples[index - 1] ?? 0) < 0 && sample >= 0);
  return (rising.length * rate) / samples.length;
}

/** A tone that swells and fades four times a second, as syllables do. */
export function spokenFile(seconds: number, rate = 16_000): Buffer {
  return wavFile(
    Array.from({ length: seconds * 8 }, (_, index) => [1 / 8, index % 2 === 0 ? 0.3 : 0.02] as const),
    { rate },
  );
}
