/** Decides when passes run: one at a time, soon after a wake, regularly without one, and not back to back. */
import type { Clock } from './ports.ts';

/** Wakes that arrive within this time share a pass. */
const SPACING_MS = 5;
/** Longest time between the starts of two passes. A pass that waited for answers is followed by as long a pause. */
const LONGEST_SPACING_MS = 250;
/** In the long run, passes rest eight times as long as they compute: the actions under way need the processor, too. */
const REST_OF_BUSY = 8;
/**
 * A wake that can wait, such as a request that begins or ends, is not followed by a pass before this many times the
 * computing time of the last pass is over. Passes over thousands of slots would otherwise delay a twentieth of all
 * requests or more, for a state that only people look at.
 */
const PATIENT_REST_OF_BUSY = 20;
const LONGEST_PATIENCE_MS = 5000;
/** Computing time without a rest, saved up while idle, so that one edit among thousands of slots acts at once. */
const CREDIT_MS = 2000;

export interface Passed {
  /** The next moment at which time alone changes something. */
  readonly wakeAt: number | undefined;
  /** How long the pass computed without waiting. */
  readonly busyMs: number;
}

/** `quiet` returns whether no action is under way. */
export function createPacer(clock: Clock, resyncMs: number, quiet: () => boolean, pass: (signal: AbortSignal) => Promise<Passed>) {
  let dueAt = Number.POSITIVE_INFINITY;
  /** The same for wakes that can wait. */
  let patientDueAt = Number.POSITIVE_INFINITY;
  let notBefore = Number.NEGATIVE_INFINITY;
  let patientNotBefore = Number.NEGATIVE_INFINITY;
  /** Milliseconds of computing that were not yet followed by a rest. */
  let owed = 0;
  let owedAt = Number.NEGATIVE_INFINITY;
  let requested = false;
  let passing = false;
  let alive = false;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  let begin: (() => void) | undefined;
  let waiters: (() => void)[] = [];

  function wake(withinMs = 0): void {
    requested = true;
    if (withinMs > 0) patientDueAt = Math.min(patientDueAt, clock.now() + withinMs);
    else dueAt = Math.min(dueAt, clock.now());
    arm();
  }

  function arm(): void {
    const at = Math.max(notBefore, Math.min(dueAt, Math.max(patientDueAt, patientNotBefore)));
    if (!alive || passing || at === Number.POSITIVE_INFINITY) return;
    if (timer !== undefined && timer.at <= at) return;
    timer?.cancel();
    timer = { at, cancel: clock.at(at, () => begin?.()) };
  }

  function resolveIdle(): void {
    if (passing || requested || !quiet()) return;
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
    patientNotBefore = now + Math.min(PATIENT_REST_OF_BUSY * passed.busyMs, LONGEST_PATIENCE_MS);
    dueAt = Math.min(dueAt, now + resyncMs, passed.wakeAt ?? Number.POSITIVE_INFINITY);
  }

  return {
    wake,
    /** An action has ended that needs no pass. */
    actionEnded: resolveIdle,
    /** Resolves once no pass runs, none is requested, and no action is under way. */
    async idle(): Promise<void> {
      await new Promise<void>((resolve) => {
        waiters.push(resolve);
        resolveIdle();
      });
    },
    /** Runs passes until the signal aborts; resolves when the last pass has ended. */
    async run(signal: AbortSignal, onError: (error: unknown) => void): Promise<void> {
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
          requested = false;
          dueAt = Number.POSITIVE_INFINITY;
          patientDueAt = Number.POSITIVE_INFINITY;
          void once(signal, onError).then(() => {
            passing = false;
            if (!alive) return resolve();
            arm();
            resolveIdle();
            return undefined;
          });
        };
        signal.addEventListener('abort', end, { once: true });
        wake();
      });
    },
  };
}
