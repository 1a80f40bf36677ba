/** Whether a plan keeps to the memory budget, added up from the facts alone: a part of `inspect`, written independently of the planner. Pure. */
import type { ObservedWorkload } from '../ports.ts';
import type { Case, Objection } from './facts/inspection.ts';

/** An objection for each start after which the workloads would need more memory than there is. */
export function findOverdrafts(facts: Case): readonly Objection[] {
  const { plan, desired, observed, bySlot, templateOf } = facts;
  const budget = desired.memoryBudgetBytes;
  const starts = plan.actions.filter((action) => action.name === 'apply' && action.args.updatesInPlace === undefined);
  if (budget === undefined || starts.length === 0) return [];
  let bytes = heldBytes(facts);
  for (const { action } of observed.running.values()) {
    if (action.name === 'apply' && action.args.updatesInPlace === undefined) bytes += action.args.origin.memoryBytes;
  }
  return starts.flatMap(({ slot: name }) => {
    const slot = desired.slots.get(name);
    bytes += slot === undefined ? 0 : (templateOf(slot)?.memoryBytes ?? 0);
    // Who asks for this takes the risk that both do not fit.
    const insists = slot?.spec.lifecycle.swap === 'blue-green' && (bySlot.get(name) ?? []).length > 0;
    if (bytes <= budget || insists) return [];
    return [{ slot: name, message: `Starts slot "${name}", after which ${bytes} bytes of a budget of ${budget} are in use` }];
  });
}

/** Whether every slot may have its memory at the same time, so that none has to give way. */
export function canAllHaveMemory({ desired, bySlot, observed, templateOf }: Case): boolean {
  if (desired.memoryBudgetBytes === undefined) return true;
  let bytes = 0;
  for (const [name, slot] of desired.slots) {
    const template = templateOf(slot);
    if (template === undefined) return false;
    const held = (bySlot.get(name) ?? []).map(({ id }) => observed.histories.get(id)?.origin?.memoryBytes ?? 0);
    if (slot.spec.enabled || held.length > 0) bytes += Math.max(template.memoryBytes, ...held);
  }
  return bytes <= desired.memoryBudgetBytes;
}

function heldBytes({ desired, observed, bySlot, templateOf }: Case): number {
  let bytes = 0;
  for (const [name, workloads] of bySlot) {
    const slot = desired.slots.get(name);
    const assumed = slot === undefined ? 0 : (templateOf(slot)?.memoryBytes ?? 0);
    for (const workload of workloads) if (isHolding(workload)) bytes += observed.histories.get(workload.id)?.origin?.memoryBytes ?? assumed;
  }
  return bytes;
}

function isHolding({ phase }: ObservedWorkload): boolean {
  return phase !== 'exited';
}
