/**
 * Hands out ports and memory to the slots of one plan. An allocation is a value: what the plan of one slot takes is missing from the
 * allocation that the next slot is planned with. Pure.
 */
import type { Action } from '../facts/actions.ts';
import type { Desired, Observed } from '../facts/facts.ts';
import { freePort } from '../facts/workload.ts';

/** What the slots of one plan share; the same for all of them. */
export interface SharedResources {
  readonly portRange: { readonly first: number; readonly last: number };
  readonly takenPorts: ReadonlySet<number>;
  readonly budgetBytes: number | undefined;
  readonly availableBytes: number | undefined;
  /** What all workloads that exist or are being started hold. */
  readonly heldBytes: number;
  /** The sum of the memory claims that were admitted. */
  readonly admittedBytes: number;
}

export interface Allocation {
  readonly resources: SharedResources;
  /** The lowest port that is not taken; undefined when all are. */
  readonly freePort: number | undefined;
  /** Memory of the workloads that this plan starts, so far. */
  readonly startedBytes: number;
}

/** The memory of one slot. */
export interface SlotMemory {
  /** What one more workload of it needs. */
  readonly neededBytes: number;
  /** Its part of the admitted memory. */
  readonly claimedBytes: number;
  /** What its workloads hold. */
  readonly heldBytes: number;
}

/** `admittedBytes`: what admission has promised to all slots. `heldBytes`: what the workloads of all slots hold. */
export function sharedResources(
  desired: Desired,
  observed: Observed,
  memory: { readonly admittedBytes: number; readonly heldBytes: number },
): SharedResources {
  const used = findUsed(desired, observed);
  return {
    portRange: desired.portRange,
    takenPorts: used.ports,
    budgetBytes: desired.memoryBudgetBytes,
    // Pods do not run in the memory of this host.
    availableBytes: observed.traits.network === 'pods' ? undefined : observed.host.memoryAvailableBytes,
    heldBytes: memory.heldBytes + used.bytes,
    admittedBytes: memory.admittedBytes,
  };
}

export function openAllocation(resources: SharedResources): Allocation {
  return { resources, freePort: nextFreePort(resources, resources.portRange.first), startedBytes: 0 };
}

/** Ports in use, and memory in use by what is not a workload of a desired slot: orphans, and workloads that are being started. */
function findUsed(desired: Desired, observed: Observed): { readonly ports: ReadonlySet<number>; readonly bytes: number } {
  const ports = new Set(observed.takenPorts);
  const hasHostPorts = observed.traits.network !== 'pods';
  let bytes = 0;
  for (const { id, slot, container, endpoints } of observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : []) {
    const port = container.port?.host ?? endpoints[0]?.port;
    if (port !== undefined && hasHostPorts) ports.add(port);
    if (!desired.slots.has(slot)) bytes += observed.histories.get(id)?.origin?.memoryBytes ?? 0;
  }
  for (const { action } of observed.running.values()) {
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) continue;
    if (hasHostPorts) ports.add(action.args.workload.port.host);
    bytes += action.args.origin.memoryBytes;
  }
  return { ports, bytes };
}

/** The allocation after the workloads that `actions` start have taken their ports and memory. */
export function afterStarts(allocation: Allocation, actions: readonly Action[]): Allocation {
  return actions.reduce((before, action) => {
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) return before;
    const { workload, origin } = action.args;
    const takesPort = workload.cluster === undefined;
    return {
      resources: before.resources,
      freePort: takesPort ? nextFreePort(before.resources, workload.port.host + 1) : before.freePort,
      startedBytes: before.startedBytes + origin.memoryBytes,
    };
  }, allocation);
}

/** Whether one more workload of a slot has enough memory: now, and permanently beside the one that serves. */
export function roomFor(
  { neededBytes, claimedBytes, heldBytes }: SlotMemory,
  { resources, startedBytes }: Allocation,
): { readonly fitsNow: boolean; readonly fitsBeside: boolean } {
  const { budgetBytes, availableBytes } = resources;
  const fitsBudget = (bytes: number) => budgetBytes === undefined || bytes + startedBytes + neededBytes <= budgetBytes;
  const fitsNow = fitsBudget(resources.heldBytes);
  const available = availableBytes === undefined || neededBytes <= availableBytes;
  return { fitsNow, fitsBeside: fitsNow && available && fitsBudget(resources.admittedBytes - claimedBytes + heldBytes) };
}

function nextFreePort({ portRange, takenPorts }: SharedResources, first: number): number | undefined {
  return freePort({ first, last: portRange.last }, (port) => takenPorts.has(port));
}
