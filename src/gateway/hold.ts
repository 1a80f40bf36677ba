/**
 * Who uses which workload now, and which of its endpoints. A hold is taken in the same tick as the board is read, so that a workload that is on the board
 * cannot go away unseen between the two, and is given back exactly once. In memory and synchronous: the hot path pays a few additions.
 */
import type { BoardSlot, BoardView, Target } from '../reconciler/board.ts';
import type { SlotName, WorkloadId } from '../schema/names.ts';
import type { Endpoint } from '../providers/provider.ts';
import { createDenseSet, type DenseSet, type Member } from './dense-set.ts';

export interface Holder {
  /** The workload's time is over: end the request now. The hold is still held, and the holder gives it back. */
  onHoldAborted(): void;
}

export interface Hold {
  readonly slot: SlotName;
  readonly workload: WorkloadId;
  readonly endpoint: Endpoint;
  /** The first call counts; later ones do nothing. */
  release(): void;
}

export interface Activity {
  readonly inFlight: number;
  /** Unix milliseconds of the last request's end, or begin while one runs. */
  readonly lastUsedAt: number | undefined;
}

export interface Holds {
  /**
   * The target with the fewest requests in flight, of equal ones the one that was not taken for longest; undefined when the slot has none.
   * `avoid` is taken only when there is no other.
   */
  acquire(slot: BoardSlot, holder: Holder, avoid?: Target): Hold | undefined;
  read(): ReadonlyMap<WorkloadId, Activity>;
  /** Requests in flight on a slot's workloads. */
  inFlight(slot: SlotName): number;
  abort(workload: WorkloadId): void;
}

export interface HoldDeps {
  readonly now: () => number;
  readonly board: { current(): BoardView };
  /** Called when a workload gets its first request or loses its last one. `draining`: it is no longer on the board. */
  readonly onActivity: (change: { readonly draining: boolean }) => void;
}

/** As many workloads without requests are remembered, so that their last use stays known while they are off the board for a while. */
const REMEMBERED = 4096;

interface Entry {
  readonly slot: SlotName;
  readonly ofSlot: SlotLoad;
  readonly holders: DenseSet<Holder>;
  /** Of the endpoints that are targets or in use. */
  loads: readonly Load[];
  lastUsedAt: number;
}

/** One endpoint of a workload. */
interface Load {
  readonly target: Target;
  readonly entry: Entry;
  inFlight: number;
  /** Grows with each request that it is chosen for among several. */
  turn: number;
}

interface SlotLoad {
  entries: number;
  inFlight: number;
}

