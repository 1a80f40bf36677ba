/** The reconciler's window on holds and parking: what `Traffic` of `reconciler/ports.ts` promises. */
import type { Board } from '../reconciler/board.ts';
import type { SlotName, WorkloadId } from '../schema/names.ts';
import { createHolds, type Activity, type Holds } from './hold.ts';
import { createParking, type Parking, type SlotDemand } from './parking.ts';

type Wake = (withinMs?: number) => void;

export interface GatewayTraffic {
  readonly holds: Holds;
  readonly parking: Parking;
  read(): {
    readonly workloads: ReadonlyMap<WorkloadId, Activity>;
    readonly demand: ReadonlyMap<SlotName, SlotDemand>;
  };
  ofSlot(slot: SlotName): { readonly inFlight: number; readonly parked: number };
  abort(workload: WorkloadId): void;
  changes(wake: Wake, signal: AbortSignal): void;
  /** An upstream broke a connection: its workload may be dead. */
  suspect(): void;
}

export interface TrafficDeps {
  readonly board: Board;
  readonly now: () => number;
  /** `SVC_PARK_LIMIT`, requests a slot. */
  readonly parkLimit: number;
  /** `SVC_PARK_TIMEOUT`. */
  readonly parkTimeoutMs: number;
}

/** How soon a pass shall see that a workload began or ended to be used: it only tells `serving` from `idle`. */
const ACTIVITY_WITHIN_MS = 250;

export function createTraffic({ board, now, parkLimit, parkTimeoutMs }: TrafficDeps): GatewayTraffic {
  const wakes = new Set<Wake>();
  /** The soonest wake asked for since the facts were last read: thousands of requests a second must not wake the loop as often. */
  let asked = Number.POSITIVE_INFINITY;

  function wakeWithin(ms: number): void {
    if (ms >= asked || wakes.size === 0) return;
    asked = ms;
    for (const wake of wakes) wake(ms);
  }

  const holds = createHolds({ now, board, onActivity: ({ draining }) => wakeWithin(draining ? 0 : ACTIVITY_WITHIN_MS) });
  const parking = createParking({ board, now, limit: parkLimit, timeoutMs: parkTimeoutMs, onDemand: () => wakeWithin(0) });

  return {
    holds,
    parking,
    read() {
      asked = Number.POSITIVE_INFINITY;
      return { workloads: holds.read(), demand: parking.read() };
    },
    ofSlot: (slot) => ({ inFlight: holds.inFlight(slot), parked: parking.waiting(slot) }),
    abort: (workload) => holds.abort(workload),
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
    },
    suspect: () => wakeWithin(0),
  };
}
