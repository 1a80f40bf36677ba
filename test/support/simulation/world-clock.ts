/** A clock that moves only when a test advances it. Callbacks run in the order of their times; those with equal times in the order of their registration. */
import type { Clock } from '../../../src/reconciler/ports.ts';

export interface WorldClock extends Clock {
  /** Sets the wall clock forward, or back if negative, as an administrator or NTP may. No time passes. */
  stepWall(ms: number): void;
  /** The earliest and the latest time that the wall clock has shown so far. */
  wallRange(): readonly [number, number];
  /** What the wall clock has shown at this moment of `now()`: several times if it was set just then. */
  wallsAt(at: number): readonly number[];
  /** Runs everything that is due until then, and everything that follows from it without time passing. */
  advanceTo(at: number): Promise<void>;
  advance(ms: number): Promise<void>;
  /** Advances from one callback to the next until the condition holds. Returns false when it does not hold within `ms`. */
  until(condition: () => boolean, ms: number): Promise<boolean>;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  callback: (() => void) | undefined;
}

/** Large, so that these times are not mistaken for durations. */
export const WORLD_BEGIN = 1_000_000_000_000;
/** The wall clock is decades away from the monotonic one, so that mixing the two shows. */
export const WALL_BEGIN = 2_000_000_000_000;

export function createWorldClock(): WorldClock {
  const heap: Timer[] = [];
  let now = WORLD_BEGIN;
  let wallAheadMs = WALL_BEGIN - WORLD_BEGIN;
  const steps: { readonly at: number; readonly aheadMs: number }[] = [{ at: WORLD_BEGIN, aheadMs: wallAheadMs }];
  let range: readonly [number, number] = [WALL_BEGIN, WALL_BEGIN];
  let order = 0;
  const withWall = (): readonly [number, number] => [Math.min(range[0], now + wallAheadMs), Math.max(range[1], now + wallAheadMs)];

  async function next(limit: number): Promise<boolean> {
    for (;;) {
      const timer = heap[0];
      if (timer === undefined || timer.at > limit) return false;
      pop(heap);
      if (timer.callback === undefined) continue;
      now = Math.max(now, timer.at);
      timer.callback();
      await drained();
      return true;
    }
  }

  async function advanceTo(at: number): Promise<void> {
    await drained();
    while (await next(at));
    now = Math.max(now, at);
  }

  return {
    now: () => now,
    wallNow: () => now + wallAheadMs,
    stepWall(ms) {
      range = withWall();
      wallAheadMs += ms;
      range = withWall();
      steps.push({ at: now, aheadMs: wallAheadMs });
    },
    wallRange: withWall,
    wallsAt(at) {
      const first = Math.max(
        0,
        steps.findLastIndex((step) => step.at < at),
      );
      return steps.slice(first).flatMap((step) => (step.at <= at ? [at + step.aheadMs] : []));
    },
    at(at, callback) {
      order += 1;
      const timer: Timer = { at, order, callback };
      push(heap, timer);
      return () => {
        timer.callback = undefined;
      };
    },
    advanceTo,
    advance: async (ms) => await advanceTo(now + ms),
    async until(condition, ms) {
      const limit = now + ms;
      await drained();
      while (!condition()) if (!(await next(limit))) return condition();
      return true;
    },
  };
}

/** Resolves when everything that follows without time passing has happened: promises settle before the next iteration of the event loop. */
async function drained(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Timer[], timer: Timer): void {
  let index = heap.push(timer) - 1;
  while (index > 0) {
    const up = (index - 1) >> 1;
    const parent = heap[up];
    if (parent === undefined || before(parent, timer)) break;
    heap[index] = parent;
    index = up;
  }
  heap[index] = timer;
}

function pop(heap: Timer[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    const left = heap[2 * index + 1];
    const right = heap[2 * index + 2];
    const child = right !== undefined && left !== undefined && before(right, left) ? 2 * index + 2 : 2 * index + 1;
    const smallest = heap[child];
    if (smallest === undefined || before(last, smallest)) break;
    heap[index] = smallest;
    index = child;
  }
  heap[index] = last;
}
