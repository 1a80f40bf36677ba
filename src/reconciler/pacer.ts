/** When passes run: one at a time, soon after a wake, now and then without one, and never so often that looking is all that is done. */
import type { Clock, Wake } from './ports.ts';

export interface Pacer {
  readonly wake: Wake;
  /** Resolves once no pass runs, none was asked for, and nothing is under way. */
  idle(): Promise<void>;
  /** Runs passes until the signal aborts; resolves when the last one has ended. */
  run(signal: AbortSignal, onError: (error: unknown) => void): Promise<void>;
}

/** Wakes that come together are one pass. */
const SPACING_MS = 5;
/** From the begin of one pass to that of the next, however long it took. What was waited for in a pass is waited once more: whoever was asked has other work too. */
const LONGEST_SPACING_MS = 250;
/** In the long run, eight times as long as what was computed: work that is under way needs the processor too. */
const REST_OF_BUSY = 8;
/** Computing that needs no such rest, so that an edit of one among thousands of slots is carried out at once: as much as is saved up while little happens. */
const CREDIT_MS = 2000;

export interface Passed {
  /** When time alone will change something next. */
  readonly wakeAt: number | undefined;
  /** How long it computed without a pause. */
  readonly busyMs: number;
}

/** `quiet`: nothing is under way outside. */
export function createPacer(clock: Clock, resyncMs: number, quiet: () => boolean, pass: (signal: AbortSignal) => Promise<Passed>): Pacer {
  let dueAt = Number.POSITIVE_INFINITY;
  let notBefore = Number.NEGATIVE_INFINITY;
  /** Milliseconds that were computed and not yet rested for. */
  let owed = 0;
  let owedAt = Number.NEGATIVE_INFINITY;
  let asked = false;
  let passing = false;
  let alive = false;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  let begin: (() => void) | undefined;
  let waiters: (() => void)[] = [];

  function wake(withinMs = 0): void {
    asked = true;
    dueAt = Math.min(dueAt, clock.now() + withinMs);
    arm();
  }

  function arm(): void {
    if (!alive || passing || dueAt === Number.POSITIVE_INFINITY) return;
    const at = Math.max(dueAt, notBefore);
    if (timer !== undefined && timer.at <= at) return;
    timer?.cancel();
    timer = { at, cancel: clock.at(at, () => begin?.()) };
  }

  function settle(): void {
    if (passing || asked || !quiet()) return;
    const resolved = waiters;
    waiters = [];
    for (const resolve of resolved) resolve();
  }

  async function once(signal: AbortSignal, onError: (error: unknown) => void): Promise<void> {
    const startedAt = clock.now();
    let passed: Passed = { wakeAt: undefined, busyMs: 0 };
    try {
      passed = await pass(signal);
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
    const now = clock.now();
    owed = Math.max(0, owed - (now - owedAt) / REST_OF_BUSY) + passed.busyMs;
    owedAt = now;
    const tookMs = now - startedAt;
    const spacingMs = owed > CREDIT_MS ? Math.max(2 * tookMs, REST_OF_BUSY * passed.busyMs) : 2 * tookMs - passed.busyMs;
    notBefore = startedAt + Math.min(Math.max(SPACING_MS, spacingMs), LONGEST_SPACING_MS);
    dueAt = Math.min(dueAt, now + resyncMs, passed.wakeAt ?? Number.POSITIVE_INFINITY);
  }

  return {
    wake,
    async idle() {
      await new Promise<void>((resolve) => {
        waiters.push(resolve);
        settle();
      });
    },
    async run(signal, onError) {
      if (signal.aborted) return;
      alive = true;
      await new Promise<void>((resolve) => {
        const end = (): void => {
          alive = false;
          timer?.cancel();
          if (!passing) resolve();
        };
        begin = () => {
          timer = undefined;
          passing = true;
          asked = false;
          dueAt = Number.POSITIVE_INFINITY;
          void once(signal, onError).then(() => {
            passing = false;
            if (!alive) return resolve();
            arm();
            settle();
            return undefined;
          });
        };
        signal.addEventListener('abort', end, { once: true });
        wake();
      });
    },
  };
}
