/** The metrics of slots, read from the board whenever Prometheus scrapes. */
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { SlotTraffic } from '../../gateway/traffic/traffic.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { isAtRestReason } from '../../schema/status/reasons.ts';
import { SLOT_STATES, type Condition } from '../../schema/status/slot-status.ts';
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
  /** Only in a cluster may a slot have several replicas. */
  readonly cluster?: unknown;
}

export function registerSlotSeries(factory: MetricFactory, sources: SlotSources): void {
  const { gauge } = factory;
  const { board, traffic } = sources;
  registerReplicas(factory, sources);
  gauge('svc_slot_state', (add) => {
    for (const [slot, entry] of board.current().slots) {
      for (const state of SLOT_STATES) add({ slot, state }, state === entry.status.state ? 1 : 0);
    }
  });
  gauge('svc_slot_condition', (add) => {
    const view = board.current();
    const set = (slot: SlotName, conditions: readonly Pick<Condition, 'type' | 'status'>[]): void => {
      for (const { type, status: present } of conditions) {
        for (const status of STATUSES) add({ slot, type, status }, status === present ? 1 : 0);
      }
    };
    for (const [slot, entry] of view.slots) set(slot, entry.status.conditions);
    for (const slot of view.refused.keys()) if (!view.slots.has(slot)) set(slot, REFUSED);
  });
  gauge('svc_inflight', (add) => {
    for (const slot of board.current().slots.keys()) add({ slot }, traffic(slot).inFlight);
  });
  gauge('svc_request_progress_ratio', (add) => {
    for (const slot of board.current().slots.keys()) {
      const { progress } = traffic(slot);
      if (progress !== undefined) add({ slot }, Math.min(1, progress.done / progress.total));
    }
  });
  gauge('svc_parked', (add) => {
    for (const slot of board.current().slots.keys()) add({ slot }, traffic(slot).parked);
  });
}

function registerReplicas({ gauge }: MetricFactory, { board, cluster }: SlotSources): void {
  const read = (name: ReplicaMetric, valueOf: (entry: BoardSlot) => number): void =>
    gauge(name, (add) => {
      if (cluster !== undefined) for (const [slot, entry] of board.current().slots) add({ slot }, valueOf(entry));
    });
  read('svc_slot_replicas_desired', desiredReplicas);
  read('svc_slot_replicas_present', ({ status }) => status.replicas?.present ?? 0);
  read('svc_slot_replicas_ready', ({ status }) => status.replicas?.ready ?? 0);
}

type ReplicaMetric = 'svc_slot_replicas_desired' | 'svc_slot_replicas_present' | 'svc_slot_replicas_ready';

/** A slot that is at rest, because it is disabled, idle or not asked for, needs no replicas. */
function desiredReplicas({ spec, status }: BoardSlot): number {
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  return ready?.status === 'False' && isAtRestReason(ready.reason) ? 0 : spec.cluster.replicas;
}
