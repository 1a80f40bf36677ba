/**
 * Reads streams that have begun less often while the event loop is busy with them: each read then gets several events,
 * and the first events of new streams come sooner (docs/speed.md).
 */

/** What reads a stream. */
interface Reads {
  hold(): void;
  release(): void;
}

/** Turns of the event loop that are shorter delay nobody noticeably. */
const LONG_TURN_MS = 8;
/** A stream is held for as many turns of that length, and no longer than this. */
const HELD_TURNS = 2;
const LONGEST_MS = 40;
const RELEASE_EVERY_MS = 4;

export type CoalesceReads = ReturnType<typeof createReadCoalescer>;

const SYSTEM = {
  now: (): number => performance.now(),
  /** Number of the event loop's present turn. */
  turn: (): number => performance.nodeTiming.uvMetricsInfo.loopCount,
  after: (ms: number, callback: () => void): unknown => setTimeout(callback, ms),
};

/** Call the result for each piece of a stream that has begun. */
export function createReadCoalescer({ now, turn, after } = SYSTEM): (reads: Reads) => void {
  let current = -1;
  let beganAt = 0;
  let lastAt = 0;
  let lastTurnMs = 0;
  let isTimed = false;
  const held: { readonly reads: Reads; readonly until: number }[] = [];

  function release(): void {
    const at = now();
    const first = held.findIndex(({ until }) => until > at);
    for (const { reads } of held.splice(0, first === -1 ? held.length : first)) reads.release();
    isTimed = held.length > 0;
    if (isTimed) after(RELEASE_EVERY_MS, release);
  }

  return (reads) => {
    const at = now();
    const present = turn();
    if (present !== current) {
      // Waiting for something to read is no part of it.
      lastTurnMs = lastAt - beganAt;
      [current, beganAt] = [present, at];
    }
    lastAt = at;
    const turnMs = Math.max(lastTurnMs, at - beganAt);
    if (turnMs < LONG_TURN_MS) return;
    reads.hold();
    held.push({ reads, until: at + Math.min(HELD_TURNS * turnMs, LONGEST_MS) });
    if (!isTimed) after(RELEASE_EVERY_MS, release);
    isTimed = true;
  };
}
