/** When a slot was last of use, which decides when it is unloaded for being idle. Pure. */
import type { DesiredSlot, ObservedWorkload, Traffic } from '../../ports.ts';
import type { PublishedSlot } from '../facts/facts.ts';
import type { SlotEdit } from '../facts/slot-edit.ts';

export interface ActivityFacts {
  readonly slot: DesiredSlot;
  readonly now: number;
  /** The answer of the last pass; undefined if the slot was never of use. */
  readonly before: number | undefined;
  readonly traffic: ReturnType<Traffic['read']>;
  readonly workloads: readonly ObservedWorkload[];
  readonly published: PublishedSlot | undefined;
  /** What changed in the slot in this pass. */
  readonly edit: SlotEdit;
  /** This controller begins to lead in this pass. */
  readonly takesOver: boolean;
  readonly hasFailures: boolean;
}

/**
 * Monotonic milliseconds. Requests count, those that only asked for the slot included. So do, as reasons not to unload
 * it yet, an edit of a slot that is always loaded (other than a change of its replicas), a load that has not finished,
 * one that failed and will be tried again, and a workload that was found running.
 */
export function deriveLastActive(facts: ActivityFacts): number | undefined {
  const { slot, now, before, traffic, workloads } = facts;
  const demand = traffic.demand.get(slot.name);
  const uses = workloads.map(({ id }) => traffic.workloads.get(id));
  if ((demand?.waiting ?? 0) > 0 || uses.some((use) => use !== undefined && use.inFlight > 0) || isOwedTime(facts)) return now;
  const times = [before, demand?.lastAskedAt, ...uses.map((use) => use?.lastUsedAt)].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(...times);
}

function isOwedTime({ slot: { spec }, edit, before, workloads, published, takesOver, hasFailures }: ActivityFacts): boolean {
  const always = spec.load === 'always';
  const last = published?.decision;
  const loading = last?.state === 'pulling' || last?.state === 'starting' || last?.state === 'warming';
  const retrying = always && last?.state === 'offline' && last.wanted && hasFailures;
  const edited = edit === 'edited' || edit === 'scaled-up';
  const found = (before === undefined || takesOver) && workloads.some(({ phase }) => phase === 'running' || phase === 'created');
  return (always && edited) || loading || retrying || found;
}
