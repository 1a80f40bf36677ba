/**
 * One process that forwards requests. It has the gateway and the fast path, and a copy of the board that the controller sends; it decides nothing about slots, and reports its traffic.
 *
 *   start ─► listens on the port of the service, which the kernel shares out between all processes
 *   board ─► the copy follows; parked requests go on
 *   a request ─► access check, gateway ─► report within `REPORT_MS`, at once where a pass is needed
 *   sync ─► report at once: all that was sent before is done
 *   close ─► the same as in the controller; then the process ends
 */
import type { Socket } from 'node:net';
import { createHotPath } from '../api/hot-path.ts';
import type { SiteGuard } from '../api/site-guard.ts';
import { rawInferenceRoute } from '../api/v1/raw-inference-route.ts';
import type { Authorize } from '../auth/create-authorize.ts';
import { createGateway } from '../gateway/gateway.ts';
import { INFERENCE_PATHS } from '../gateway/decide/inference-paths.ts';
import type { TrafficFacts } from '../platform/decide/sum-traffic.ts';
import type { ProviderRegistry } from '../providers/provider.ts';
import type { RoutedView } from '../reconciler/board.ts';
import { applyBoardChange, NO_BOARD, type BoardChange } from './decide/board-changes.ts';
import { packRequests, type ReportedRequest } from './decide/request-batch.ts';
import { isForWorkers } from './decide/worker-paths.ts';
import type { FromWorker, ToWorker, WorkerStart } from './messages.ts';
import { createWorkerServer } from './worker-server.ts';
import { createWorkerTraffic } from './worker-traffic.ts';

export interface WorkerDeps {
  readonly start: WorkerStart;
  readonly providers: ProviderRegistry;
  readonly site: SiteGuard;
  /** `onUse`: called with the id of each token that was accepted. */
  readonly authorizeWith: (onUse: (id: string) => void) => Authorize;
  /** Called with each request, when it has ended. */
  readonly onRequest: () => void;
  /** As `process.send()`. */
  readonly send: (message: FromWorker, socket?: Socket, callback?: (error: Error | null) => void) => void;
}

export interface Worker {
  take(message: Exclude<ToWorker, { readonly kind: 'start' }>): void;
  /** For collecting garbage while nothing happens. */
  readonly activity: () => TrafficFacts;
  /** Resolves once the worker was closed, and all that it has to say was sent. */
  readonly closed: Promise<void>;
}

/** How old a report may be. Nothing depends on it: what is urgent is reported at once. */
const REPORT_MS = 100;
/** Between two urgent reports. */
const URGENT_MS = 5;
/** So many requests are reported at once. */
const MOST_REQUESTS = 2000;

export async function startWorker(deps: WorkerDeps): Promise<Worker> {
  const { start, providers, site, send } = deps;
  const { settings } = start;
  const now = (): number => performance.now();
  const board = createBoardCopy(start.board);
  const tokens = new Set<string>();
  let requests: ReportedRequest[] = [];
  let synced = 0;
  let isUrgent = false;
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Number.POSITIVE_INFINITY;
  let close: (graceMs: number, parkedMs: number) => void = () => undefined;

  const traffic = createWorkerTraffic({
    board,
    now,
    settings,
    onChange(urgently) {
      isUrgent ||= urgently;
      reportWithin(urgently ? URGENT_MS : REPORT_MS);
    },
  });

  function note(request: ReportedRequest): void {
    deps.onRequest();
    requests.push(request);
    if (requests.length >= MOST_REQUESTS) report();
    else reportWithin(REPORT_MS);
  }

  function onFault(fault: unknown, requestId: string): void {
    send({ kind: 'fault', requestId, message: String(fault), stack: fault instanceof Error ? fault.stack : undefined });
  }

  const gateway = createGateway({
    board,
    providers,
    traffic,
    settings,
    now,
    onFault,
    report: (finished) => note({ ...finished, atDoor: false }),
  });
  const hotPath = createHotPath({
    routes: INFERENCE_PATHS.filter(isForWorkers).map((path) => rawInferenceRoute(path, gateway)),
    site,
    authorize: deps.authorizeWith((id) => void tokens.add(id)),
    report: (refused) => note({ ...refused, atDoor: true }),
    onFault,
  });
  let leaving = false;
  const server = createWorkerServer({
    limits: settings,
    rules: { headerLimit: settings.SVC_HEADER_LIMIT, serves: hotPath.serves, mostBodyBytes: start.mostBodyBytes },
    listener(req, res) {
      if (leaving) res.shouldKeepAlive = false;
      hotPath.tryHandle(req, res);
    },
    send,
  });

  function report(): void {
    clearTimeout(timer);
    timer = undefined;
    dueAt = Number.POSITIVE_INFINITY;
    const { user, system } = process.cpuUsage();
    send({
      kind: 'report',
      ...traffic.takeRows(),
      synced,
      isUrgent,
      requests: packRequests(requests),
      tokens: [...tokens],
      connections: server.connections(),
      cpuSeconds: (user + system) / 1e6,
      memoryBytes: process.memoryUsage.rss(),
    });
    requests = [];
    isUrgent = false;
    tokens.clear();
    // What is in flight may change without an event.
    if (gateway.load().requests > 0) reportWithin(REPORT_MS);
  }

  function reportWithin(ms: number): void {
    const at = performance.now() + ms;
    if (at >= dueAt) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(report, ms);
  }

  const closed = new Promise<void>((resolve) => {
    close = (graceMs, parkedMs) => {
      leaving = true;
      void server.close(graceMs, gateway.close(graceMs, parkedMs)).then(() => {
        report();
        clearTimeout(timer);
        resolve();
      });
    };
  });

  await server.listen(start);
  send({ kind: 'listening' });

  return {
    activity: traffic.facts,
    closed,
    take(message) {
      switch (message.kind) {
        case 'board':
          return board.change(message.change);
        case 'abort':
          return traffic.holds.abort(message.workload);
        case 'sync':
          synced = message.number;
          return report();
        case 'leave':
          leaving = true;
          return;
        case 'close':
          return close(message.graceMs, message.parkedMs);
        default:
          return message satisfies never;
      }
    },
  };
}

function createBoardCopy(first: BoardChange | undefined) {
  let view = first === undefined ? NO_BOARD : applyBoardChange(NO_BOARD, first);
  const listeners = new Set<(view: RoutedView) => void>();
  return {
    current: () => view,
    change(change: BoardChange) {
      view = applyBoardChange(view, change);
      for (const listener of listeners) listener(view);
    },
    subscribe(listener: (view: RoutedView) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
