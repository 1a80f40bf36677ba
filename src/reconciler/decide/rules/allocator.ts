/**
 * Hands out ports and memory to the slots of one plan. An allocation is a value: what the plan of one slot takes is missing from the
 * allocation that the next slot is planned with. Pure.
 */
import type { Action } from '../facts/actions.ts';
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

export function openAllocation(resources: SharedResources): Allocation {
  return { resources, freePort: nextFreePort(resources, resources.portRange.first), startedBytes: 0 };
}

/** The allocation after the workloads that `actions` start have taken their ports and memory. */
export function afterStarts(allocation: Allocation, actions: readonly Action[]): Allocation {
  return actions.reduce((before, action) => {
    if (action.name !== 'apply' || action.args.inPlace !== undefined) return before;
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
