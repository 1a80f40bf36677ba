/**
 * Who comes first where memory is short. Slots that load on demand take turns: one that is loaded keeps its memory for
 * as long as it took to load (1 s to 30 s) while requests come, also when a slot of higher priority is asked for; then
 * it gives way to the one whose requests wait, of the highest priority first, or for longer than 30 s. So every slot
 * that is asked for is served at each load, and none waits indefinitely. Idle slots give way at once: the lowest
 * priority first, then what is read from the disk fastest, then what was not used for longest. What is always loaded
 * gives way to a higher priority only. What is loaded ahead of requests takes only what is left, and gives way to all
 * others at once. Pure.
 */
import { HOST, type MemoryGroup, type PoolBytes, type PoolId, type PoolsOfBackend } from '../facts/memory-pools.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { MemoryDemand, MemorySplit } from '../../../providers/provider.ts';

export interface Turn {
  readonly group: MemoryGroup;
  /** Monotonic milliseconds until which the place holds unless requests come or end; undefined without a limit. */
  readonly until: number | undefined;
}

/** What decides the place of a slot in the order. */
export interface MemoryRequest {
  readonly slot: SlotName;
  readonly priority: number;
  readonly turn: Turn;
  /** A request is in flight or waiting. */
  readonly busy: boolean;
  /** It is running or being started. */
  readonly incumbent: boolean;
  /** Since when its oldest request waits; undefined where none does. Monotonic milliseconds. */
  readonly waitingSince: number | undefined;
  /** Bytes read from disk to load it. */
  readonly reloadBytes: number;
  /** Monotonic milliseconds; 0 for never. */
  readonly lastActiveAt: number;
}

const SHORTEST_TURN_MS = 1000;
const LONGEST_TURN_MS = 30_000;
/** A slot without requests for this part of its turn is idle; sequential clients pause for less. */
const PAUSE = 1 / 4;
/** Requests that have waited for so long come before those of higher priority. */
const OVERDUE_MS = 30_000;

interface TurnFacts extends Pick<MemoryRequest, 'busy' | 'incumbent' | 'waitingSince' | 'lastActiveAt'> {
  readonly onDemand: boolean;
  /** It is loaded ahead of requests. */
  readonly isAhead: boolean;
  /** Since when it passes its probes; undefined while it does not. Monotonic milliseconds. */
  readonly passingSince: number | undefined;
  /** When its workload was started, or first seen. */
  readonly startedAt: number | undefined;
  readonly now: number;
}

export function turnOf(facts: TurnFacts): Turn {
  const { onDemand, isAhead, busy, incumbent, waitingSince, passingSince, startedAt, lastActiveAt, now } = facts;
  if (isAhead) return { group: 'warm', until: undefined };
  if (!onDemand) return { group: 'always', until: undefined };
  if (!incumbent) {
    if (!busy || waitingSince === undefined) return { group: busy ? 'waiting' : 'unloaded', until: undefined };
    const overdueAt = waitingSince + OVERDUE_MS;
    return now < overdueAt ? { group: 'waiting', until: overdueAt } : { group: 'overdue', until: undefined };
  }
  if (passingSince === undefined) return { group: 'loading', until: undefined };
  const loadMs = passingSince - (startedAt ?? passingSince);
  const turnMs = Math.min(LONGEST_TURN_MS, Math.max(SHORTEST_TURN_MS, loadMs));
  const end = passingSince + turnMs;
  const until = busy ? end : Math.min(end, lastActiveAt + turnMs * PAUSE);
  if (now < until) return { group: 'turn', until };
  return { group: busy ? 'served' : 'idle', until: undefined };
}

/** The order in which memory is given out. `earlier`: a previous order, which only saves comparisons. */
export function inOrder<Request extends MemoryRequest>(requests: readonly Request[], earlier: readonly Request[] = []): readonly Request[] {
  const ranked = rankOf(requests);
  const ranks = new Map(requests.map((request) => [request.slot, ranked(request)]));
  return nearlyInOrder(requests, earlier).sort(
    (a, b) =>
      (ranks.get(b.slot) ?? 0) - (ranks.get(a.slot) ?? 0) || placeOf(a) - placeOf(b) || compareWithin(a, b) || (a.slot < b.slot ? -1 : 1),
  );
}

function nearlyInOrder<Request extends MemoryRequest>(requests: readonly Request[], earlier: readonly Request[]): Request[] {
  if (earlier.length === 0) return [...requests];
  const rest = new Map(requests.map((request) => [request.slot, request]));
  const known: Request[] = [];
  for (const { slot } of earlier) {
    const request = rest.get(slot);
    if (request !== undefined) known.push(request);
    rest.delete(slot);
  }
  return [...known, ...rest.values()];
}

