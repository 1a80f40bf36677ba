/** Begins and ends the terms of this replica as time passes and the candidate changes, and notifies the subscribers. */
import type { Wake } from '../../reconciler/ports.ts';
import type { SourceLog } from '../../platform/log.ts';
import { addWake } from '../../platform/clock.ts';

interface TermDeps {
  /** Whether this replica holds an unexpired lease at this moment. */
  readonly leadsNow: () => boolean;
  readonly holder: () => string | undefined;
  /** Returns the milliseconds until `leadsNow` may change without an event, if known. */
  readonly untilChangeMs: () => number | undefined;
  readonly identity: string;
  readonly lease: string;
  readonly log: SourceLog | undefined;
}

const NO_TERM = AbortSignal.abort();

export function createTerm({ leadsNow, holder, untilChangeMs, identity, lease, log }: TermDeps) {
  const wakes = new Set<Wake>();
  let current: AbortController | undefined;
  let publishedHolder: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  const leads = (): boolean => !isOver && leadsNow();

  /** Updates the term, its timer and the subscribers. Idempotent. Call it after every change. */
  function update(): void {
    const before = current;
    const isLeader = leads();
    if (isLeader && before === undefined) {
      current = new AbortController();
      log?.info({ lease, replica: identity }, 'This replica leads');
    } else if (!isLeader && before !== undefined) {
      current = undefined;
      if (!isOver) log?.warn({ lease, replica: identity }, 'This replica no longer leads');
      before.abort(new Error(`The term of "${identity}" has ended`));
    }
    clearTimeout(timer);
    const changeMs = isOver ? undefined : untilChangeMs();
    if (changeMs !== undefined) timer = setTimeout(update, Math.ceil(changeMs));
    const holderNow = holder();
    if (current === before && holderNow === publishedHolder) return;
    publishedHolder = holderNow;
    for (const wake of wakes) wake();
  }

  /** Timers may fire late. */
  function refresh(): void {
    if (leads() !== (current !== undefined)) update();
  }

  return {
    update,
    leads(): boolean {
      refresh();
      return current !== undefined;
    },
    /** Aborts when the current term ends; already aborted while there is none. */
    signal(): AbortSignal {
      refresh();
      return current?.signal ?? NO_TERM;
    },
    /** Wakes when this replica starts or stops to lead, and when the holder changes. */
    changes: (wake: Wake, signal: AbortSignal): void => addWake(wakes, wake, signal),
    /** Ends the current term for good: no other term begins. */
    end(): void {
      isOver = true;
      update();
    },
  };
}