export function createHolds({ now, board, onActivity }: HoldDeps): Holds {
  const entries = new Map<WorkloadId, Entry>();
  const slots = new Map<SlotName, SlotLoad>();
  /** By the board's own lists, which live as long as what they say: a list is looked through once, not for each request. */
  const loadsOfTargets = new WeakMap<readonly Target[], readonly Load[]>();
  let turns = 0;

  function entryOf(slot: SlotName, workload: WorkloadId): Entry {
    const known = entries.get(workload);
    if (known !== undefined) return known;
    forgetOldest(entries, slots);
    let ofSlot = slots.get(slot);
    if (ofSlot === undefined) {
      ofSlot = { entries: 0, inFlight: 0 };
      slots.set(slot, ofSlot);
    }
    ofSlot.entries += 1;
    const entry: Entry = { slot, ofSlot, holders: createDenseSet(), loads: [], lastUsedAt: 0 };
    entries.set(workload, entry);
    return entry;
  }

  function loadOf(slot: SlotName, target: Target): Load {
    const entry = entryOf(slot, target.workload);
    const known = entry.loads.find((load) => isSameTarget(load.target, target));
    if (known !== undefined) return known;
    const load: Load = { target, entry, inFlight: 0, turn: 0 };
    entry.loads = [...entry.loads, load];
    return load;
  }

  function loadsOf({ name, targets }: BoardSlot): readonly Load[] {
    const known = loadsOfTargets.get(targets);
    // An entry that was idle for long may have been forgotten and made anew meanwhile.
    if (known?.every(({ entry, target }) => entries.get(target.workload) === entry) === true) return known;
    const loads = targets.map((target) => loadOf(name, target));
    for (const { entry } of loads) forgetIdle(entry, loads);
    loadsOfTargets.set(targets, loads);
    return loads;
  }

  function choose(slot: BoardSlot, avoid: Target | undefined): Load | undefined {
    const [first] = slot.targets;
    if (first === undefined) return undefined;
    if (slot.targets.length === 1) {
      const only = loadOf(slot.name, first);
      if (only.entry.loads.length > 1) forgetIdle(only.entry, [only]);
      return only;
    }
    const load = leastBusy(loadsOf(slot), avoid);
    if (load !== undefined) load.turn = turns += 1;
    return load;
  }

  function release(load: Load, member: Member<Holder>): void {
    const { entry } = load;
    entry.holders.remove(member);
    entry.ofSlot.inFlight -= 1;
    load.inFlight -= 1;
    entry.lastUsedAt = now();
    if (entry.holders.size === 0) onActivity({ draining: !isTarget(board.current(), load) });
  }

  return {
    acquire(slot, holder, avoid) {
      const load = choose(slot, avoid);
      if (load === undefined) return undefined;
      const { entry, target } = load;
      const member = entry.holders.add(holder);
      entry.ofSlot.inFlight += 1;
      load.inFlight += 1;
      entry.lastUsedAt = now();
      if (entry.holders.size === 1) onActivity({ draining: false });
      return {
        slot: slot.name,
        workload: target.workload,
        endpoint: target.endpoint,
        release() {
          if (member.index !== -1) release(load, member);
        },
      };
    },
    read: () =>
      new Map([...entries].map(([workload, entry]) => [workload, { inFlight: entry.holders.size, lastUsedAt: entry.lastUsedAt }])),
    inFlight: (slot) => slots.get(slot)?.inFlight ?? 0,
    abort(workload) {
      for (const holder of entries.get(workload)?.holders.items() ?? []) holder.onHoldAborted();
    },
  };
}

/** The address and the workload: an address can be another workload's later. */
export function isSameTarget(one: Target, other: Target): boolean {
  return (
    one === other ||
    (one.workload === other.workload && one.endpoint.host === other.endpoint.host && one.endpoint.port === other.endpoint.port)
  );
}

function leastBusy(loads: readonly Load[], avoid: Target | undefined): Load | undefined {
  let best: Load | undefined;
  let bestBusy = Number.POSITIVE_INFINITY;
  for (const load of loads) {
    const busy = avoid !== undefined && isSameTarget(load.target, avoid) ? Number.MAX_SAFE_INTEGER : load.inFlight;
    if (busy > bestBusy || (busy === bestBusy && best !== undefined && load.turn >= best.turn)) continue;
    best = load;
    bestBusy = busy;
  }
  return best;
}

/** Looks at the one slot only that the workload is of. */
function isTarget(view: BoardView, { entry, target }: Load): boolean {
  return view.slots.get(entry.slot)?.targets.some(({ workload }) => workload === target.workload) === true;
}

/** Endpoints come and go with pods. */
function forgetIdle(entry: Entry, present: readonly Load[]): void {
  entry.loads = entry.loads.filter((load) => load.inFlight > 0 || present.includes(load));
}

function forgetOldest(entries: Map<WorkloadId, Entry>, slots: Map<SlotName, SlotLoad>): void {
  if (entries.size < REMEMBERED) return;
  let oldest: WorkloadId | undefined;
  let oldestAt = Number.POSITIVE_INFINITY;
  for (const [workload, entry] of entries) {
    if (entry.holders.size > 0 || entry.lastUsedAt >= oldestAt) continue;
    oldest = workload;
    oldestAt = entry.lastUsedAt;
  }
  if (oldest === undefined) return;
  const gone = entries.get(oldest);
  entries.delete(oldest);
  if (gone === undefined) return;
  gone.ofSlot.entries -= 1;
  if (gone.ofSlot.entries === 0) slots.delete(gone.slot);
}