/** Effective priority of a slot loaded on demand: waiting requests raise it during its turn and lower it afterwards. */
function rankOf(requests: readonly MemoryRequest[]): (request: MemoryRequest) => number {
  const prioritiesOf = (has: (request: MemoryRequest) => boolean): readonly number[] =>
    requests.filter(has).map(({ priority }) => priority);
  const highestWaiting = Math.max(...prioritiesOf(({ turn }) => turn.group === 'waiting' || turn.group === 'overdue'));
  const lowestAsked = Math.min(...prioritiesOf(({ busy, turn }) => busy || turn.group === 'loading' || turn.group === 'turn'));
  const lowestOverdue = Math.min(...prioritiesOf(({ turn }) => turn.group === 'overdue'));
  return ({ priority, turn: { group } }) => {
    if (group === 'loading' || group === 'turn') return Math.max(priority, highestWaiting);
    if (group === 'waiting' || group === 'served') return Math.min(priority, lowestOverdue);
    if (group === 'idle') return Math.min(priority, lowestAsked);
    return group === 'unloaded' || group === 'warm' ? LAST : priority;
  };
}

/** Lower than every priority: nothing gives way to a slot that nobody requests. */
const LAST = -1_000_000;

const PLACES: Readonly<Record<MemoryGroup, number>> = {
  always: 0,
  loading: 0,
  turn: 0,
  overdue: 1,
  waiting: 2,
  served: 3,
  idle: 4,
  warm: 5,
  unloaded: 6,
};

/** What is to run always and does not run yet waits as others do, before all that load on demand. */
const placeOf = ({ turn, incumbent }: MemoryRequest): number =>
  turn.group === 'always' && !incumbent ? PLACES.overdue : PLACES[turn.group];

function compareWithin(a: MemoryRequest, b: MemoryRequest): number {
  const { group } = a.turn;
  const always = Number(b.turn.group === 'always') - Number(group === 'always');
  if (always !== 0) return always;
  if (group === 'waiting' || group === 'overdue') return (a.waitingSince ?? 0) - (b.waitingSince ?? 0);
  if (group === 'warm') return Number(b.incumbent) - Number(a.incumbent) || b.priority - a.priority || b.lastActiveAt - a.lastActiveAt;
  if (group === 'idle') return b.priority - a.priority || b.reloadBytes - a.reloadBytes || b.lastActiveAt - a.lastActiveAt;
  return b.lastActiveAt - a.lastActiveAt;
}

export interface PlacementQuestion {
  readonly demand: MemoryDemand;
  readonly pools: PoolsOfBackend;
  /** How many devices the slot asks for; undefined: as few as possible. */
  readonly gpus: number | undefined;
  /** Smaller demands on devices, where it is still open which one the server is started with. Default: none. */
  readonly splits?: readonly MemorySplit[];
  /** The one whose demand this is. */
  readonly split?: MemorySplit | undefined;
}

/** The first split that fits where the whole server does not; the question itself if none does or is needed. */
export function chooseSplit(needs: PlacementQuestion, freeBytes: (pool: PoolId) => number): PlacementQuestion {
  const { splits = [], ...whole } = needs;
  const fits = (question: PlacementQuestion): boolean =>
    Object.entries(placeMemory(question, freeBytes)).every(([id, bytes]) => bytes <= freeBytes(id));
  if (splits.length === 0 || whole.pools.own.length === 0 || fits(whole)) return whole;
  return splits.map((split) => ({ ...whole, demand: split.demand, split })).find(fits) ?? whole;
}

/**
 * Places a server in the pools of the machine: on the fullest device where it fits, else split over as few as
 * possible. `freeBytes` says what is left of a pool; infinite where that has no budget. Returns a placement also where
 * nothing fits: the one that lacks least, so that the numbers of a refusal mean something.
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

/** Splits in proportion to free memory per device, as model servers do by default. */
function split(bytes: number, chosen: readonly { readonly id: PoolId; readonly free: number }[]): PoolBytes {
  const room = chosen.reduce((sum, { free }) => sum + free, 0);
  const share = (free: number): number => (Number.isFinite(room) && room > 0 ? free / room : 1 / chosen.length);
  return Object.fromEntries(chosen.map(({ id, free }) => [id, Math.ceil(bytes * share(free))]));
}
