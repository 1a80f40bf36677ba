/** The dispatcher as a whole: takes a request whose route and caller are settled, and sees it through. */
import { createBufferBudget } from './buffer-budget.ts';
import { createWriteBatcher } from './write-batcher.ts';
import { Exchange, type ExchangeRequest } from './exchange.ts';
import type { ActiveExchange, ExchangeDeps, GatewayDeps } from './exchange-deps.ts';
import { createDenseSet } from './dense-set.ts';
import { createUpstreams } from './upstreams.ts';

export interface Gateway {
  handle(request: ExchangeRequest): void;
  /** What it holds now. */
  load(): { readonly requests: number; readonly bufferedBytes: number; readonly connections: number };
  /** Refuses those that are still parked after `parkedMs` (default: at once), lets the others end for at most `graceMs`, then ends them. */
  close(graceMs: number, parkedMs?: number): Promise<void>;
}

const SWEEP_MS = 1000;
const CLOSE_CHECK_MS = 20;

export function createGateway(deps: GatewayDeps): Gateway {
  const { board, traffic, settings } = deps;
  const active = createDenseSet<ActiveExchange>();
  const upstreams = createUpstreams({ board });
  const budget = createBufferBudget(settings.SVC_BUFFER_LIMIT);
  const batcher = createWriteBatcher();
  let tick = performance.now();
  const exchangeDeps: ExchangeDeps = {
    ...deps,
    holds: traffic.holds,
    parking: traffic.parking,
    upstreams,
    budget,
    batcher,
    active,
    suspect: () => traffic.suspect(),
    tick: () => tick,
  };
  const shortest = Math.min(settings.SVC_FIRST_BYTE_TIMEOUT, settings.SVC_STREAM_TIMEOUT);
  const sweeper = setInterval(
    () => {
      tick = performance.now();
      for (const exchange of active.items()) exchange.checkTime(tick);
    },
    Math.max(5, Math.min(SWEEP_MS, shortest / 4)),
  );
  sweeper.unref();

  return {
    handle: (request) => new Exchange(exchangeDeps, request).start(),
    load: () => ({ requests: active.size, bufferedBytes: budget.held(), connections: upstreams.open() }),
    async close(graceMs, parkedMs = 0) {
      const begun = performance.now();
      const refuseParked = (): void => traffic.parking.close('The service is stopping; send the request again');
      if (parkedMs <= 0) refuseParked();
      while (active.size > 0 && performance.now() - begun < graceMs) {
        await new Promise((resolve) => setTimeout(resolve, CLOSE_CHECK_MS));
        if (performance.now() - begun >= parkedMs) refuseParked();
      }
      refuseParked();
      for (const exchange of active.items()) exchange.abandon();
      clearInterval(sweeper);
      upstreams.close();
      batcher.close();
    },
  };
}
