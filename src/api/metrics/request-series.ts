/** The metrics of requests. Labels are bound once per slot, route and status, so that a request costs a few map lookups. */
import type { Counter, Histogram } from 'prom-client';
import type { FinishedRequest } from '../../gateway/exchange-deps.ts';
import type { SlotName } from '../../schema/names.ts';
import type { MetricFactory } from './metric-factory.ts';

type Series = Histogram.Internal<string>;

/** The series of a slot on one route. */
interface OfRoute {
  readonly seconds: Series;
  firstToken: Series | undefined;
  perToken: Series | undefined;
  readonly codes: Map<number, Counter.Internal>;
}

interface OfSlot {
  readonly routes: Map<string, OfRoute>;
  parked: Series | undefined;
  input: Series | undefined;
  output: Series | undefined;
  tokensPerSecond: Series | undefined;
}

/** The highest status of HTTP. A model server that sends others must not make more series. */
const LAST_STATUS = 599;

export function createRequestSeries({ counter, histogram }: MetricFactory) {
  const total = counter('svc_requests_total');
  const seconds = histogram('svc_request_seconds');
  const parkedSeconds = histogram('svc_parked_seconds');
  const firstToken = histogram('gen_ai_server_time_to_first_token_seconds');
  const perToken = histogram('gen_ai_server_time_per_output_token_seconds');
  const tokensPerSecond = histogram('svc_output_tokens_per_second');
  const tokens = histogram('gen_ai_client_token_usage');
  /** By slot; undefined for requests that reached none. */
  const bound = new Map<SlotName | undefined, OfSlot>();

  function bindSlot(slot: SlotName | undefined): OfSlot {
    const entry: OfSlot = { routes: new Map(), parked: undefined, input: undefined, output: undefined, tokensPerSecond: undefined };
    bound.set(slot, entry);
    return entry;
  }

  function bindRoute(ofSlot: OfSlot, slot: string, route: string): OfRoute {
    const entry: OfRoute = { seconds: seconds.labels({ slot, route }), firstToken: undefined, perToken: undefined, codes: new Map() };
    ofSlot.routes.set(route, entry);
    return entry;
  }

  function count({ codes }: OfRoute, slot: string, route: string, status: number): void {
    const code = status > LAST_STATUS ? LAST_STATUS : status;
    let requests = codes.get(code);
    if (requests === undefined) {
      requests = total.labels({ slot, route, code: String(code) });
      codes.set(code, requests);
    }
    requests.inc();
  }

  function observeTokens(ofSlot: OfSlot, ofRoute: OfRoute, slot: string, request: FinishedRequest): void {
    if (request.tokens === undefined) return;
    const { input, output } = request.tokens;
    ofSlot.input ??= tokens.labels({ slot, gen_ai_token_type: 'input' });
    ofSlot.output ??= tokens.labels({ slot, gen_ai_token_type: 'output' });
    observe(ofSlot.input, input);
    observe(ofSlot.output, output);
    if (output > 0) {
      ofSlot.tokensPerSecond ??= tokensPerSecond.labels({ slot });
      observe(ofSlot.tokensPerSecond, output / (request.seconds - (request.parkedSeconds ?? 0)));
    }
    if (output > 1 && request.ttftSeconds !== undefined) {
      ofRoute.perToken ??= perToken.labels({ slot, route: request.route });
      observe(ofRoute.perToken, (request.seconds - request.ttftSeconds) / (output - 1));
    }
  }

  function remove(name: SlotName, { routes }: OfSlot): void {
    const slot = name;
    for (const [route, { codes }] of routes) {
      for (const series of [seconds, firstToken, perToken]) series.remove({ slot, route });
      for (const code of codes.keys()) total.remove({ slot, route, code: String(code) });
    }
    for (const gen_ai_token_type of ['input', 'output']) tokens.remove({ slot, gen_ai_token_type });
    parkedSeconds.remove({ slot });
    tokensPerSecond.remove({ slot });
    bound.delete(name);
  }

  return {
    requestFinished(request: FinishedRequest) {
      const { route } = request;
      const slot = request.slot ?? '';
      const ofSlot = bound.get(request.slot) ?? bindSlot(request.slot);
      const ofRoute = ofSlot.routes.get(route) ?? bindRoute(ofSlot, slot, route);
      count(ofRoute, slot, route, request.status);
      observe(ofRoute.seconds, request.seconds);
      if (request.parkedSeconds !== undefined) {
        ofSlot.parked ??= parkedSeconds.labels({ slot });
        observe(ofSlot.parked, request.parkedSeconds);
      }
      if (request.ttftSeconds !== undefined) {
        ofRoute.firstToken ??= firstToken.labels({ slot, route });
        observe(ofRoute.firstToken, request.ttftSeconds);
      }
      observeTokens(ofSlot, ofRoute, slot, request);
    },
    /** Removes the series of slots that have left the board, also those of requests that ended after that. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>) {
      for (const [slot, ofSlot] of bound) if (slot !== undefined && !slots.has(slot)) remove(slot, ofSlot);
    },
  };
}

/** Ignores invalid values, on which prom-client would throw: token counts come from an upstream that may send anything. */
function observe(series: Series, value: number): void {
  if (Number.isFinite(value) && value >= 0) series.observe(value);
}
