/** The metrics of slots, read from the board whenever Prometheus scrapes. */
import type { BoardView } from '../../reconciler/board.ts';
import type { SlotTraffic } from '../../gateway/traffic.ts';
import type { SlotName } from '../../schema/names.ts';
import { SLOT_STATES, type Condition } from '../../schema/slot-status.ts';
import type { MetricFactory } from './metric-factory.ts';

const STATUSES = ['True', 'False', 'Unknown'] as const satisfies readonly Condition['status'][];
/** The conditions of a slot whose text has never been valid. The controller has no status for it. */
const REFUSED = [
  { type: 'Ready', status: 'False' },
  { type: 'Stalled', status: 'True' },
  { type: 'SpecValid', status: 'False' },
] as const satisfies readonly Pick<Condition, 'type' | 'status'>[];

export interface SlotSources {
  readonly board: { current(): BoardView };
  readonly traffic: (slot: SlotName) => SlotTraffic;
}

export function registerSlotSeries({ gauge }: MetricFactory, { board, traffic }: SlotSources): void {
  gauge('svc_slot_state', (series) => {
    for (const [slot, entry] of board.current().slots) {
      for (const state of SLOT_STATES) series.set({ slot, state }, state === entry.status.state ? 1 : 0);
    }
  });
  gauge('svc_slot_condition', (series) => {
    const view = board.current();
    const set = (slot: SlotName, conditions: readonly Pick<Condition, 'type' | 'status'>[]): void => {
      for (const { type, status: present } of conditions) {
        for (const status of STATUSES) series.set({ slot, type, status }, status === present ? 1 : 0);
      }
    };
    for (const [slot, entry] of view.slots) set(slot, entry.status.conditions);
    for (const slot of view.refused.keys()) if (!view.slots.has(slot)) set(slot, REFUSED);
  });
  gauge('svc_inflight', (series) => {
    for (const slot of board.current().slots.keys()) series.set({ slot }, traffic(slot).inFlight);
  });
  gauge('svc_parked', (series) => {
    for (const slot of board.current().slots.keys()) series.set({ slot }, traffic(slot).parked);
  });
}
