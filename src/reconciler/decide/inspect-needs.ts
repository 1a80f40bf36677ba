/** Whether a workload must not be stopped, judged by the facts alone: a part of `inspect`, written independently of the planner. Pure. */
import type { DesiredSlot, ObservedWorkload } from '../ports.ts';
import type { Observed } from './facts/facts.ts';
import { canAllHaveMemory } from './inspect-memory.ts';
import type { Case } from './facts/inspection.ts';

/** Its slot wants it, it is what the slot asks for, it passes its probes, and no other workload could do its work. */
export function isNeeded(workload: ObservedWorkload, facts: Case): boolean {
  const slot = facts.desired.slots.get(workload.slot);
  if (slot === undefined || !isWanted(slot, facts) || !isCurrentAndPassing(workload, slot, facts)) return false;
  const others = (facts.bySlot.get(slot.name) ?? []).filter(({ id }) => id !== workload.id);
  return others.every((other) => !isCurrentAndPassing(other, slot, facts)) && canAllHaveMemory(facts);
}

function isWanted({ name, spec }: DesiredSlot, { observed, now, bySlot }: Case): boolean {
  if (!spec.enabled || (observed.traits.network === 'pods' && spec.cluster.replicas === 0)) return false;
  const inFlight = (bySlot.get(name) ?? []).some(({ id }) => (observed.activity.get(id)?.inFlight ?? 0) > 0);
  if (inFlight || (observed.demand.get(name)?.waiting ?? 0) > 0) return true;
  const lastActiveAt = observed.lastActive.get(name);
  if (lastActiveAt === undefined) return spec.load === 'always';
  return now - lastActiveAt < spec.lifecycle.idleTimeoutMs;
}

function isCurrentAndPassing(workload: ObservedWorkload, slot: DesiredSlot, { desired, observed, templateOf }: Case): boolean {
  const { id, phase, endpoints, revision } = workload;
  if (phase !== 'running' || endpoints.length === 0 || observed.running.has(`stop:${id}`)) return false;
  if (observed.histories.get(id)?.probe?.status !== 'passing') return false;
  const template = templateOf(slot);
  if (template === undefined || template.revision !== revision) return false;
  try {
    return desired.compare(slot, template, imageIdOf(template.image, observed), workload).drift.length === 0;
  } catch {
    return false;
  }
}

function imageIdOf(
  image: { readonly reference: string; readonly imageId?: string } | undefined,
  { runtime }: Observed,
): string | undefined {
  const images = runtime.kind === 'reachable' ? runtime.facts.images : [];
  return images.find(({ reference, present }) => present && reference === image?.reference)?.imageId ?? image?.imageId;
}
