/** Requests in flight and parked, by slot: leases are counted by workload, and one that drains is no longer on the board. */
import type { Board } from '../../reconciler/board.ts';
import type { SlotName, WorkloadId } from '../../spec/names.ts';
import type { SlotTraffic } from '../metrics.ts';

export interface SlotTrafficDeps {
  readonly board: Pick<Board, 'current' | 'subscribe'>;
  readonly leases: { read(): ReadonlyMap<WorkloadId, { readonly inFlight: number }> };
  readonly parking: { read(): ReadonlyMap<SlotName, { readonly waiting: number }> };
}

export function createSlotTraffic({ board, leases, parking }: SlotTrafficDeps): (slot: SlotName) => SlotTraffic {
  let owners: ReadonlyMap<WorkloadId, SlotName> = new Map();
  board.subscribe((view) => {
    const busy = leases.read();
    const next = new Map([...owners].filter(([workload]) => (busy.get(workload)?.inFlight ?? 0) > 0));
    for (const slot of view.slots.values()) for (const { workload } of slot.targets) next.set(workload, slot.name);
    owners = next;
  });
  return (slot) => {
    let inFlight = 0;
    for (const [workload, activity] of leases.read()) if (owners.get(workload) === slot) inFlight += activity.inFlight;
    return { inFlight, parked: parking.read().get(slot)?.waiting ?? 0 };
  };
}
