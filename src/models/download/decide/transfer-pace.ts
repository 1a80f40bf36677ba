/** How a download splits its blocks into requests and connections, and how fast it is. Pure. */
import { BLOCK_BYTES } from './part-journal.ts';

/** A run of blocks that one connection fetches with one request; `last` is included. */
export interface Stretch {
  readonly first: number;
  readonly last: number;
}

/** `closed`: complete or in flight. `begun`: partly present. */
export type BlockState = 'closed' | 'begun' | 'empty';

/** The first open block, which alone may be begun, and the empty ones after it. */
export function nextStretch(stateOf: (block: number) => BlockState, count: number, maxBlocks: number): Stretch | undefined {
  let first = 0;
  while (first < count && stateOf(first) === 'closed') first += 1;
  if (first === count) return undefined;
  let last = first;
  while (last + 1 < count && last + 1 - first < maxBlocks && stateOf(last + 1) === 'empty') last += 1;
  return { first, last };
}

/** Smaller requests are mostly overhead; larger ones leave the other connections idle at the end. */
const STRETCH_BYTES = { least: 8 * 2 ** 20, most: 128 * 2 ** 20 } as const;

export function stretchBlocks(remainingBytes: number, connections: number): number {
  if (connections === 1) return Number.MAX_SAFE_INTEGER;
  const fair = remainingBytes / (2 * connections);
  return Math.floor(Math.min(Math.max(fair, STRETCH_BYTES.least), STRETCH_BYTES.most) / BLOCK_BYTES);
}

/** Below this size, the first connection is finished before others have begun. */
const SEVERAL_FROM_BYTES = 32 * 2 ** 20;

export function connectionsFor(remainingBytes: number, allowed: number): number {
  return remainingBytes < SEVERAL_FROM_BYTES ? 1 : Math.max(1, Math.min(allowed, Math.floor(remainingBytes / STRETCH_BYTES.least)));
}

/** More connections do not help above this speed: blocks arrive out of order and are read again for the checksum. */
export const FAST_BYTES_PER_SECOND = 200_000_000;

export function isFast(bytes: number, elapsedMs: number, fastBytesPerSecond: number): boolean {
  return 1000 * bytes >= fastBytesPerSecond * elapsedMs;
}

export interface RateSample {
  readonly at: number;
  readonly bytes: number;
}

/** Long enough to smooth one slow second, short enough to show a new speed soon. */
const WINDOW_MS = 10_000;
/** Shorter samples mostly measure buffers. */
const LEAST_MS = 500;

export function addSample(samples: readonly RateSample[], sample: RateSample): readonly RateSample[] {
  return [...samples.filter(({ at }) => sample.at - at <= WINDOW_MS), sample];
}

export function bytesPerSecond(samples: readonly RateSample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.at - first.at < LEAST_MS) return undefined;
  return Math.max(0, (1000 * (last.bytes - first.bytes)) / (last.at - first.at));
}
