/** Cuts long work on the event loop into slices, so that requests are forwarded in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Parts } from './decide/parse-json.ts';

/**
 * Called between two pieces of work. Resolves immediately, or after everything else that is due if the present slice
 * has lasted long enough.
 */
export type Breather = () => Promise<void>;

/** A request waits for one slice at most, and a turn of the event loop costs some microseconds. */
const SLICE_MS = 5;

/** Does the parts one after another, and everything else that is due in between. */
export async function inSlices<Result>(parts: Parts<Result>, breathe: Breather): Promise<Result> {
  for (;;) {
    const part = parts.next();
    if (part.done === true) return part.value;
    await breathe();
  }
}

/** `now` is in milliseconds; `turn` lets everything else that is due run. */
export function createBreather({
  sliceMs = SLICE_MS,
  now = () => performance.now(),
  turn = nextTurn,
}: { readonly sliceMs?: number; readonly now?: () => number; readonly turn?: () => Promise<void> } = {}): Breather {
  let begunAt = now();
  return async () => {
    if (now() - begunAt < sliceMs) return;
    await turn();
    begunAt = now();
  };
}
