/** The traffic of the controller's gateway and its workers. `settle` asks workers, which may have an older board. */
import { createActivityWatch, createSoonestWake } from '../../gateway/traffic/activity-watch.ts';
import type { GatewayTraffic } from '../../gateway/traffic/traffic.ts';
import { sumTraffic, type TrafficFacts } from '../../platform/decide/sum-traffic.ts';
import type { Board } from '../../reconciler/board.ts';
import type { Demand, WorkloadActivity } from '../../reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import type { TrafficRows } from './messages.ts';

export interface SharedTrafficDeps {
  readonly local: GatewayTraffic;
  readonly board: Board;
  /** Monotonic milliseconds, as in `local`. */
  readonly now: () => number;
  readonly abort: (workload: WorkloadId) => void;
  /** Resolves when each worker has done what it was sent before. */
  readonly sync: () => Promise<void>;
}

interface Reported {
  readonly workloads: Map<WorkloadId, WorkloadActivity>;
  readonly demand: Map<SlotName, Demand>;
  readonly inFlight: Map<SlotName, number>;
}

/** Workloads of one worker. A gateway keeps as many of its own. */
const REMEMBERED = 4096;
const NOTHING: TrafficFacts = { workloads: new Map(), demand: new Map() };

export function createSharedTraffic({ local, board, now, abort, sync }: SharedTrafficDeps) {
  const workers = new Map<number, Reported>();
  const { wakeWithin, looked, changes } = createSoonestWake();
  let known: TrafficFacts = NOTHING;

  const inFlight = (slot: SlotName): number =>
    workers.values().reduce((sum, each) => sum + (each.inFlight.get(slot) ?? 0), local.ofSlot(slot).inFlight);
  const noteActivity = createActivityWatch({ board, inFlight, wakeWithin });
  board.subscribe(({ slots }) => {
    for (const { demand, inFlight: bySlot } of workers.values()) {
      for (const name of demand.keys()) if (!slots.has(name)) demand.delete(name);
      for (const [name, count] of bySlot) if (count === 0 && !slots.has(name)) bySlot.delete(name);
    }
  });

  const look = (): TrafficFacts => sumTraffic([local.read(), ...workers.values()]);

  const shared: GatewayTraffic = {
    ...local,
    read() {
      looked();
      known = look();
      return known;
    },
    ofSlot(slot) {
      const own = local.ofSlot(slot);
      const parked = workers.values().reduce((sum, { demand }) => sum + (demand.get(slot)?.waiting ?? 0), own.parked);
      return { ...own, inFlight: inFlight(slot), parked };
    },
    abort(workload) {
      local.abort(workload);
      abort(workload);
    },
    async settle(workload) {
      const wasBusy = (known.workloads.get(workload)?.inFlight ?? 0) > 0;
      await sync();
      return wasBusy || (look().workloads.get(workload)?.inFlight ?? 0) === 0;
    },
    changes(wake, signal) {
      local.changes(wake, signal);
      changes(wake, signal);
    },
  };

  return {
    ...shared,
    take(worker: number, rows: TrafficRows, isUrgent: boolean): void {
      const reported = workers.get(worker) ?? { workloads: new Map(), demand: new Map(), inFlight: new Map() };
      workers.set(worker, reported);
      const changed = takeRows(reported, rows, now());
      for (const slot of changed) noteActivity(slot);
      if (isUrgent) wakeWithin(0);
    },
    /** A worker has ended: nothing is in flight there, or waits. When it was used remains known. */
    forget(worker: number): void {
      const reported = workers.get(worker);
      if (reported === undefined) return;
      for (const [id, activity] of reported.workloads) reported.workloads.set(id, { ...activity, inFlight: 0 });
      for (const [slot, { lastAskedAt }] of reported.demand) reported.demand.set(slot, { waiting: 0, lastAskedAt });
      reported.inFlight.clear();
      wakeWithin(0);
    },
  };
}

/** Returns the slots for which a worker got its first or lost its last request. */
function takeRows({ workloads, demand, inFlight }: Reported, rows: TrafficRows, at: number): ReadonlySet<SlotName> {
  for (const { workload, inFlight: count, ended, failed, usedAgoMs, heardAgoMs } of rows.workloads) {
    // The one that was used last comes last.
    workloads.delete(workload);
    workloads.set(workload, {
      inFlight: count,
      ended,
      failed,
      lastUsedAt: at - usedAgoMs,
      lastHeardAt: heardAgoMs === undefined ? undefined : at - heardAgoMs,
    });
  }
  for (const [workload, activity] of workloads) {
    if (workloads.size <= REMEMBERED) break;
    if (activity.inFlight === 0) workloads.delete(workload);
  }
  const changed = new Set<SlotName>();
  for (const { slot, inFlight: count, waiting, waitingAgoMs, askedAgoMs, caller } of rows.slots) {
    if (count > 0 !== (inFlight.get(slot) ?? 0) > 0) changed.add(slot);
    inFlight.set(slot, count);
    const waitingSince = waitingAgoMs === undefined ? undefined : at - waitingAgoMs;
    demand.set(slot, { waiting, waitingSince, caller, lastAskedAt: at - askedAgoMs });
  }
  return changed;
}
