/** The metrics of the service. A slot has series only while it is on the board, so their number is bounded. */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { FinishedRequest } from '../../gateway/exchange-deps.ts';
import type { Breather } from '../../platform/slices.ts';
import type { Board, BoardSlot, BoardView } from '../../reconciler/board.ts';
import { createClusterSeries, type ClusterSources } from './cluster-series.ts';
import { formatFor, type MetricFormat } from './decide/metric-text.ts';
import { createMetricFactory, type MetricFactory } from './metric-factory.ts';
import type { MetricName } from './metric-table.ts';
import { createCallerSeries, createRequestSeries } from './request-series.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { SLOT_STATES, type StateMove, type TimelineEntry, type Condition } from '../../schema/status/slot-status.ts';
import type { PendingRows } from '../../usage/pending-rows.ts';
import type { SlotTraffic } from '../../gateway/traffic/traffic.ts';
import { isAtRestReason } from '../../schema/status/reasons.ts';

export type Metrics = ReturnType<typeof createMetrics>;

interface MetricsDeps extends SlotSources {
  readonly version: string;
  readonly runtime: string;
  readonly board: Pick<Board, 'current' | 'subscribe'>;
  /** This replica is the leader, which executes plans. */
  readonly leads: () => boolean;
  readonly cluster?: ClusterSources | undefined;
  /** Usage of callers is counted in it. Default: elsewhere, or not at all. */
  readonly callers?: PendingRows | undefined;
  /** How many captures run. Default: none. */
  readonly captures?: () => number;
  /** Undefined without `SVC_LIMITS_URL`. */
  readonly limitsAreShared?: (() => boolean) | undefined;
  /** Undefined where no repository declares the configuration, or its first answer is awaited. */
  readonly sourceIsSynced?: (() => boolean | undefined) | undefined;
  readonly breather?: () => Breather;
  /** Requests have traces, so OpenMetrics is offered, which has exemplars. Default: they have none. */
  readonly hasTraces?: boolean | undefined;
}

export function createMetrics(deps: MetricsDeps) {
  const factory = createMetricFactory(deps.breather);
  const requests = createRequestSeries(factory);
  const callers = deps.callers && createCallerSeries(factory, deps.callers, deps.board);
  const reconcile = createReconcileSeries(factory);
  const cluster = createClusterSeries(factory, deps.cluster);
  registerServiceSeries(factory, deps);
  registerSlotSeries(factory, deps);
  const workers = createWorkerSeries(factory);
  const sampleProcess = registerProcessSeries(factory);
  deps.board.subscribe(({ slots }) => {
    requests.keepOnly(slots);
    callers?.keepOnly(slots);
    reconcile.keepOnly(slots);
  });
  return {
    requestFinished(request: FinishedRequest): void {
      requests.requestFinished(request);
      callers?.requestFinished(request);
    },
    totalsOf: requests.totalsOf,
    reconcile,
    /** Undefined unless usage of callers is counted here. */
    callers,
    cluster,
    workers,
    /** `accept`: the header of a request. */
    formatFor: (accept: string | undefined): MetricFormat => (deps.hasTraces === true ? formatFor(accept) : 'prometheus'),
    async text(format?: MetricFormat) {
      sampleProcess();
      return await factory.text(format);
    },
  };
}

function registerServiceSeries(
  { gauge }: MetricFactory,
  { version, runtime, leads, board, captures = () => 0, limitsAreShared, sourceIsSynced }: MetricsDeps,
): void {
  gauge('svc_build_info', (add) => add({ version, runtime }, 1));
  gauge('svc_captures_active', (add) => add({}, captures()));
  gauge('svc_leads', (add) => add({}, leads() ? 1 : 0));
  gauge('svc_limits_shared', (add) => {
    if (limitsAreShared !== undefined) add({}, limitsAreShared() ? 1 : 0);
  });
  gauge('svc_source_synced', (add) => {
    const isSynced = sourceIsSynced?.();
    if (isSynced !== undefined) add({}, isSynced ? 1 : 0);
  });
  gauge('svc_reconcile_last_pass_timestamp_seconds', (add) => add({}, board.current().at / 1000));
}

