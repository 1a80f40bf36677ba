/**
 * The gateway. Each request whose access was checked becomes an `Exchange`; all share the connections, the memory
 * budget and the write batcher created here. A sweeper checks time limits about once a second.
 */
import { sleep } from '../platform/clock.ts';
import { createBufferBudget } from './traffic/traffic.ts';
import { createCallerLimits, createLocalAccounts } from './traffic/admit-caller.ts';
import { createWriteBatcher } from './batch-streams.ts';
import { createOutputCap, createPresetEditor } from './body/apply-preset.ts';
import { Exchange } from './exchange.ts';
import type { ActiveExchange, ExchangeDeps, ExchangeRequest, GatewayDeps } from './exchange-deps.ts';
import { createDenseSet } from '../platform/dense-set.ts';
import type { RoutedView } from '../reconciler/board.ts';
import { createVisibleBoards } from './visible-board.ts';
import { createUpstreams } from './upstream/upstreams.ts';

export type Gateway = ReturnType<typeof createPlainGateway>;

const SWEEP_MS = 1000;
const CLOSE_CHECK_MS = 20;

export function createPlainGateway(deps: GatewayDeps) {
  const { board, traffic, settings } = deps;
  const active = createDenseSet<ActiveExchange>();
  const upstreams = createUpstreams({ board });
  const budget = createBufferBudget(settings.SVC_BUFFER_LIMIT);
  const spoolBudget = createBufferBudget(settings.SVC_SPOOL_LIMIT);
  const batcher = createWriteBatcher();
  let tick = performance.now();
  const applyPreset = createPresetEditor();
  const admitCaller = createCallerLimits(deps.limitAccounts ?? createLocalAccounts(deps.now));
  const caller = { admitCaller, outputCap: createOutputCap(), visibleTo: createVisibleBoards<RoutedView>() };
  const exchangeDeps: ExchangeDeps = {
    ...deps,
    applyPreset,
    ...caller,
    upstreams,
    budget,
    spoolBudget,
    batcher,
    active,
    tick: () => tick,
  };
  const shortest = Math.min(settings.SVC_FIRST_BYTE_TIMEOUT, settings.SVC_STREAM_TIMEOUT);
  const sweeper = setInterval(
    () => {
      tick = performance.now();
      for (const exchange of active.items()) exchange.checkTimeouts(tick);
    },
    Math.max(5, Math.min(SWEEP_MS, shortest / 4)),
  );
  sweeper.unref();

  return {
    handle(request: ExchangeRequest): void {
      const traced = deps.startTrace === undefined ? request : { ...request, trace: request.trace ?? deps.startTrace(request.head) };
      const report = deps.taps?.tap(traced, deps.report);
      new Exchange(report === undefined ? exchangeDeps : { ...exchangeDeps, report }, traced).start();
    },
    budget,
    /** The oldest first. */
    running: () => [...active.items()].map((exchange) => exchange.look()).toSorted((a, b) => b.seconds - a.seconds),
    /** Ends the requests with this id. */
    cancel(id: string): void {
      for (const exchange of active.items()) if (exchange.look().requestId === id) exchange.cancel();
    },
    load: () => ({
      requests: active.size,
      bufferedBytes: budget.reservedBytes(),
      spooledBytes: spoolBudget.reservedBytes(),
      connections: upstreams.open(),
    }),
    /**
     * Called once, when the service stops. Refuses requests that are parked after `parkedMs` (default: at once), waits
     * up to `graceMs` for the others, then ends them. More may come until `noMore` resolves.
     */
    async close(graceMs: number, parkedMs = 0, noMore?: Promise<void>) {
      const startedAt = performance.now();
      let mayCome = noMore !== undefined;
      void noMore?.finally(() => (mayCome = false));
      const refuseParked = (): void => traffic.parking.close('The service is stopping: send the request again');
      while ((active.size > 0 || mayCome) && performance.now() - startedAt < graceMs) {
        if (performance.now() - startedAt >= parkedMs) refuseParked();
        await sleep(CLOSE_CHECK_MS);
      }
      refuseParked();
      for (const exchange of active.items()) exchange.abandon();
      clearInterval(sweeper);
      upstreams.close();
    },
  };
}
