/** Corrections without a new workload: of one that was altered, and of one that an edit changes in place. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import { HOST } from '../facts/memory-pools.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { workloadNamed } from '../facts/workload.ts';
import { counts, type Roles } from '../rules/assign-roles.ts';
import { describeAltered, repairsDrift } from '../rules/repair.ts';
import { delayAfter, isCrashLoop } from '../rules/backoff.ts';
import { NOTHING_DUE, type TimedActions } from './plan-stops.ts';
import type { Action } from '../facts/actions.ts';
import { crashedInPlace } from '../rules/workload-faults.ts';

export const APPLY_OUTDATED: Finding = { reason: 'ApplyOutdated', message: 'An edit changed something that needs no new workload' };

/** `hindered`: nothing may be started now, and then nothing is updated either. */
export function planInPlaceUpdates(view: SlotView, { serving, starting }: Roles, hindered: boolean): TimedActions {
  const workload = [serving, starting].find((each) => each?.updatable === true && (each.behind || each.standing === 'altered'));
  if (workload === undefined || hindered || view.applying !== undefined) return NOTHING_DUE;
  if (workload.standing === 'altered' && repairsDrift(view)) return update(workload, view, describeAltered(workload, view));
  if (!workload.behind) return NOTHING_DUE;
  // An update that does not last is repeated less and less often.
  const { updates } = workload.known;
  const at = updates?.generation === view.slot.generation ? updates.lastAt + delayAfter(updates.times) : 0;
  return at > view.now ? { actions: [], wakes: [at] } : update(workload, view, APPLY_OUTDATED);
}

function update({ fact, known }: WorkloadView, { slot, spec, template, model }: SlotView, because: Finding): TimedActions {
  if (template === undefined || model?.kind !== 'present') return NOTHING_DUE;
  const hostPort = fact.container.port?.host ?? template.containerPort ?? 0;
  const workload = workloadNamed(slot, template, fact.name, hostPort);
  const origin = known.origin ?? { spec, model: model.facts, memory: { [HOST]: template.memoryBytes ?? 0 } };
  const updatesInPlace = { workload: fact.id, altered: because !== APPLY_OUTDATED };
  return { actions: [{ name: 'apply', slot: slot.name, because, args: { workload, origin, updatesInPlace } }], wakes: [] };
}

/** Counts crashes of workloads that their runtime restarts, each once. `unwanted`: why the slot should not run. */
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
