/** Audio formats of `/v1/realtime`: OpenAI's, one channel, in Base64. All become 16-bit samples. Pure. */
import { z } from 'zod';

export const AudioFormat = z.union([
  z.object({ type: z.literal('audio/pcm'), rate: z.literal(24_000).default(24_000) }),
  z.object({ type: z.literal('audio/pcmu') }),
  z.object({ type: z.literal('audio/pcma') }),
]);
export type AudioFormat = z.output<typeof AudioFormat>;

export const PCM_24: AudioFormat = { type: 'audio/pcm', rate: 24_000 };
const SAMPLE_BYTES = 2;
/** Telephone quality. */
const G711_RATE = 8000;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

export const rateOf = (format: AudioFormat): number => (format.type === 'audio/pcm' ? format.rate : G711_RATE);

export const bytesPerSecond = (format: AudioFormat): number => rateOf(format) * SAMPLE_BYTES;

type DecodedAudio = { readonly ok: true; readonly pcm: Buffer } | { readonly ok: false; readonly message: string };

export function decodeAudio(base64: string, format: AudioFormat): DecodedAudio {
  if (base64.length % 4 !== 0 || !BASE64.test(base64))
    return { ok: false, message: 'The sound in "audio" is not valid Base64: send it with its padding' };
  const bytes = Buffer.from(base64, 'base64');
  if (format.type !== 'audio/pcm') return { ok: true, pcm: expand(bytes, format.type === 'audio/pcmu' ? fromMuLaw : fromALaw) };
  if (bytes.length % SAMPLE_BYTES === 0) return { ok: true, pcm: bytes };
  return { ok: false, message: 'The number of bytes is odd: send whole samples of 16 bits' };
}

function expand(bytes: Buffer, decode: (code: number) => number): Buffer {
  const table = Array.from({ length: 256 }, (_, code) => decode(code));
  const pcm = Buffer.allocUnsafe(bytes.length * SAMPLE_BYTES);
  for (let index = 0; index < bytes.length; index += 1) pcm.writeInt16LE(table[bytes[index] ?? 0] ?? 0, index * SAMPLE_BYTES);
  return pcm;
}

/** ITU-T G.711, µ-law: inverted bits; sign, exponent of 3 bits, mantissa of 4. */
function fromMuLaw(code: number): number {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 0x0f) << 3) + 0x84) << ((bits & 0x70) >> 4)) - 0x84;
  return (bits & 0x80) === 0 ? magnitude : -magnitude;
}

/** ITU-T G.711, A-law: every other bit is inverted; a set sign bit means positive. */
function fromALaw(code: number): number {
  const bits = code ^ 0x55;
  const exponent = (bits & 0x70) >> 4;
  const mantissa = ((bits & 0x0f) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return (bits & 0x80) === 0 ? -magnitude : magnitude;
}

/**
 * Detects speech by the loudness of short frames, like OpenAI's `server_vad`, without a model. It works in quiet and
 * evenly noisy rooms; music and voices in the background count as speech. Pure.
 */

export const FRAME_MS = 20;

export interface TurnDetection {
  /** 0 to 1. Only sound louder than this is speech; 0.5 is three times the noise floor. */
  readonly threshold: number;
  /** Sound before the detected start that belongs to the speech. */
  readonly prefixMs: number;
  /** Silence that ends speech. */
  readonly silenceMs: number;
}

export interface Hearing {
  readonly speaking: boolean;
  /** Consecutive loud frames during silence; consecutive quiet frames during speech. */
  readonly frames: number;
  /** Noise floor, 0 to 1. */
  readonly noise: number;
}

type HeardFrame = Hearing & { readonly change: 'started' | 'stopped' | undefined };

/** Speech is louder than this factor times the noise floor at a threshold of 0.5, between the two levels. */
const OVER_NOISE = 3;
const QUIETEST = 0.0015;
const LOUDEST = 0.01;
/** The noise floor falls to a quieter frame at once, and rises slowly. */
const NOISE_RISE = 1.01;
const LEAST_RISE = 1e-6;
/** Shorter sounds are clicks. */
const ONSET_FRAMES = 3;
export const ONSET_MS = ONSET_FRAMES * FRAME_MS;
const MIDDLE_THRESHOLD = 0.5;

export const NOTHING_HEARD: Hearing = { speaking: false, frames: 0, noise: LOUDEST };

/** `level`: root mean square of one frame, 0 to 1. */
export function hearFrame(before: Hearing, level: number, { threshold, silenceMs }: TurnDetection): HeardFrame {
  const noise = Math.min(level, before.noise * NOISE_RISE + LEAST_RISE);
  const limit = (Math.min(LOUDEST, Math.max(QUIETEST, noise * OVER_NOISE)) * threshold) / MIDDLE_THRESHOLD;
  const isLoud = level > limit;
  const frames = isLoud === before.speaking ? 0 : before.frames + 1;
  const needed = before.speaking ? Math.max(1, Math.ceil(silenceMs / FRAME_MS)) : ONSET_FRAMES;
  if (frames < needed) return { speaking: before.speaking, frames, noise, change: undefined };
  return { speaking: !before.speaking, frames: 0, noise, change: before.speaking ? 'stopped' : 'started' };
}

export function levelOf(pcm: Buffer): number {
  let sum = 0;
  for (let at = 0; at + 1 < pcm.length; at += 2) sum += (pcm.readInt16LE(at) / 0x8000) ** 2;
  return pcm.length < 2 ? 0 : Math.sqrt(sum / (pcm.length >> 1));
}
