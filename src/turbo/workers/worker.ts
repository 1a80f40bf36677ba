/**
 * One process that forwards requests. It decides nothing about slots, and reports its traffic.
 *
 *   start ─► listens on the port of the service, which the kernel shares between all processes
 *   board ─► the copy follows; parked requests go on
 *   a request ─► access check, gateway ─► report within 100 ms, at once where a pass is needed
 *   sync ─► report at once: everything sent before is done
 *   close ─► as in the controller; then the process ends
 */
import type { Socket } from 'node:net';
import { createHotPath, rawInferenceRoute } from '../../api/server/hot-path.ts';
import type { SiteGuard } from '../../api/server/site-guard.ts';
import type { Authorize } from '../../auth/check-token.ts';
import { createLeasedAccounts } from './leased-limits.ts';
import { createCaptureTaps, type CaptureTaps } from '../../gateway/capture/capture-taps.ts';
import type { LimitAccounts } from '../../gateway/traffic/admit-caller.ts';
import { createGateway } from '../../gateway/create-gateway.ts';
import { createTracer } from '../../gateway/trace/request-trace.ts';
import { INFERENCE_PATHS, type InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import type { FromWorker, ToWorker, WorkerStart } from './messages.ts';
import { WorkerReports, createWorkerTraffic, type WorkerTraffic } from './worker-traffic.ts';
import { createWorkerServer } from './worker-server.ts';
import { createPublisher, type RoutedBoard } from '../../reconciler/board.ts';
import { applyBoardChange, NO_BOARD } from './decide/board-changes.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';

interface WorkerDeps {
  readonly start: WorkerStart;
  readonly providers: ProviderRegistry;
  readonly site: SiteGuard;
  readonly authorizeWith: (onUse: (id: string) => void) => Authorize;
  readonly onRequest: () => void;
  readonly send: (message: FromWorker, socket?: Socket, callback?: (error: Error | null) => void) => void;
}

export type Worker = Awaited<ReturnType<typeof startWorker>>;

/** Listens before it returns. */
export async function startWorker(deps: WorkerDeps) {
  const { start, send } = deps;
  const now = (): number => performance.now();
  const board = createPublisher(start.board === undefined ? NO_BOARD : applyBoardChange(NO_BOARD, start.board));
  const traffic = createWorkerTraffic({ board, now, settings: start.settings, onChange: (isUrgent) => reports.trafficChanged(isUrgent) });
  const reports: WorkerReports = new WorkerReports({
    takeRows: traffic.takeRows,
    active: () => requests.gateway.load().requests,
    connections: () => requests.server.connections(),
    running: () => requests.gateway.running(),
    send: (report) => send({ kind: 'report', ...report }),
  });
  const limits = createLeasedAccounts({
    now,
    ask: (ask) => send({ kind: 'limits', ask }),
    report: (report) => send({ kind: 'used', report }),
  });
  const taps = createCaptureTaps((ids, text) => send({ kind: 'captured', ids, text }), Date.now);
  taps.set(start.captures);
  const requests = serveRequests(deps, { board, traffic, reports, limits, taps, now });
  const closed = Promise.withResolvers<void>();

  async function close(graceMs: number, parkedMs: number): Promise<void> {
    requests.leave();
    await requests.server.close(graceMs, requests.gateway.close(graceMs, parkedMs));
    reports.close();
    closed.resolve();
  }

  await requests.server.listen(start);
  send({ kind: 'listening' });

  return {
    activity: traffic.facts,
    closed: closed.promise,
    take(message: Exclude<ToWorker, { readonly kind: 'start' }>): void {
      switch (message.kind) {
        case 'board':
          return board.publish(applyBoardChange(board.current(), message.change));
        case 'captures':
          return taps.set(message.rules);
        case 'abort':
          return traffic.holds.abort(message.workload);
        case 'sync':
          return reports.sync(message.number, message.looks);
        case 'cancel':
          return requests.gateway.cancel(message.requestId);
        case 'leave':
          return requests.leave();
        case 'limits':
          return limits.answer(message.answer);
        case 'close':
          return void close(message.graceMs, message.parkedMs);
        default:
          return message satisfies never;
      }
    },
  };
}

type RequestParts = Readonly<{
  board: RoutedBoard;
  traffic: WorkerTraffic;
  reports: WorkerReports;
  limits: LimitAccounts;
  taps: CaptureTaps;
  now: () => number;
}>;

function serveRequests(deps: WorkerDeps, { board, traffic, reports, limits, taps, now }: RequestParts) {
  const { providers, site, authorizeWith, onRequest, send } = deps;
  const { settings, mostBodyBytes, sampling } = deps.start;
  const startTrace = createTracer(sampling);
  let leaving = false;
  function onFault(fault: unknown, requestId: string): void {
    send({ kind: 'fault', requestId, message: String(fault), stack: fault instanceof Error ? fault.stack : undefined });
  }
  const gateway = createGateway({
    board,
    providers,
    traffic,
    settings,
    limitAccounts: limits,
    startTrace,
    taps,
    now,
    onFault,
    report(finished) {
      onRequest();
      reports.requestEnded({ ...finished, atDoor: false });
    },
  });
  const hotPath = createHotPath({
    routes: INFERENCE_PATHS.filter(isForWorkers).map((path) => rawInferenceRoute(path, gateway)),
    site,
    authorize: authorizeWith((id) => reports.tokenUsed(id)),
    report: (refused) => reports.requestEnded({ ...refused, atDoor: true }),
    startTrace,
    onFault,
  });
  const server = createWorkerServer({
    limits: settings,
    rules: { headerLimit: settings.SVC_HEADER_LIMIT, serves: hotPath.serves, mostBodyBytes },
    listener(req, res) {
      if (leaving) res.shouldKeepAlive = false;
      hotPath.tryHandle(req, res);
    },
    send,
  });
  return { gateway, server, leave: () => void (leaving = true) };
}

/** Only texts: recordings, speech and images need the state directory, and gain little from another process. */
const OF_TEXTS: ReadonlySet<Capability> = new Set(['chat', 'completion', 'embedding', 'rerank']);

export const isForWorkers = ({ capability }: Pick<InferencePath, 'capability'>): boolean => OF_TEXTS.has(capability);
