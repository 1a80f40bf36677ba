/**
 * Who uses which workload now. A lease is taken in the same tick as the board is read, so that a workload that is on the board
 * cannot go away unseen between the two, and is given back exactly once. In memory and synchronous: the hot path pays a few additions.
 */
import type { BoardSlot, BoardView, Target } from '../reconciler/board.ts';
import type { SlotName, WorkloadId } from '../spec/names.ts';
import type { Endpoint } from '../providers/provider.ts';
import { createRoster, type Roster, type Seat } from './roster.ts';

export interface LeaseHolder {
  /** The workload's time is over: end the request now. The lease is still held, and the holder gives it back. */
  onLeaseAborted(): void;
}

export interface Lease {
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

export interface Leases {
  /** The target with the fewest requests in flight; undefined when the slot has none. `avoid` is taken only when there is no other. */
  acquire(slot: BoardSlot, holder: LeaseHolder, avoid?: WorkloadId): Lease | undefined;
  read(): ReadonlyMap<WorkloadId, Activity>;
  /** Requests in flight on a slot's workloads. */
  inFlight(slot: SlotName): number;
  abort(workload: WorkloadId): void;
}

export interface LeaseDeps {
  readonly now: () => number;
  readonly board: { current(): BoardView };
  /** Called when a workload gets its first request or loses its last one. `draining`: it is no longer on the board. */
  readonly onActivity: (change: { readonly draining: boolean }) => void;
}

/** As many workloads without requests are remembered, so that their last use stays known while they are off the board for a while. */
const REMEMBERED = 4096;

interface Entry {
  readonly slot: SlotName;
  readonly holders: Roster<LeaseHolder>;
  lastUsedAt: number;
}

export function createLeases({ now, board, onActivity }: LeaseDeps): Leases {
  const entries = new Map<WorkloadId, Entry>();

  function release(workload: WorkloadId, entry: Entry, seat: Seat<LeaseHolder>): void {
    entry.holders.remove(seat);
    entry.lastUsedAt = now();
    if (entry.holders.size === 0) onActivity({ draining: !isTarget(board.current(), workload) });
  }

  return {
    acquire(slot, holder, avoid) {
      const target = leastBusy(slot.targets, entries, avoid);
      if (target === undefined) return undefined;
      const { workload, endpoint } = target;
      let entry = entries.get(workload);
      if (entry === undefined) {
        forgetOldest(entries);
        entry = { slot: slot.name, holders: createRoster(), lastUsedAt: 0 };
        entries.set(workload, entry);
      }
      const own = entry;
      const seat = own.holders.add(holder);
      entry.lastUsedAt = now();
      if (entry.holders.size === 1) onActivity({ draining: false });
      return {
        slot: slot.name,
        workload,
        endpoint,
        release() {
          if (seat.index === -1) return;
          release(workload, own, seat);
        },
      };
    },
    read: () =>
      new Map([...entries].map(([workload, entry]) => [workload, { inFlight: entry.holders.size, lastUsedAt: entry.lastUsedAt }])),
    inFlight(slot) {
      let sum = 0;
      for (const entry of entries.values()) if (entry.slot === slot) sum += entry.holders.size;
      return sum;
    },
    abort(workload) {
      for (const holder of entries.get(workload)?.holders.items() ?? []) holder.onLeaseAborted();
    },
  };
}

function leastBusy(targets: readonly Target[], entries: ReadonlyMap<WorkloadId, Entry>, avoid: WorkloadId | undefined): Target | undefined {
  if (targets.length === 1) return targets[0];
  let best: Target | undefined;
  let bestLoad = Number.POSITIVE_INFINITY;
  for (const target of targets) {
    const busy = entries.get(target.workload)?.holders.size ?? 0;
    const load = target.workload === avoid ? Number.MAX_SAFE_INTEGER : busy;
    if (load >= bestLoad) continue;
    best = target;
    bestLoad = load;
  }
  return best;
}

function isTarget(view: BoardView, workload: WorkloadId): boolean {
  for (const slot of view.slots.values()) if (slot.targets.some((target) => target.workload === workload)) return true;
  return false;
}

function forgetOldest(entries: Map<WorkloadId, Entry>): void {
  if (entries.size < REMEMBERED) return;
  let oldest: WorkloadId | undefined;
  let oldestAt = Number.POSITIVE_INFINITY;
  for (const [workload, entry] of entries) {
    if (entry.holders.size > 0 || entry.lastUsedAt >= oldestAt) continue;
    oldest = workload;
    oldestAt = entry.lastUsedAt;
  }
  if (oldest !== undefined) entries.delete(oldest);
}
