/** Sizes, times and texts in the form in which an API server holds them. Pure. */
import { shorten } from '../../../schema/shorten.ts';

/** RFC 3339 in UTC, in whole seconds. */
export const kubeTime = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** What a condition's message should hold at most of a text that the cluster wrote. */
const LONGEST_CAUSE = 400;

export const truncate = (text: string, most = LONGEST_CAUSE): string => shorten(text, most);

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P', 'E'] as const;

/**
 * Returns the canonical quantity for a number of bytes: `9Gi`, `1500M`, `1234567`. The server normalizes what it receives, and any other form would look like
 * permanent drift.
 */
export function quantityOfBytes(bytes: number): string {
  const whole = Math.ceil(bytes);
  return whole % 1024 === 0 ? withSuffix(whole, 1024, BINARY) : withSuffix(whole, 1000, DECIMAL);
}

function withSuffix(value: number, base: number, suffixes: readonly string[]): string {
  let left = value;
  let index = 0;
  while (left !== 0 && left % base === 0 && index < suffixes.length - 1) {
    left /= base;
    index += 1;
  }
  return `${left}${suffixes[index] ?? ''}`;
}
