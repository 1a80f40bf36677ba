/** Creates holds and parking, and shows them to the reconciler as the `Traffic` of `reconciler/ports.ts`. */
import type { Traffic, Wake } from '../reconciler/ports.ts';
import type { RequestProgress } from '../providers/translation.ts';
import { addWake } from '../platform/wakes.ts';
import type { SlotName } from '../schema/names.ts';
import { judgeActivity } from './decide/judge-activity.ts';
import { createHolds, type Holds, type ProgressListener } from './hold.ts';
import { createParking, type Parking, type ParkingDeps } from './parking.ts';

/** Number of requests of one slot now. */
export interface SlotTraffic {
  readonly inFlight: number;
  readonly parked: number;
  /** How far the server is with the request that it works on, if it says so. */
  readonly progress?: RequestProgress | undefined;
}

export interface GatewayTraffic extends Traffic {
  readonly holds: Holds;
  readonly parking: Parking;
  ofSlot(slot: SlotName): SlotTraffic;
  /** Calls the listener with each progress, until the function that is returned is called. */
  watchProgress(listener: ProgressListener): () => void;
  /** Wakes the reconciler, because an upstream broke a connection and its workload may be dead. */
  noteFailure(): void;
}

/**
 * When a workload gets its first or loses its last request, that only changes `idle` and `serving`. Under load this happens hundreds of times per second, so it is looked at
 * after a while, and a pass follows only if the board shows something else by then.
 */
const ACTIVITY_SETTLES_MS = 200;
const ACTIVITY_WITHIN_MS = 50;

export function createTraffic({ board, now, settings }: Omit<ParkingDeps, 'onDemand'>): GatewayTraffic {
  const wakes = new Set<Wake>();
  /** The soonest wake requested since the last `read`, so that thousands of requests per second do not wake the loop as often. */
  let requestedMs = Number.POSITIVE_INFINITY;

  function wakeWithin(ms: number): void {
    if (ms >= requestedMs || wakes.size === 0) return;
    requestedMs = ms;
    for (const wake of wakes) wake(ms);
  }

  /** The slots to look at when the timer fires, and whether their activity has changed since it was started. */
  const changes = new Map<SlotName, boolean>();
  let settling: NodeJS.Timeout | undefined;

  function noteActivity(slot: SlotName): void {
    if (changes.get(slot) !== true) changes.set(slot, true);
    settling ??= setTimeout(judgeChanges, ACTIVITY_SETTLES_MS).unref();
  }

  function judgeChanges(): void {
    settling = undefined;
    const { slots } = board.current();
    let hasNews = false;
    for (const [slot, hasChanged] of changes) {
      const verdict = judgeActivity({ state: slots.get(slot)?.status.state, inFlight: holds.inFlight(slot), hasChanged });
      if (verdict === 'news') hasNews = true;
      if (verdict === 'wait') changes.set(slot, false);
      else changes.delete(slot);
    }
    if (changes.size > 0) settling = setTimeout(judgeChanges, ACTIVITY_SETTLES_MS).unref();
    if (hasNews) wakeWithin(ACTIVITY_WITHIN_MS);
  }

  const listeners = new Set<ProgressListener>();
  const holds = createHolds({
    now,
    board,
    onActivity: ({ slot, draining }) => (draining ? wakeWithin(0) : noteActivity(slot)),
    onProgress: (slot, progress) => listeners.forEach((listener) => listener(slot, progress)),
  });
  const parking = createParking({ board, now, settings, onDemand: () => wakeWithin(0) });

  return {
    holds,
    parking,
    read() {
      requestedMs = Number.POSITIVE_INFINITY;
      return { workloads: holds.activity(), demand: parking.demand() };
    },
    ofSlot: (slot) => ({ inFlight: holds.inFlight(slot), parked: parking.waiting(slot), progress: holds.progress(slot) }),
    watchProgress(listener) {
      // Each call has its own, also with the same function.
      const own: ProgressListener = (slot, progress) => listener(slot, progress);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    abort: (workload) => holds.abort(workload),
    changes: (wake, signal) => addWake(wakes, wake, signal),
    noteFailure: () => wakeWithin(0),
  };
}
