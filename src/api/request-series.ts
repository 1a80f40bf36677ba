/** The metrics of requests. Labels are bound once per slot, route and status, so that a request costs a few map lookups. */
import type { Counter, Histogram } from 'prom-client';
import type { FinishedRequest } from '../gateway/exchange-deps.ts';
import type { SlotName } from '../schema/names.ts';
import type { MetricFactory } from './metric-factory.ts';

/** From a cached answer to a long generation. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
/** The buckets that OpenTelemetry's semantic conventions recommend for `gen_ai.server.time_to_first_token`. */
const FIRST_TOKEN_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Likewise for `gen_ai.client.token.usage`. */
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];

interface Bound {
  readonly seconds: Histogram.Internal<string>;
  firstToken: Histogram.Internal<string> | undefined;
  input: Histogram.Internal<string> | undefined;
  output: Histogram.Internal<string> | undefined;
  readonly codes: Map<number, Counter.Internal>;
}

export function createRequestSeries({ counter, histogram }: MetricFactory) {
  const total = counter('svc_requests_total', 'Finished requests; code 499: the client disconnected first', ['slot', 'route', 'code']);
  const perRoute = ['slot', 'route'];
  const seconds = histogram('svc_request_seconds', 'Time from a request’s arrival to the end of its answer', REQUEST_SECONDS, perRoute);
  const firstToken = histogram(
    'gen_ai_server_time_to_first_token_seconds',
    'Time from a request’s arrival to the first byte of the answer’s body',
    FIRST_TOKEN_SECONDS,
    perRoute,
  );
  const tokens = histogram('gen_ai_client_token_usage', 'Tokens per request, as reported by the upstream', TOKENS, [
    'slot',
    'gen_ai_token_type',
  ]);
  /** Slot ('' for requests without one) → route → series. */
  const bound = new Map<string, Map<string, Bound>>();

  function bind(slot: string, route: string): Bound {
    const routes = bound.get(slot) ?? new Map<string, Bound>();
    bound.set(slot, routes);
    const entry: Bound = {
      seconds: seconds.labels({ slot, route }),
      firstToken: undefined,
      input: undefined,
      output: undefined,
      codes: new Map(),
    };
    routes.set(route, entry);
    return entry;
  }

  return {
    requestFinished(request: FinishedRequest) {
      const slot = request.slot ?? '';
      const entry = bound.get(slot)?.get(request.route) ?? bind(slot, request.route);
      let requests = entry.codes.get(request.status);
      if (requests === undefined) {
        requests = total.labels({ slot, route: request.route, code: String(request.status) });
        entry.codes.set(request.status, requests);
      }
      requests.inc();
      observe(entry.seconds, request.seconds);
      if (request.ttftSeconds !== undefined) {
        entry.firstToken ??= firstToken.labels({ slot, route: request.route });
        observe(entry.firstToken, request.ttftSeconds);
      }
      if (request.tokens !== undefined) {
        entry.input ??= tokens.labels({ slot, gen_ai_token_type: 'input' });
        entry.output ??= tokens.labels({ slot, gen_ai_token_type: 'output' });
        observe(entry.input, request.tokens.input);
        observe(entry.output, request.tokens.output);
      }
    },
    /** Removes the series of a slot that has left the board. */
    forget(slot: SlotName) {
      for (const [route, entry] of bound.get(slot) ?? []) {
        seconds.remove({ slot, route });
        firstToken.remove({ slot, route });
        for (const code of entry.codes.keys()) total.remove({ slot, route, code: String(code) });
      }
      tokens.remove({ slot, gen_ai_token_type: 'input' });
      tokens.remove({ slot, gen_ai_token_type: 'output' });
      bound.delete(slot);
    },
  };
}

/** Ignores invalid values, on which prom-client would throw: token counts come from an upstream that may send anything. */
function observe(series: Histogram.Internal<string>, value: number): void {
  if (Number.isFinite(value) && value >= 0) series.observe(value);
}
