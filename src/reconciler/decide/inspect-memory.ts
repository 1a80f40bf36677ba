/** Checks a plan against memory budgets from the facts alone: part of `inspect`, independent of the planner. Pure. */
import type { SlotName } from '../../schema/words/names.ts';
import type { ObservedWorkload, DesiredSlot } from '../ports.ts';
import type { Action } from './facts/actions.ts';
import type { Case, Objection, Observed } from './facts/facts.ts';
import { findPools, HOST, NO_BYTES, type MemoryPool, type PoolBytes } from './facts/memory-pools.ts';

type Start = Extract<Action, { name: 'apply' | 'wake' }>;

/** An objection for each start after which the workloads would need more memory than there is. */
export function findOverdrafts(facts: Case): readonly Objection[] {
  const { plan, observed, desired, bySlot } = facts;
  const starts = plan.actions.filter((action): action is Start => isStart(action));
  if (starts.length === 0) return [];
  return poolsOf(facts).flatMap(({ id, aside, budgetBytes = Number.POSITIVE_INFINITY }) => {
    const bytesOf = (memory: PoolBytes): number => memory[id] ?? 0;
    let bytes = heldBytes(facts, bytesOf);
    for (const { action } of observed.running.values())
      if (action.name === 'apply' && isStart(action)) bytes += bytesOf(action.args.origin.memory);
    return starts.flatMap((start) => {
      const { slot: name } = start;
      const added = addedBytes(start, facts, bytesOf);
      bytes += id === HOST && start.name === 'apply' ? Math.max(added, leastOf(name, facts)) : added;
      // Who asks for this takes the risk that both do not fit.
      const insists = desired.slots.get(name)?.spec.lifecycle.swap === 'blue-green' && (bySlot.get(name) ?? []).length > 0;
      // A server that wakes takes the rest of the host where the part that is set aside is full.
      const spills = aside === true && start.name === 'wake';
      if (bytes <= budgetBytes || insists || spills || added <= 0) return [];
      const where = id === HOST ? '' : ` of "${id}"`;
      return [
        { slot: name, message: `Starts slot "${name}", after which ${bytes} bytes of a budget of ${budgetBytes}${where} are in use` },
      ];
    });
  });
}

const isStart = (action: Action): action is Start =>
  action.name === 'wake' || (action.name === 'apply' && action.args.updatesInPlace === undefined);

function addedBytes({ name, args }: Start, facts: Case, bytesOf: (memory: PoolBytes) => number): number {
  if (name === 'apply') return bytesOf(args.origin.memory);
  const { memory } = facts.observed.histories.get(args.workload)?.origin ?? {};
  const workload = facts.byId.get(args.workload);
  return memory === undefined || workload === undefined ? 0 : bytesOf(memory) - bytesOf(sleepingMemory(workload, memory, facts));
}

/** A server that sleeps may hold nothing on devices. */
function sleepingMemory({ id, slot: name }: ObservedWorkload, memory: PoolBytes, { desired, observed, templateOf }: Case): PoolBytes {
  const slot = desired.slots.get(name);
  const isWoken = observed.running.get(`sleep:${id}`)?.action.name === 'wake';
  if (slot === undefined || isWoken || observed.histories.get(id)?.probe?.status !== 'asleep') return memory;
  const { asleepBytes } = templateOf(slot) ?? {};
  return asleepBytes === undefined ? memory : { [HOST]: Math.max(memory[HOST] ?? 0, asleepBytes) };
}

function poolsOf({ desired }: Case): readonly MemoryPool[] {
  const unknown = { memoryTotalBytes: undefined, memoryAvailableBytes: undefined };
  return findPools({ ...unknown, hostBudgetBytes: desired.memoryBudgetBytes, hardware: desired.hardware, used: NO_BYTES });
}

/** What a slot needs of the memory of the host, wherever it is placed. */
function leastOf(name: SlotName, { desired, templateOf }: Case): number {
  const slot = desired.slots.get(name);
  return slot === undefined ? 0 : (templateOf(slot)?.memory?.hostBytes ?? 0);
}

/** Whether every slot may have its memory at the same time, so that none has to give way. */
function canAllHaveMemory({ desired, bySlot, observed, templateOf }: Case): boolean {
  // Where models may be on one device or another, what fits depends on where each of them is.
  if (desired.hardware?.devices.some(({ memory }) => memory !== undefined) === true) return false;
  if (desired.memoryBudgetBytes === undefined) return true;
  let bytes = 0;
  for (const [name, slot] of desired.slots) {
    const template = templateOf(slot);
    if (template === undefined) return false;
    const origins = (bySlot.get(name) ?? []).map(({ id }) => observed.histories.get(id)?.origin);
    // An edit may ask for less than the start that is under way.
    for (const { action } of observed.running.values())
      if (action.name === 'apply' && isStart(action) && action.slot === name) origins.push(action.args.origin);
    const held = origins.map((origin) => origin?.memory[HOST] ?? 0);
    const { host = 0, mapped = 0 } = observed.measured?.get(name)?.memory ?? {};
    if (slot.spec.enabled || held.length > 0) bytes += Math.max(template.memoryBytes ?? 0, host + mapped, ...held);
  }
  return bytes <= desired.memoryBudgetBytes;
}

/** What all workloads hold of one pool; what was found running is assumed to hold what its slot needs of the host. */
function heldBytes(facts: Case, bytesOf: (memory: PoolBytes) => number): number {
  let bytes = 0;
  for (const [name, workloads] of facts.bySlot) {
    const assumed = bytesOf({ [HOST]: leastOf(name, facts) });
    for (const workload of workloads) {
      const { memory } = facts.observed.histories.get(workload.id)?.origin ?? {};
      if (workload.phase !== 'exited') bytes += memory === undefined ? assumed : bytesOf(sleepingMemory(workload, memory, facts));
    }
  }
  return bytes;
}

/**
 * Whether a workload must not be stopped: its slot wants it, it is what the slot asks for, it passes its probes, and no
 * other workload could do its work.
 */
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
  if (observed.warm?.has(name) === true) return true;
  const lastActiveAt = observed.lastActive.get(name);
  const ahead = observed.published.get(name)?.decision.ahead;
  // It was loaded ahead of requests, and none has come.
  if (spec.load === 'on-demand' && ahead !== undefined && ahead.lastActiveAt === lastActiveAt) return false;
  if (lastActiveAt === undefined) return spec.load === 'always';
  return now - lastActiveAt < spec.lifecycle.idleTimeoutMs;
}

function isCurrentAndPassing(workload: ObservedWorkload, slot: DesiredSlot, { desired, observed, templateOf }: Case): boolean {
  const { id, phase, endpoints, revision } = workload;
  if (phase !== 'running' || endpoints.length === 0 || observed.running.has(`stop:${id}`)) return false;
  const { probe, sleeps } = observed.histories.get(id) ?? {};
  if (probe?.status !== 'passing' || sleeps?.fault !== undefined) return false;
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
