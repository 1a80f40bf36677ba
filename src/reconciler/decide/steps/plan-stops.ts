/** When a workload that leaves is stopped: at once when nobody uses it, else when its requests have ended or its drain time is over. Pure. */
import type { Action } from '../facts/actions.ts';
import { delayAfter } from '../rules/backoff.ts';
import type { Roles, Draining } from '../rules/assign-roles.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** What a server gets to end by itself once no request is left: its own shutdown, not its requests. */
const STOP_GRACE_MS = 10_000;
/** It has ended; a runtime that started it again meanwhile shall not spend time on that one's requests, for it has none. */
const EXITED_GRACE_MS = 1000;

export interface TimedActions {
  readonly actions: readonly Action[];
  readonly wakes: readonly number[];
  /** Unix milliseconds until which time alone changes nothing, where that is earlier than the wakes. */
  readonly validUntil?: number;
}

export function planStops(view: SlotView, roles: Roles): TimedActions {
  if (roles.draining.length === 0) return NOTHING;
  const all = roles.draining.map((draining) => planStop(draining, view));
  return { actions: all.flatMap(({ actions }) => actions), wakes: all.flatMap(({ wakes }) => wakes) };
}

/** Orphans drain like others; their slot's drain time is not known any more, so the caller names one. */
export function planOrphanStop(workload: WorkloadView, because: Finding, drainMs: number, now: number): TimedActions {
  return planAt(workload, because, undefined, drainMs, now);
}

function planStop({ workload, because, failure }: Draining, view: SlotView): TimedActions {
  // What inPlace it might bring it back: that ends first.
  if (view.applying?.args.inPlace?.workload === workload.fact.id) return NOTHING;
  // Its last words are asked for before it goes.
  if (workload.crashNoteUnderWay) return NOTHING;
  return planAt(workload, because, failure, view.spec.lifecycle.drainTimeoutMs, view.now);
}

function planAt(workload: WorkloadView, because: Finding, failure: Draining['failure'], drainMs: number, now: number): TimedActions {
  const { fact, known, inFlight } = workload;
  if (workload.stopUnderWay) return NOTHING;
  const exited = fact.phase === 'exited';
  const drainedAt = exited || inFlight === 0 ? now : (known.drainingSince ?? now) + drainMs;
  const retryAt = known.stops === undefined ? now : known.stops.lastAt + delayAfter(known.stops.failures);
  const at = Math.max(drainedAt, retryAt);
  if (at > now) return { actions: [], wakes: [at] };
  const ended = exited || (fact.phase === 'created' && fact.exit !== undefined);
  const args = { slot: fact.slot, workload: fact.id, graceMs: ended ? EXITED_GRACE_MS : STOP_GRACE_MS, abort: inFlight > 0, failure };
  return { actions: [{ name: 'stop', slot: fact.slot, because, args }], wakes: [] };
}

const NOTHING: TimedActions = { actions: [], wakes: [] };
