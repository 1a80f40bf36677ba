/** The start of a workload. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { Action } from '../facts/actions.ts';
import type { SlotView } from '../facts/view.ts';
import { workloadOf } from '../facts/workload.ts';
import type { Allocation, SlotMemory } from '../rules/allocator.ts';
import type { Gate } from '../rules/gates.ts';

/** Either the action, or why there is none after all. */
export function planStart(
  view: SlotView,
  allocation: Allocation,
  { needed, variables }: Pick<SlotMemory, 'needed' | 'variables'>,
): { readonly action?: Action; readonly gate?: Gate } {
  const { template, slot, model, spec } = view;
  if (template === undefined || model?.kind !== 'present') return {};
  const port = template.cluster === undefined ? allocation.freePort : template.containerPort;
  if (port === undefined) {
    const message = 'Widen "SVC_PORT_RANGE": every port of it is taken';
    return { gate: { kind: 'waiting', reason: 'PortRangeUsedUp', message } };
  }
  const names = new Set(view.workloads.map(({ fact }) => fact.name));
  const placed = { ...template, env: { ...template.env, ...variables } };
  const workload = workloadOf(slot, Object.keys(variables).length === 0 ? template : placed, port, names);
  const origin = { spec, model: model.facts, memory: needed };
  const because: Finding =
    names.size === 0
      ? { reason: 'WorkloadNotPresent', message: 'The slot is wanted and has no workload' }
      : { reason: 'RevisionOutdated', message: `Revision "${template.revision}" starts beside the one that serves` };
  return { action: { name: 'apply', slot: slot.name, because, args: { workload, origin } } };
}
