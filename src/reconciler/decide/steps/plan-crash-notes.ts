/** Crashes of workloads that their runtime starts again by itself: each is counted once, and nothing is done. Pure. */
import type { Action } from '../facts/actions.ts';
import { noteCrashKey } from '../facts/actions.ts';
import { isCrashLoop } from '../rules/backoff.ts';
import { blame } from '../rules/assign-roles.ts';
import { crashedInPlace } from '../rules/checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** `unwanted`: why the slot is not to run now. */
export function planCrashNotes(view: SlotView, unwanted: Finding | undefined): readonly Action[] {
  return view.workloads.flatMap((workload) => planNote(workload, view, unwanted));
}

function planNote(workload: WorkloadView, view: SlotView, unwanted: Finding | undefined): readonly Action[] {
  const crash = crashedInPlace(workload);
  const { id } = workload.fact;
  if (crash === undefined || workload.stopUnderWay || view.running.has(noteCrashKey(id))) return [];
  const { exitId, reason, message } = crash;
  const blamed = blame(workload, crash, view, unwanted) !== undefined;
  const loops = isCrashLoop([...view.failures, { at: view.now, kind: 'crash', failure: { kind: 'retry', reason, message } }]);
  const args = {
    slot: view.slot.name,
    workload: id,
    exitId,
    failure: blamed ? { reason, message } : undefined,
    startsAgain: !loops,
  };
  return [{ name: 'noteCrash', slot: view.slot.name, because: { reason, message }, args }];
}
