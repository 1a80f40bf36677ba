/** The metrics of the service, in their own registry. A slot has series only while it is on the board, so their number is bounded. */
import { Counter, Registry } from 'prom-client';
import type { Board } from '../reconciler/board.ts';
import type { SlotTraffic } from '../gateway/traffic.ts';
import type { SlotName } from '../schema/names.ts';
import { SLOT_STATES, type StateMove, type TimelineEntry } from '../schema/slot-status.ts';
import { createMetricFactory, type MetricFactory } from './metric-factory.ts';
import { createRequestSeries } from './request-series.ts';

export type Metrics = ReturnType<typeof createMetrics>;

export interface MetricsDeps {
  readonly version: string;
  readonly runtime: string;
  readonly board: Pick<Board, 'current' | 'subscribe'>;
  readonly traffic: (slot: SlotName) => SlotTraffic;
  /** Whether this replica is the leader, which executes plans. */
  readonly leads: () => boolean;
}

/** A pass only plans and takes milliseconds, since slow work runs outside it. Seconds already indicate a problem. */
const PASS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

export function createMetrics(deps: MetricsDeps) {
  const registry = new Registry();
  const factory = createMetricFactory(registry);
  const requests = createRequestSeries(factory);
  registerGauges(factory, deps);
  registerProcessMetrics(registry, factory);
  const reconcile = createReconcileSeries(factory);
  const cluster = createClusterSeries(factory);
  let known: readonly SlotName[] = [];
  deps.board.subscribe((view) => {
    for (const slot of known) {
      if (view.slots.has(slot)) continue;
      requests.forget(slot);
      reconcile.forget(slot);
    }
    known = [...view.slots.keys()];
  });
  return {
    requestFinished: requests.requestFinished,
    reconcile,
    cluster,
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}

function registerGauges({ gauge }: MetricFactory, { version, runtime, board, traffic, leads }: MetricsDeps): void {
  gauge('svc_build_info', 'Version and runtime; always 1', ['version', 'runtime'], (series) => series.set({ version, runtime }, 1));
  gauge('svc_leads', '1 where this replica reconciles, 0 where another one does', [], (series) => series.set(leads() ? 1 : 0));
  gauge('svc_slot_state', '1 for the state the slot is in, 0 for the others', ['slot', 'state'], (series) => {
    for (const [slot, entry] of board.current().slots) {
      for (const state of SLOT_STATES) series.set({ slot, state }, state === entry.status.state ? 1 : 0);
    }
  });
  gauge('svc_inflight', 'Requests in flight', ['slot'], (series) => {
    for (const slot of board.current().slots.keys()) series.set({ slot }, traffic(slot).inFlight);
  });
  gauge('svc_parked', 'Requests that wait for their slot', ['slot'], (series) => {
    for (const slot of board.current().slots.keys()) series.set({ slot }, traffic(slot).parked);
  });
}

function registerProcessMetrics(registry: Registry, { gauge }: MetricFactory): void {
  gauge('process_resident_memory_bytes', 'Resident memory of the controller and gateway', [], (series) =>
    series.set(process.memoryUsage.rss()),
  );
  gauge('process_start_time_seconds', 'Start of the process, in Unix seconds', [], (series) =>
    series.set(Math.round(performance.timeOrigin / 1000)),
  );
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'User and system CPU time of the controller and gateway',
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
}

/** What the client of the Kubernetes API reports. */
function createClusterSeries({ counter }: MetricFactory) {
  const requests = counter('svc_kube_requests_total', 'Requests to the Kubernetes API server; a watch counts when it starts', [
    'verb',
    'resource',
  ]);
  return {
    /** Names each label, because callers may pass objects with more fields, and the library throws at a label it does not know. */
    requestSent: ({ verb, resource }: { readonly verb: string; readonly resource: string }) => requests.inc({ verb, resource }),
  };
}

/** What the reconciler reports. Every method is cheap and never throws. */
function createReconcileSeries({ counter, histogram }: MetricFactory) {
  const transitions = counter('svc_slot_transitions_total', 'Transitions between states', ['slot', 'from', 'to']);
  const passes = counter('svc_reconcile_passes_total', 'Finished passes', ['result']);
  const passSeconds = histogram('svc_reconcile_pass_seconds', 'Duration of a pass', PASS_SECONDS);
  const actions = counter('svc_actions_total', 'Executed actions, by result', ['action', 'result']);
  const drift = counter('svc_drift_total', 'Workloads that were changed from outside', ['slot']);
  const pulled = counter('svc_pull_bytes_total', 'Bytes of models and images that were downloaded', ['what']);
  /** The transitions of each slot that have a series, by "from to". */
  const seen = new Map<SlotName, Map<string, { from: string; to: string }>>();
  return {
    passFinished({ seconds, result }: { readonly seconds: number; readonly result: string }) {
      passes.inc({ result });
      passSeconds.observe(seconds);
    },
    actionFinished: ({ action, result }: { readonly action: string; readonly result: string }) => actions.inc({ action, result }),
    /** `bytes`: received since the last call, of a model or an image. */
    bytesPulled({ what, bytes }: { readonly what: 'model' | 'image'; readonly bytes: number }) {
      if (bytes > 0) pulled.inc({ what }, bytes);
    },
    /** Counts state transitions and drift. A `StatusSink` of the reconciler. */
    write({ entries, moves = [] }: { readonly entries: readonly TimelineEntry[]; readonly moves?: readonly StateMove[] }) {
      for (const { kind, slot } of entries) if (kind === 'drift') drift.inc({ slot });
      for (const { slot, from, to } of moves) {
        transitions.inc({ slot, from, to });
        const ofSlot = seen.get(slot) ?? new Map<string, { from: string; to: string }>();
        seen.set(slot, ofSlot.set(`${from} ${to}`, { from, to }));
      }
    },
    forget(slot: SlotName) {
      drift.remove({ slot });
      for (const transition of seen.get(slot)?.values() ?? []) transitions.remove({ slot, ...transition });
      seen.delete(slot);
    },
  };
}