function registerProcessSeries({ gauge, readCounter }: MetricFactory) {
  const eventLoop = watchEventLoop();
  gauge('process_resident_memory_bytes', (add) => add({}, process.memoryUsage.rss()));
  gauge('process_start_time_seconds', (add) => add({}, Math.round(performance.timeOrigin / 1000)));
  readCounter('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  for (const what of ['mean', 'p50', 'p99', 'max'] as const)
    gauge(`nodejs_eventloop_delay_${what}_seconds`, (add) => add({}, eventLoop.last()[what]));
  gauge('nodejs_eventloop_utilization_ratio', (add) => add({}, eventLoop.last().utilization));
  /** Ends the window of the event-loop metrics. To be called before each scrape. */
  return eventLoop.sample;
}

function watchEventLoop() {
  // Measures each turn. Timers, which Node 24.12 uses nevertheless, wake an idle service, and miss some long turns.
  const turns = monitorEventLoopDelay({ samplePerIteration: true });
  // The turn in which it begins would count the whole wait that follows.
  setImmediate(() => turns.enable());
  let before = performance.eventLoopUtilization();
  let sampled = { mean: 0, p50: 0, p99: 0, max: 0, utilization: 0 };
  return {
    last: () => sampled,
    sample() {
      const now = performance.eventLoopUtilization();
      sampled = {
        mean: turns.count === 0 ? 0 : turns.mean / 1e9,
        p50: turns.percentile(50) / 1e9,
        p99: turns.percentile(99) / 1e9,
        max: turns.max / 1e9,
        utilization: performance.eventLoopUtilization(now, before).utilization,
      };
      before = now;
      turns.reset();
    },
  };
}

type WorkerFacts = Readonly<{ connections: number; cpuSeconds: number; memoryBytes: number }>;

/** There are no samples without workers. */
function createWorkerSeries({ counter, gauge }: MetricFactory) {
  const starts = counter('svc_worker_starts_total');
  const requests = counter('svc_worker_requests_total');
  const cpu = counter('svc_worker_cpu_seconds_total');
  const running = new Map<number, WorkerFacts>();
  const known = new Set<number>();
  gauge('svc_worker_up', (add) => known.forEach((worker) => add({ worker: String(worker) }, running.has(worker) ? 1 : 0)));
  gauge('svc_worker_connections', (add) => running.forEach(({ connections }, worker) => add({ worker: String(worker) }, connections)));
  gauge('svc_worker_resident_memory_bytes', (add) =>
    running.forEach(({ memoryBytes }, worker) => add({ worker: String(worker) }, memoryBytes)),
  );
  return {
    workerStarted(worker: number) {
      known.add(worker);
      starts.increment({ worker: String(worker) });
      requests.increment({ worker: String(worker) }, 0);
    },
    /** `finished`: requests since the last report. */
    workerReported(worker: number, facts: WorkerFacts, finished: number) {
      cpu.increment({ worker: String(worker) }, Math.max(0, facts.cpuSeconds - (running.get(worker)?.cpuSeconds ?? 0)));
      requests.increment({ worker: String(worker) }, finished);
      running.set(worker, facts);
    },
    workerEnded: (worker: number) => void running.delete(worker),
  };
}

const LOAD_RESULTS = ['hit', 'miss'] as const;

type Transition = Omit<StateMove, 'slot'>;

/** Methods are cheap and never throw. Each names its labels, because callers may pass more fields. */
function createReconcileSeries({ counter, histogram }: MetricFactory) {
  const transitions = counter('svc_slot_transitions_total');
  const passes = counter('svc_reconcile_passes_total');
  const passSeconds = histogram('svc_reconcile_pass_seconds');
  const actions = counter('svc_actions_total');
  const drift = counter('svc_drift_total');
  const pulled = counter('svc_pull_bytes_total');
  const readAhead = counter('svc_read_ahead_bytes_total');
  readAhead.increment({}, 0);
  const loadedAhead = counter('svc_loads_ahead_total');
  /** The slots that have series, and the transitions of each by "from to". */
  const seen = new Map<SlotName, Map<string, Transition>>();

  /** Begins the series of a slot. A counter that began with its first event would hide that event from `increase()`. */
  function begin(slot: SlotName): Map<string, Transition> {
    const ofSlot = new Map<string, Transition>();
    seen.set(slot, ofSlot);
    drift.increment({ slot }, 0);
    for (const result of LOAD_RESULTS) loadedAhead.increment({ slot, result }, 0);
    return ofSlot;
  }

  return {
    passFinished({ seconds, result }: { readonly seconds: number; readonly result: string }) {
      passes.increment({ result });
      passSeconds.observe({}, seconds);
    },
    actionFinished: ({ action, result }: { readonly action: string; readonly result: string }) => actions.increment({ action, result }),
    /** `bytes`: received since the last call, of a model or an image. */
    bytesPulled({ what, bytes }: { readonly what: 'model' | 'image'; readonly bytes: number }) {
      if (bytes > 0) pulled.increment({ what }, bytes);
    },
    bytesReadAhead(bytes: number) {
      if (bytes > 0) readAhead.increment({}, bytes);
    },
    loadedAhead: ({ slot, right }: { readonly slot: SlotName; readonly right: boolean }) =>
      loadedAhead.increment({ slot, result: right ? 'hit' : 'miss' }),
    /** Counts state transitions and drift. A `StatusSink` of the reconciler. */
    write({ entries, moves = [] }: { readonly entries: readonly TimelineEntry[]; readonly moves?: readonly StateMove[] }) {
      for (const { kind, slot } of entries) {
        if (!seen.has(slot)) begin(slot);
        if (kind === 'drift') drift.increment({ slot });
      }
      for (const { slot, from, to } of moves) {
        const ofSlot = seen.get(slot) ?? begin(slot);
        transitions.increment({ slot, from, to });
        ofSlot.set(`${from} ${to}`, { from, to });
      }
    },
    /** Begins the series of new slots, and removes those of slots that are gone. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>) {
      for (const slot of slots.keys()) if (!seen.has(slot)) begin(slot);
      if (seen.size === slots.size) return;
      for (const [slot, ofSlot] of seen) {
        if (slots.has(slot)) continue;
        drift.remove({ slot });
        for (const result of LOAD_RESULTS) loadedAhead.remove({ slot, result });
        for (const { from, to } of ofSlot.values()) transitions.remove({ slot, from, to });
        seen.delete(slot);
      }
    },
  };
}

const STATUSES = ['True', 'False', 'Unknown'] as const satisfies readonly Condition['status'][];
/** The conditions of a slot whose text has never been valid. The controller has no status for it. */
const REFUSED = [
  { type: 'Ready', status: 'False' },
  { type: 'Stalled', status: 'True' },
  { type: 'SpecValid', status: 'False' },
] as const satisfies readonly Pick<Condition, 'type' | 'status'>[];

interface SlotSources {
  readonly board: { current(): BoardView };
  readonly traffic: (slot: SlotName) => SlotTraffic;
  /** Only in a cluster may a slot have several replicas. */
  readonly cluster?: unknown;
}

type Conditioned = Readonly<{ status: Readonly<{ conditions: readonly Pick<Condition, 'type' | 'status'>[] }> }>;

function registerSlotSeries({ gauge, gaugeOf }: MetricFactory, { board, traffic, cluster }: SlotSources): void {
  const slotsOf = () => board.current().slots;
  gaugeOf('svc_slot_state', slotsOf, (slot, { status }, add) => {
    for (const state of SLOT_STATES) add({ slot, state }, state === status.state ? 1 : 0);
  });
  const withRefused = (): ReadonlyMap<SlotName, Conditioned> => {
    const { slots, refused } = board.current();
    const others = [...refused.keys()].filter((slot) => !slots.has(slot));
    // Each entry is another object.
    return others.length === 0
      ? slots
      : new Map<SlotName, Conditioned>([...slots, ...others.map((slot) => [slot, { status: { conditions: REFUSED } }] as const)]);
  };
  gaugeOf('svc_slot_condition', withRefused, (slot, { status: { conditions } }, add) => {
    for (const { type, status: present } of conditions)
      for (const status of STATUSES) add({ slot, type, status }, status === present ? 1 : 0);
  });
  const ofSlots = (name: MetricName<'gauge'>, valueOf: (entry: BoardSlot) => number | undefined): void =>
    gauge(name, (add) => {
      for (const [slot, entry] of slotsOf()) {
        const value = valueOf(entry);
        if (value !== undefined) add({ slot }, value);
      }
    });
  ofSlots('svc_inflight', ({ name }) => traffic(name).inFlight);
  ofSlots('svc_request_progress_ratio', ({ name }) => {
    const { progress } = traffic(name);
    return progress && Math.min(1, progress.done / progress.total);
  });
  ofSlots('svc_parked', ({ name }) => traffic(name).parked);
  const replicas = (valueOf: (entry: BoardSlot) => number) => (entry: BoardSlot) => (cluster === undefined ? undefined : valueOf(entry));
  ofSlots('svc_slot_replicas_desired', replicas(desiredReplicas));
  ofSlots(
    'svc_slot_replicas_present',
    replicas(({ status }) => status.replicas?.present ?? 0),
  );
  ofSlots(
    'svc_slot_replicas_ready',
    replicas(({ status }) => status.replicas?.ready ?? 0),
  );
}

/** A slot that is at rest, because it is disabled, idle or not asked for, needs no replicas. */
function desiredReplicas({ spec, status }: BoardSlot): number {
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  return ready?.status === 'False' && isAtRestReason(ready.reason) ? 0 : spec.cluster.replicas;
}
