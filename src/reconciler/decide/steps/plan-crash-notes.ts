/** Counts crashes of workloads that their runtime restarts automatically, each of them once. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { Action } from '../facts/actions.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { counts } from '../rules/assign-roles.ts';
import { isCrashLoop } from '../rules/backoff.ts';
import { crashedInPlace } from '../rules/workload-faults.ts';

/** `unwanted`: why the slot should not run now. */
export function planCrashNotes(view: SlotView, unwanted: Finding | undefined): readonly Action[] {
  return view.workloads.flatMap((workload) => planNote(workload, view, unwanted));
}

function planNote(workload: WorkloadView, view: SlotView, unwanted: Finding | undefined): readonly Action[] {
  const crash = crashedInPlace(workload);
  const { id } = workload.fact;
  if (crash === undefined || workload.stopUnderWay || workload.crashNoteUnderWay) return [];
  const { exitId, reason, message } = crash;
  const finding = { reason, message };
  const failure = counts(crash, workload, view, unwanted) ? finding : undefined;
  const isLoop = isCrashLoop([...view.failures, { at: view.now, kind: 'crash', failure: { kind: 'retry', ...finding } }]);
  const args = { slot: view.slot.name, workload: id, exitId, failure, startsAgain: !isLoop };
  return [{ name: 'noteCrash', slot: view.slot.name, because: finding, args }];
}
