/** Creates holds and parking, and shows them to the reconciler as the `Traffic` of `reconciler/ports.ts`. */
import type { Board } from '../../reconciler/board.ts';
import type { Traffic } from '../../reconciler/ports.ts';
import type { RequestProgress } from '../../providers/translation.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { createActivityWatch, createSoonestWake } from './activity-watch.ts';
import { createHolds, type Holds, type ProgressListener } from './hold.ts';
import { createParking, type Parking, type ParkingDeps } from './parking.ts';

export interface SlotTraffic {
  readonly inFlight: number;
  readonly parked: number;
  /** Progress of the server, if it reports any. */
  readonly progress?: RequestProgress | undefined;
}

export interface GatewayTraffic extends Traffic {
  readonly holds: Holds;
  readonly parking: Parking;
  ofSlot(slot: SlotName): SlotTraffic;
  watchProgress(listener: ProgressListener): () => void;
  /** Wakes the reconciler, because an upstream broke a connection and its workload may be dead. */
  noteFailure(): void;
}

export type BufferBudget = ReturnType<typeof createBufferBudget>;

interface TrafficDeps extends Pick<ParkingDeps, 'now' | 'settings'> {
  readonly board: Board;
}

export function createTraffic({ board, now, settings }: TrafficDeps): GatewayTraffic {
  const { wakeWithin, looked, changes } = createSoonestWake();
  const noteActivity = createActivityWatch({ board, inFlight: (slot) => holds.inFlight(slot), wakeWithin });
  const listeners = new Set<ProgressListener>();
  const holds = createHolds({
    now,
    board,
    onActivity: ({ slot, draining }) => (draining ? wakeWithin(0) : noteActivity(slot)),
    onProgress: (slot, progress) => listeners.forEach((listener) => listener(slot, progress)),
    ...turnsWith(settings, () => parking),
  });
  const parking: Parking = createParking({ board, now, settings, isFull: holds.isFull, onDemand: () => wakeWithin(0) });

  return {
    holds,
    parking,
    read() {
      looked();
      return { workloads: holds.activity(), demand: parking.demand() };
    },
    ofSlot: (slot) => ({ inFlight: holds.inFlight(slot), parked: parking.waiting(slot), progress: holds.progress(slot) }),
    watchProgress(listener) {
      const own: ProgressListener = (slot, progress) => listener(slot, progress);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    abort: (workload) => holds.abort(workload),
    changes,
    noteFailure: () => wakeWithin(0),
  };
}

/** Whoever waits for a slot is served when another request has ended. */
export const turnsWith = ({ shares }: ParkingDeps['settings'], parking: () => Pick<Parking, 'serve'>) => ({
  shares,
  onRelease: (slot: SlotName): void => parking().serve(slot),
});

/** Limits the bytes of all bodies in memory (`SVC_BUFFER_LIMIT`) or on disk (`SVC_SPOOL_LIMIT`). */
export function createBufferBudget(limitBytes: number) {
  let reserved = 0;
  return {
    reserve(bytes: number) {
      if (reserved + bytes > limitBytes) return false;
      reserved += bytes;
      return true;
    },
    release(bytes: number) {
      reserved -= bytes;
    },
    reservedBytes: () => reserved,
  };
}
