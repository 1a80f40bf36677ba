/**
 * In which memories of the machine a server is placed: on one device where it fits, the fullest one in which it does; split over as few as possible otherwise.
 * Pure.
 */
import type { MemoryDemand } from '../../../providers/provider.ts';
import { HOST, type PoolBytes, type PoolId, type PoolsOfBackend } from '../facts/memory-pools.ts';

export interface PlacementQuestion {
  readonly demand: MemoryDemand;
  readonly pools: PoolsOfBackend;
  /** How many devices the slot asks for; undefined: as few as possible. */
  readonly gpus: number | undefined;
}

/**
 * `freeBytes` says what is left of a pool; infinite where that has no budget. Returns a placement also where nothing fits: the one that lacks least, so that the
 * numbers of a refusal mean something.
 */
export function placeMemory({ demand, pools, gpus }: PlacementQuestion, freeBytes: (pool: PoolId) => number): PoolBytes {
  const { hostBytes, deviceBytes } = demand;
  if (deviceBytes === 0) return { [HOST]: hostBytes };
  if (pools.own.length === 0) return intoHost(demand, pools.dedicated, freeBytes);
  return { [HOST]: hostBytes, ...overDevices(deviceBytes, pools.own, gpus, freeBytes) };
}

/** What is set aside for a device is used first, then the memory of the host. */
function intoHost({ hostBytes, deviceBytes }: MemoryDemand, dedicated: readonly PoolId[], freeBytes: (pool: PoolId) => number): PoolBytes {
  const [pool] = dedicated;
  if (pool === undefined) return { [HOST]: hostBytes + deviceBytes };
  const aside = Math.max(0, Math.min(deviceBytes, freeBytes(pool)));
  return aside === 0 ? { [HOST]: hostBytes + deviceBytes } : { [HOST]: hostBytes + deviceBytes - aside, [pool]: aside };
}

function overDevices(bytes: number, devices: readonly PoolId[], gpus: number | undefined, freeBytes: (pool: PoolId) => number): PoolBytes {
  const byRoom = devices.map((id) => ({ id, free: Math.max(0, freeBytes(id)) })).sort((a, b) => b.free - a.free);
  const fewest = Math.max(1, Math.min(gpus ?? 1, devices.length));
  const most = gpus === undefined ? devices.length : fewest;
  // The smallest room that is large enough leaves the larger ones to models that need them.
  const tight = fewest === 1 ? byRoom.findLast(({ free }) => free >= bytes) : undefined;
  if (tight !== undefined) return { [tight.id]: bytes };
  for (let count = fewest; count <= most; count += 1) {
    const chosen = byRoom.slice(0, count);
    if (count === most || chosen.reduce((sum, { free }) => sum + free, 0) >= bytes) return split(bytes, chosen);
  }
  return { [byRoom[0]?.id ?? HOST]: bytes };
}

/** As model servers do by default: in proportion to what is free on each device. */
function split(bytes: number, chosen: readonly { readonly id: PoolId; readonly free: number }[]): PoolBytes {
  const room = chosen.reduce((sum, { free }) => sum + free, 0);
  const share = (free: number): number => (Number.isFinite(room) && room > 0 ? free / room : 1 / chosen.length);
  return Object.fromEntries(chosen.map(({ id, free }) => [id, Math.ceil(bytes * share(free))]));
}
