/** The metrics of the service, in a registry of their own. Slots are labels only while they stand on the board, so the number of series is bounded. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Board } from '../reconciler/board.ts';
import type { SlotName } from '../schema/names.ts';
import { SLOT_STATES, type TimelineEntry } from '../schema/slot-status.ts';
import { createRequestSeries } from './metrics-requests.ts';
import type { RequestMetrics } from './metrics-port.ts';

/** Requests of one slot, at this moment. */
export interface SlotTraffic {
  readonly inFlight: number;
  readonly parked: number;
}

/** What the reconciler reports. Every method is cheap and never throws. */
export interface ReconcileMetrics {
  passFinished(pass: { readonly seconds: number; readonly result: string }): void;
  actionFinished(action: { readonly action: string; readonly result: string }): void;
  /** Bytes that came in since the last call, of a model or an image. */
  bytesPulled(pulled: { readonly what: 'model' | 'image'; readonly bytes: number }): void;
  /** Counts state moves and drift; fits the reconciler's status sink. */
  write(report: { readonly entries: readonly TimelineEntry[] }): void;
}

/** What the client of a cluster's API reports. */
export interface ClusterMetrics {
  requestSent(request: { readonly verb: string; readonly resource: string }): void;
}

export interface Metrics {
  readonly requests: RequestMetrics;
  readonly reconcile: ReconcileMetrics;
  readonly cluster: ClusterMetrics;
  readonly contentType: string;
  text(): Promise<string>;
}

export interface MetricsDeps {
  readonly version: string;
  readonly runtime: string;
  readonly board: Pick<Board, 'current' | 'subscribe'>;
  readonly traffic: (slot: SlotName) => SlotTraffic;
  /** Whether this replica carries plans out. */
  readonly leads: () => boolean;
}

/** A pass is pure planning over a few slots: milliseconds. Slow work runs outside, so seconds already mean waitingReason. */
const PASS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

export function createMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry();
  const requests = createRequestSeries(registry);
  registerGauges(registry, deps);
  registerProcessGauges(registry);
  const reconcile = createReconcileSeries(registry);
  const cluster = createClusterSeries(registry);
  let known: readonly SlotName[] = [];
  deps.board.subscribe((view) => {
    for (const slot of known) {
      if (view.slots.has(slot)) continue;
      requests.forget(slot);
      reconcile.forget(slot);
    }
    known = [...view.slots.keys()];
  });
  return { requests, reconcile, cluster, contentType: registry.contentType, text: () => registry.metrics() };
}

/** Values that are read when Prometheus asks, so that nothing is kept twice. */
function registerGauges(registry: Registry, deps: MetricsDeps): void {
  const registers = [registry];
  new Gauge({ name: 'svc_build_info', help: 'Version and runtime; always 1', labelNames: ['version', 'runtime'], registers }).set(
    { version: deps.version, runtime: deps.runtime },
    1,
  );
  new Gauge({
    name: 'svc_leads',
    help: '1 where this replica reconciles, 0 where another one does',
    registers,
    collect() {
      this.set(deps.leads() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'svc_slot_state',
    help: '1 for the state the slot is in, 0 for the others',
    labelNames: ['slot', 'state'],
    registers,
    collect() {
      this.reset();
      for (const [slot, entry] of deps.board.current().slots) {
        for (const state of SLOT_STATES) this.set({ slot, state }, state === entry.state ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: 'svc_inflight',
    help: 'Requests in flight',
    labelNames: ['slot'],
    registers,
    collect() {
      this.reset();
      for (const slot of deps.board.current().slots.keys()) this.set({ slot }, deps.traffic(slot).inFlight);
    },
  });
  new Gauge({
    name: 'svc_parked',
    help: 'Requests that wait for their slot',
    labelNames: ['slot'],
    registers,
    collect() {
      this.reset();
      for (const slot of deps.board.current().slots.keys()) this.set({ slot }, deps.traffic(slot).parked);
    },
  });
}

function registerProcessGauges(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the controller and gateway',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'process_start_time_seconds',
    help: 'Start of the process, in Unix seconds',
    registers,
  }).set(Math.round(performance.timeOrigin / 1000));
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'User and system CPU time of the controller and gateway',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
}

function createClusterSeries(registry: Registry): ClusterMetrics {
  const requests = new Counter({
    name: 'svc_kube_requests_total',
    help: 'Requests to the API server of the cluster; a watch counts when it begins',
    labelNames: ['verb', 'resource'],
    registers: [registry],
  });
  return {
    requestSent({ verb, resource }) {
      requests.inc({ verb, resource });
    },
  };
}

function createReconcileSeries(registry: Registry): ReconcileMetrics & { forget(slot: SlotName): void } {
  const registers = [registry];
  const transitions = new Counter({
    name: 'svc_slot_transitions_total',
    help: 'Moves between states',
    labelNames: ['slot', 'from', 'to'],
    registers,
  });
  const passes = new Counter({ name: 'svc_reconcile_passes_total', help: 'Finished passes', labelNames: ['result'], registers });
  const passSeconds = new Histogram({ name: 'svc_reconcile_pass_seconds', help: 'Length of a pass', buckets: PASS_SECONDS, registers });
  const actions = new Counter({
    name: 'svc_actions_total',
    help: 'Actions carried out, by result',
    labelNames: ['action', 'result'],
    registers,
  });
  const drift = new Counter({ name: 'svc_drift_total', help: 'Workloads found altered from outside', labelNames: ['slot'], registers });
  const pulled = new Counter({ name: 'svc_pull_bytes_total', help: 'Bytes fetched of models and images', labelNames: ['what'], registers });
  const moved = new Map<SlotName, Map<string, { from: string; to: string }>>();
  return {
    passFinished({ seconds, result }) {
      passes.inc({ result });
      passSeconds.observe(seconds);
    },
    actionFinished({ action, result }) {
      actions.inc({ action, result });
    },
    bytesPulled({ what, bytes }) {
      if (bytes > 0) pulled.inc({ what }, bytes);
    },
    write({ entries }) {
      for (const { kind, slot, from, to } of entries) {
        if (kind === 'drift') drift.inc({ slot });
        if (kind !== 'state' || from === undefined || to === undefined) continue;
        transitions.inc({ slot, from, to });
        const moves = moved.get(slot) ?? new Map<string, { from: string; to: string }>();
        moved.set(slot, moves.set(`${from} ${to}`, { from, to }));
      }
    },
    forget(slot) {
      drift.remove({ slot });
      for (const move of moved.get(slot)?.values() ?? []) transitions.remove({ slot, ...move });
      moved.delete(slot);
    },
  };
}
