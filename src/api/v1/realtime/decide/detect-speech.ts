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
  /** Consecutive loud frames while nobody speaks; consecutive quiet ones while somebody does. */
  readonly frames: number;
  /** Noise floor, 0 to 1. */
  readonly noise: number;
}

export type HeardFrame = Hearing & { readonly change: 'started' | 'stopped' | undefined };

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
