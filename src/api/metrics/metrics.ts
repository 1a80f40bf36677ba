/** The metrics of the service, in their own registry. A slot has series only while it is on the board, so their number is bounded. */
import { Registry } from 'prom-client';
import type { Breather } from '../../platform/slices.ts';
import type { Board } from '../../reconciler/board.ts';
import { createClusterSeries, type ClusterSources } from './cluster-series.ts';
import { createMetricFactory, type MetricFactory } from './metric-factory.ts';
import { registerProcessSeries } from './process-series.ts';
import { createReconcileSeries } from './reconcile-series.ts';
import { createRequestSeries } from './request-series.ts';
import { createWorkerSeries } from './worker-series.ts';
import { registerSlotSeries, type SlotSources } from './slot-series.ts';

export type Metrics = ReturnType<typeof createMetrics>;

export interface MetricsDeps extends SlotSources {
  readonly version: string;
  readonly runtime: string;
  readonly board: Pick<Board, 'current' | 'subscribe'>;
  /** Whether this replica is the leader, which executes plans. */
  readonly leads: () => boolean;
  /** Undefined on a host. */
  readonly cluster?: ClusterSources | undefined;
  /** Makes what is called between two metrics of a text. Default: `createBreather`. */
  readonly breather?: () => Breather;
}

export function createMetrics(deps: MetricsDeps) {
  const registry = new Registry();
  const factory = createMetricFactory(registry, deps.breather);
  const requests = createRequestSeries(factory);
  const reconcile = createReconcileSeries(factory);
  const cluster = createClusterSeries(factory, deps.cluster);
  registerServiceSeries(factory, deps);
  registerSlotSeries(factory, deps);
  const workers = createWorkerSeries(factory);
  const ofProcess = registerProcessSeries(factory);
  deps.board.subscribe(({ slots }) => {
    requests.keepOnly(slots);
    reconcile.keepOnly(slots);
  });
  return {
    requestFinished: requests.requestFinished,
    reconcile,
    cluster,
    workers,
    contentType: registry.contentType,
    async text() {
      ofProcess.sample();
      return await factory.text();
    },
  };
}

function registerServiceSeries({ gauge }: MetricFactory, { version, runtime, leads, board }: MetricsDeps): void {
  gauge('svc_build_info', (add) => add({ version, runtime }, 1));
  gauge('svc_leads', (add) => add({}, leads() ? 1 : 0));
  gauge('svc_reconcile_last_pass_timestamp_seconds', (add) => add({}, board.current().at / 1000));
}
