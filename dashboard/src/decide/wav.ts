/**
 * Encodes recordings as WAV, which every speech server reads without ffmpeg, and sound for `/v1/realtime`. Pure.
 * https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html
 */

const HEADER_BYTES = 44;
const BITS = 16;

/** Mono 16-bit PCM from samples between -1 and 1. */
export function encodeWav(samples: Float32Array, sampleRate: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + samples.length * 2);
  const view = new DataView(bytes.buffer);
  const word = (at: number, text: string): void => {
    for (let index = 0; index < text.length; index += 1) view.setUint8(at + index, text.charCodeAt(index));
  };
  word(0, 'RIFF');
  view.setUint32(4, bytes.length - 8, true);
  word(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, (sampleRate * BITS) / 8, true);
  view.setUint16(32, BITS / 8, true);
  view.setUint16(34, BITS, true);
  word(36, 'data');
  view.setUint32(40, samples.length * 2, true);
  for (const [index, sample] of samples.entries()) view.setInt16(HEADER_BYTES + index * 2, levelOf(sample), true);
  return bytes;
}

const levelOf = (sample: number): number => Math.round(Math.max(-1, Math.min(1, sample)) * 0x7fff);

/** Sample rate of `/v1/realtime`. */
const LIVE_RATE = 24_000;

/** 16-bit PCM in Base64. Each sample is the mean of those that it replaces, which is enough for speech. */
export function encodeLive(samples: Float32Array, sampleRate: number): string {
  const step = sampleRate / LIVE_RATE;
  const bytes = new Uint8Array(2 * Math.floor(samples.length / step));
  const view = new DataView(bytes.buffer);
  for (let index = 0; index * 2 < bytes.length; index += 1) {
    const begin = Math.floor(index * step);
    const part = samples.subarray(begin, Math.max(begin + 1, Math.floor((index + 1) * step)));
    view.setInt16(index * 2, levelOf(part.reduce((sum, sample) => sum + sample, 0) / part.length), true);
  }
  return btoa(String.fromCharCode(...bytes));
}
