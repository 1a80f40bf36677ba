/**
 * Memory pools of a machine, each with a budget: the host's, and one for each device with memory of its own. A device
 * that shares the host's memory has at most a small pool that the firmware reserves; the rest counts against the host.
 * Pure.
 */
import type { Device, Hardware, Machine, MachineDevice } from '../../../schema/status/hardware.ts';
import type { MemorySplit } from '../../../providers/provider.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';

/** `host`, or the id of a device. */
export type PoolId = string;

export const HOST: PoolId = 'host';

/** Bytes in each pool; a pool without an entry is not used. */
export type PoolBytes = Readonly<Record<PoolId, number>>;

export const NO_BYTES: PoolBytes = {};

export interface MemoryPool {
  readonly id: PoolId;
  /** What workloads may use together; undefined where it is not known, and then everything fits. */
  readonly budgetBytes: number | undefined;
  /** Memory used by other programs. Running workloads keep theirs; new ones must fit beside it. */
  readonly othersBytes: number;
  /** Set aside for a device in the memory of the host, which has the rest of what the device uses. */
  readonly aside?: true;
}

/** Why a slot has its place in the order. */
export type MemoryGroup = 'always' | 'loading' | 'turn' | 'overdue' | 'waiting' | 'served' | 'idle' | 'warm' | 'unloaded';

/** One slot in the list of all that share the memory. */
export interface MemoryCandidate {
  readonly slot: SlotName;
  readonly bytes: number;
  readonly priority: number;
  readonly group: MemoryGroup;
  /** It runs. */
  readonly incumbent: boolean;
  readonly admitted: boolean;
}

/** A slot that gets memory and is still to be started. */
export interface Newcomer {
  readonly slot: SlotName;
  /** Key of the caller whose request it is loaded for; undefined if it is loaded for none. */
  readonly caller: string | undefined;
}

export interface MemoryVerdict {
  readonly admitted: boolean;
  /** Not admitted, but the slots that hold the memory will release it automatically, or other programs may. */
  readonly mayWait: boolean;
  /** Everything that the slot needs. */
  readonly bytes: number;
  /** Set where its server was measured to use more than what it was estimated to need, which is this. */
  readonly estimatedBytes?: number | undefined;
  /** Where it is, or would be. */
  readonly placement: PoolBytes;
  /** Set where the CPU computes a part, because the devices are too small. */
  readonly split?: MemorySplit | undefined;
  /** The memory that is short; else the first one that the slot needs. The numbers below are those of this memory. */
  readonly pool: PoolId;
  readonly neededBytes: number;
  readonly budgetBytes: number | undefined;
  /** What other programs use of the budget. */
  readonly othersBytes: number;
  /** What the slots before it get. */
  readonly aheadBytes: number;
  /** It would fit, and the slot with this name waits for the same memory and comes first. */
  readonly keptFor?: SlotName;
  /** It runs, and has to leave its memory to this one. */
  readonly givesWayTo?: Newcomer;
  /** The admitted slots before it, in order; at most ten. */
  readonly ahead: readonly SlotName[];
  /** Slots that compete for the memory: those without it first, then the others in order; at most ten of each. */
  readonly candidates: readonly MemoryCandidate[];
}

/** What one backend can compute with here. */
export interface PoolsOfBackend {
  /** Devices with a memory of their own, in their order. */
  readonly own: readonly PoolId[];
  /** What is set aside for a device in the memory of the host, and is used up first. */
  readonly dedicated: readonly PoolId[];
}

/** The share of a device's memory that models may use; the rest is for its driver and the screen. */
const SHARE_OF_DEVICE = 0.95;
/** Granularity of other programs' memory, so that a plan does not change with every allocated page. */
const PARTS = 32;

export interface PoolFacts {
  /** Undefined: no limit. */
  readonly hostBudgetBytes: number | undefined;
  readonly hardware: Hardware | undefined;
  readonly memoryTotalBytes: number | undefined;
  readonly memoryAvailableBytes: number | undefined;
  /** What all workloads use. */
  readonly used: PoolBytes;
}

export function findPools({ hostBudgetBytes, hardware, used, ...host }: PoolFacts): readonly MemoryPool[] {
  const others = othersBytes(host.memoryTotalBytes, host.memoryAvailableBytes, used[HOST] ?? 0);
  const beyondBudget = Math.max(0, (host.memoryTotalBytes ?? 0) - (hostBudgetBytes ?? 0));
  return [
    { id: HOST, budgetBytes: hostBudgetBytes, othersBytes: hostBudgetBytes === undefined ? 0 : Math.max(0, others - beyondBudget) },
    ...(hardware?.devices ?? []).flatMap((device) => poolOf(device, used) ?? []),
  ];
}

