/**
 * What is put right without a new workload, where the runtime can do that: a workload that was altered from outside, and one that an edit
 * changes in place. It serves meanwhile. Pure.
 */
import { delayAfter } from '../rules/backoff.ts';
import type { Roles } from '../rules/assign-roles.ts';
import { mismatchText, repairsDrift } from '../rules/checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { TimedActions } from './plan-stops.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { workloadNamed } from '../facts/workload.ts';

/** `hindered`: nothing may be started now; then nothing is mended either. */
export function planInPlaceUpdates(view: SlotView, roles: Roles, hindered: boolean): TimedActions {
  const workload = findUpdatable(roles);
  if (workload === undefined || hindered || view.applying !== undefined) return NOTHING;
  if (workload.standing === 'altered' && repairsDrift(view)) {
    return mend(workload, view, { reason: 'WorkloadAltered', message: mismatchText(workload) });
  }
  if (!workload.behind) return NOTHING;
  const at = nextUpdateAt(workload, view);
  if (at > view.now) return { actions: [], wakes: [at] };
  return mend(workload, view, { reason: 'ApplyOutdated', message: 'An edit changed what needs no new workload' });
}

function findUpdatable({ serving, starting }: Roles): WorkloadView | undefined {
  return [serving, starting].find((workload) => workload?.updatable === true && (workload.behind || workload.standing === 'altered'));
}

/** An update that does not hold is repeated less and less often. */
function nextUpdateAt({ known }: WorkloadView, { slot }: SlotView): number {
  const { updates } = known;
  return updates?.generation === slot.generation ? updates.lastAt + delayAfter(updates.times) : 0;
}

function mend({ fact, known }: WorkloadView, { slot, spec, template, model }: SlotView, because: Finding): TimedActions {
  if (template === undefined || model?.kind !== 'present') return NOTHING;
  const hostPort = fact.container.port?.host ?? template.containerPort ?? 0;
  const workload = workloadNamed(slot, template, fact.name, hostPort);
  const origin = known.origin ?? { spec, model: model.facts, memoryBytes: template.memoryBytes };
  const inPlace = { workload: fact.id, altered: because.reason === 'WorkloadAltered' };
  return { actions: [{ name: 'apply', slot: slot.name, because, args: { workload, origin, inPlace } }], wakes: [] };
}

const NOTHING: TimedActions = { actions: [], wakes: [] };
