/** Hands out ports and memory: what the plan of one slot takes is missing from the allocation of the next. Pure. */
import type { Action } from '../facts/actions.ts';
import type { Desired, Observed } from '../facts/facts.ts';
import { addBytes, HOST, NO_BYTES, sumBytes, type MemoryPool, type PoolBytes, type PoolId } from '../facts/memory-pools.ts';

/** What the slots of one plan share; the same for all of them. */
export interface SharedResources {
  readonly portRange: { readonly first: number; readonly last: number };
  readonly takenPorts: ReadonlySet<number>;
  readonly pools: readonly MemoryPool[];
  /** What is available of the memory of the host. */
  readonly availableBytes: number | undefined;
  /** What all workloads that exist or are being started hold. */
  readonly held: PoolBytes;
  /** The sum of the memory claims that were admitted. */
  readonly admitted: PoolBytes;
}

export interface Allocation {
  readonly resources: SharedResources;
  /** The lowest port that is not taken; undefined when all are. */
  readonly freePort: number | undefined;
  /** Memory of the workloads that this plan starts, so far. */
  readonly started: PoolBytes;
}

/** The memory of one slot. */
export interface SlotMemory {
  /** What one more workload of it needs. */
  readonly needed: PoolBytes;
  /** What its environment gets, so that it uses the devices on which it is placed. */
  readonly variables: Readonly<Record<string, string>>;
  /** Its part of the admitted memory. */
  readonly claimed: PoolBytes;
  /** What its workloads hold. */
  readonly held: PoolBytes;
  /** What its sleeping server would hold in addition if it were woken. */
  readonly toWake: PoolBytes;
}

/** Everything that the plan of one pass has to hand out. `used`: as `findUsed` returned it. */
export function sharedResources(
  desired: Desired,
  observed: Observed,
  memory: Pick<SharedResources, 'pools' | 'held' | 'admitted'> & { readonly used: Used },
): SharedResources {
  const { used, ...more } = memory;
  return {
    ...more,
    portRange: desired.portRange,
    takenPorts: used.ports,
    // Pods do not run in the memory of this host.
    availableBytes: observed.traits.network === 'pods' ? undefined : observed.host.memoryAvailableBytes,
  };
}

export function openAllocation(resources: SharedResources): Allocation {
  return { resources, freePort: nextFreePort(resources, resources.portRange.first), started: NO_BYTES };
}

interface Used {
  readonly ports: ReadonlySet<number>;
  readonly memory: PoolBytes;
}

/** Ports and memory in use by anything but workloads of desired slots: orphans, and workloads being started. */
export function findUsed(desired: Desired, observed: Observed): Used {
  const ports = new Set(observed.takenPorts);
  for (const port of desired.ownPorts ?? []) ports.add(port);
  const hasHostPorts = observed.traits.network !== 'pods';
  const memory: PoolBytes[] = [];
  for (const { id, slot, container, endpoints } of observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : []) {
    const port = container.port?.host ?? endpoints[0]?.port;
    if (port !== undefined && hasHostPorts) ports.add(port);
    if (!desired.slots.has(slot)) memory.push(observed.histories.get(id)?.origin?.memory ?? NO_BYTES);
  }
  for (const { action } of observed.running.values()) {
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) continue;
    if (hasHostPorts) ports.add(action.args.workload.port.host);
    memory.push(action.args.origin.memory);
  }
  return { ports, memory: sumBytes(memory) };
}

/** The allocation after the workloads that `actions` start have taken their ports and memory. */
export function afterStarts(allocation: Allocation, actions: readonly Action[]): Allocation {
  return actions.reduce((before, action) => {
    if (action.name === 'wake') return { ...before, started: addBytes(before.started, action.args.memory) };
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) return before;
    const { workload, origin } = action.args;
    const takesPort = workload.cluster === undefined;
    return {
      resources: before.resources,
      freePort: takesPort ? nextFreePort(before.resources, workload.port.host + 1) : before.freePort,
      started: addBytes(before.started, origin.memory),
    };
  }, allocation);
}

/** Whether one more workload of a slot has enough memory: now, and permanently beside the one that serves. */
export function roomFor(
  { needed, claimed, held }: Pick<SlotMemory, 'needed' | 'claimed' | 'held'>,
  allocation: Allocation,
): { readonly fitsNow: boolean; readonly fitsBeside: boolean } {
  const { resources } = allocation;
  const { availableBytes } = resources;
  const fitsNow = fitsHeld(needed, allocation);
  const available = availableBytes === undefined || (needed[HOST] ?? 0) <= availableBytes;
  const fitsLater = fits(needed, allocation, (id) => (resources.admitted[id] ?? 0) - (claimed[id] ?? 0) + (held[id] ?? 0));
  return { fitsNow, fitsBeside: fitsNow && available && fitsLater };
}

/** Whether there is room for so much beside all that is held. */
export const fitsHeld = (more: PoolBytes, allocation: Allocation): boolean =>
  fits(more, allocation, (id) => allocation.resources.held[id] ?? 0);

/** What does not fit into memory that is set aside for a device is in the rest of the host's, as a driver has it. */
export function spillAside(more: PoolBytes, { resources: { pools, held }, started }: Allocation): PoolBytes {
  return pools.reduce<PoolBytes>((before, { id, aside, budgetBytes }) => {
    const bytes = more[id] ?? 0;
    if (aside !== true || budgetBytes === undefined || bytes <= 0) return before;
    const here = Math.min(bytes, Math.max(0, budgetBytes - (held[id] ?? 0) - (started[id] ?? 0)));
    return { ...before, [id]: here, [HOST]: (before[HOST] ?? 0) + bytes - here };
  }, more);
}

function fits(more: PoolBytes, { resources, started }: Allocation, used: (id: PoolId) => number): boolean {
  return resources.pools.every(({ id, budgetBytes, othersBytes }) => {
    const bytes = more[id] ?? 0;
    return budgetBytes === undefined || bytes <= 0 || used(id) + (started[id] ?? 0) + bytes <= budgetBytes - othersBytes;
  });
}

/**
 * A port for a workload; another one than `avoided`, if there is one. Servers fail on ports that seem free: connections
 * that linger there (`TIME_WAIT`) keep out a server that sets SO_REUSEPORT alone, as cpp-httplib does.
 */
export function portFor({ freePort, resources }: Allocation, avoided: number | undefined): number | undefined {
  if (freePort === undefined || freePort !== avoided) return freePort;
  return nextFreePort(resources, freePort + 1) ?? freePort;
}

function nextFreePort({ portRange, takenPorts }: SharedResources, first: number): number | undefined {
  return freePort({ first, last: portRange.last }, (port) => takenPorts.has(port));
}

/** The lowest port of a range that is not taken; undefined when all are. */
export function freePort(range: { readonly first: number; readonly last: number }, taken: (port: number) => boolean): number | undefined {
  for (let port = range.first; port <= range.last; port += 1) if (!taken(port)) return port;
  return undefined;
}