function poolOf(device: Device, used: PoolBytes): MemoryPool | undefined {
  const { id, memory } = device;
  if (memory === undefined) return undefined;
  const totalBytes = ownBytes(device);
  if (totalBytes === 0) return undefined;
  const budgetBytes = usableBytes(device);
  // What is free of a unified device says nothing about the part that is set aside for it.
  const others = device.unified ? 0 : othersBytes(totalBytes, memory.freeBytes, used[id] ?? 0);
  return { id, budgetBytes, othersBytes: Math.max(0, others - (totalBytes - budgetBytes)), ...(device.unified ? { aside: true } : {}) };
}

/** What models may use of each device; infinite for the host. */
export function roomOnDevices(machine: Machine | undefined): (id: PoolId) => number {
  const rooms = new Map(machine?.devices.map((device) => [device.id, usableBytes(device)]));
  return (id) => rooms.get(id) ?? Number.POSITIVE_INFINITY;
}

const usableBytes = (device: MachineDevice): number => Math.floor(ownBytes(device) * SHARE_OF_DEVICE);

/** What a device has beside the memory of the host. */
const ownBytes = ({ memory, unified }: MachineDevice): number => (unified ? memory?.dedicatedBytes : memory?.totalBytes) ?? 0;

/** What is neither free nor ours, rounded up to whole parts. */
function othersBytes(totalBytes: number | undefined, freeBytes: number | undefined, oursBytes: number): number {
  if (totalBytes === undefined || freeBytes === undefined) return 0;
  const part = totalBytes / PARTS;
  return Math.floor(Math.ceil(Math.max(0, totalBytes - freeBytes - oursBytes) / part) * part);
}

const HOST_ONLY: PoolsOfBackend = { own: [], dedicated: [] };

/** The machine as a slot sees it that may use some devices only. `names`: ids or PCI addresses; undefined: all. */
export function withDevices<M extends Pick<Machine, 'devices'>>(
  machine: M | undefined,
  names: readonly string[] | undefined,
): M | undefined {
  if (machine === undefined || names === undefined) return machine;
  return { ...machine, devices: machine.devices.filter((device) => names.some((name) => isCalled(device, name))) };
}

export const isCalled = ({ id, pciAddress }: Pick<MachineDevice, 'id' | 'pciAddress'>, name: string): boolean =>
  id === name || pciAddress === name;

/** Where servers of a backend have what they compute with. Without known devices, that is the memory of the host. */
export function poolsOfBackend(machine: Machine | undefined, backend: Backend): PoolsOfBackend {
  const devices = (machine?.devices ?? []).filter((device) => device.backends.includes(backend) && ownBytes(device) > 0);
  if (backend === 'cpu' || devices.length === 0) return HOST_ONLY;
  const discrete = devices.filter(({ unified }) => !unified);
  return discrete.length > 0 ? { own: discrete.map(({ id }) => id), dedicated: [] } : { own: [], dedicated: devices.map(({ id }) => id) };
}

/** Total memory of the backend's largest discrete device; undefined without one, or if unknown. */
export function largestDeviceBytes(machine: Machine | undefined, backend: Backend): number | undefined {
  const discrete = (machine?.devices ?? []).filter((device) => !device.unified && device.backends.includes(backend));
  const sizes = discrete.flatMap(({ memory }) => memory?.totalBytes ?? []);
  return sizes.length === 0 || sizes.length < discrete.length ? undefined : Math.max(...sizes);
}

export const addBytes = (a: PoolBytes, b: PoolBytes): PoolBytes => sumBytes([a, b]);

/** The larger one in each pool. */
export function mostBytes(a: PoolBytes, b: PoolBytes): PoolBytes {
  const most: Record<PoolId, number> = { ...a };
  for (const [id, bytes] of Object.entries(b)) most[id] = Math.max(most[id] ?? 0, bytes);
  return most;
}

export function sumBytes(parts: readonly PoolBytes[]): PoolBytes {
  const sum: Record<PoolId, number> = {};
  for (const part of parts) for (const id in part) sum[id] = (sum[id] ?? 0) + (part[id] ?? 0);
  return sum;
}

export function totalBytes(bytes: PoolBytes): number {
  let sum = 0;
  for (const id in bytes) sum += bytes[id] ?? 0;
  return sum;
}
