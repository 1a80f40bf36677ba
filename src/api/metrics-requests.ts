/** The series of the request path. Labels are bound once a slot, route and status, so that a request costs a few map reads. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { FinishedRequest, RequestMetrics } from './metrics-port.ts';

/** From a cached answer to a long generation. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
/** The buckets that OpenTelemetry's semantic conventions advise for `gen_ai.server.time_to_first_token`. */
const FIRST_TOKEN_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Likewise for `gen_ai.client.token.usage`. */
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];

interface Bound {
  readonly slot: string;
  readonly route: string;
  seconds: Histogram.Internal<string>;
  firstToken: Histogram.Internal<string> | undefined;
  input: Histogram.Internal<string> | undefined;
  output: Histogram.Internal<string> | undefined;
  readonly codes: Map<number, Counter.Internal>;
}

export function createRequestSeries(registry: Registry): RequestMetrics & { forget(slot: string): void } {
  const { total, seconds, firstToken, tokens } = registerSeries(registry);
  /** Slot ('' where the request never came to one) → route → series. */
  const bound = new Map<string, Map<string, Bound>>();

  function bind(slot: string, route: string): Bound {
    const routes = bound.get(slot) ?? new Map<string, Bound>();
    bound.set(slot, routes);
    const made = { slot, route, seconds: seconds.labels({ slot, route }), codes: new Map<number, Counter.Internal>() };
    const entry = { ...made, firstToken: undefined, input: undefined, output: undefined };
    routes.set(route, entry);
    return entry;
  }

  return {
    requestFinished(request: FinishedRequest) {
      const slot = request.slot ?? '';
      const entry = bound.get(slot)?.get(request.route) ?? bind(slot, request.route);
      let counter = entry.codes.get(request.status);
      if (counter === undefined) {
        counter = total.labels({ slot, route: request.route, code: String(request.status) });
        entry.codes.set(request.status, counter);
      }
      counter.inc();
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
    forget(slot) {
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

function registerSeries(registry: Registry) {
  const registers = [registry];
  const total = new Counter({
    name: 'svc_requests_total',
    help: 'Finished requests; code 499: the client left first',
    labelNames: ['slot', 'route', 'code'],
    registers,
  });
  const seconds = new Histogram({
    name: 'svc_request_seconds',
    help: 'From a request’s arrival to the end of its answer',
    labelNames: ['slot', 'route'],
    buckets: REQUEST_SECONDS,
    registers,
  });
  const firstToken = new Histogram({
    name: 'gen_ai_server_time_to_first_token_seconds',
    help: 'From a request’s arrival to the first byte of the answer’s body',
    labelNames: ['slot', 'route'],
    buckets: FIRST_TOKEN_SECONDS,
    registers,
  });
  const tokens = new Histogram({
    name: 'gen_ai_client_token_usage',
    help: 'Tokens a request, as the upstream counts them',
    labelNames: ['slot', 'gen_ai_token_type'],
    buckets: TOKENS,
    registers,
  });
  return { total, seconds, firstToken, tokens };
}

/** prom-client throws on what is no number, and token counts come from an upstream that may say anything. */
function observe(series: Histogram.Internal<string>, value: number): void {
  if (Number.isFinite(value) && value >= 0) series.observe(value);
}
