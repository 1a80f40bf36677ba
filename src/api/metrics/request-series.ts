/** Request metrics. Series are bound once per slot, route and status: a request costs a few lookups and additions. */
import type { FinishedRequest } from '../../gateway/exchange-deps.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { Counted, MetricFactory, Observed } from './metric-factory.ts';

interface OfRoute {
  readonly seconds: Observed;
  readonly firstToken: Observed;
  readonly perToken: Observed;
  readonly codes: Map<number, Counted>;
}

interface OfSlot {
  readonly routes: Map<string, OfRoute>;
  readonly parked: Observed;
  readonly input: Observed;
  readonly output: Observed;
  readonly tokensPerSecond: Observed;
}

type Where = Pick<FinishedRequest, 'slot' | 'route'>;

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
  /** Key: slot; undefined for requests that reached none. */
  const bound = new Map<SlotName | undefined, OfSlot>();

  function bindSlot(name: SlotName | undefined): OfSlot {
    const slot = name ?? '';
    const entry: OfSlot = {
      routes: new Map(),
      parked: parkedSeconds.series({ slot }),
      input: tokens.series({ slot, gen_ai_token_type: 'input' }),
      output: tokens.series({ slot, gen_ai_token_type: 'output' }),
      tokensPerSecond: tokensPerSecond.series({ slot }),
    };
    bound.set(name, entry);
    return entry;
  }

  function bindRoute(ofSlot: OfSlot, { slot, route }: Where): OfRoute {
    const labels = { slot: slot ?? '', route };
    const entry: OfRoute = {
      seconds: seconds.series(labels),
      firstToken: firstToken.series(labels),
      perToken: perToken.series(labels),
      codes: new Map(),
    };
    ofSlot.routes.set(route, entry);
    return entry;
  }

  function bindCode({ codes }: OfRoute, { slot, route }: Where, code: number): Counted {
    const requests = total.series({ slot: slot ?? '', route, code: String(code) });
    codes.set(code, requests);
    return requests;
  }

  function observeTokens(ofSlot: OfSlot, ofRoute: OfRoute, request: FinishedRequest): void {
    if (request.tokens === undefined) return;
    const { input, output } = request.tokens;
    ofSlot.input.observe(input);
    ofSlot.output.observe(output);
    if (output > 0) ofSlot.tokensPerSecond.observe(output / (request.seconds - (request.parkedSeconds ?? 0)));
    if (output > 1 && request.ttftSeconds !== undefined) ofRoute.perToken.observe((request.seconds - request.ttftSeconds) / (output - 1));
  }

  function remove(name: SlotName, { routes, parked, input, output, tokensPerSecond: perSecond }: OfSlot): void {
    for (const { codes, ...series } of routes.values()) {
      for (const one of [...codes.values(), series.seconds, series.firstToken, series.perToken]) one.remove();
    }
    for (const one of [parked, input, output, perSecond]) one.remove();
    bound.delete(name);
  }

  return {
    requestFinished(request: FinishedRequest) {
      const ofSlot = bound.get(request.slot) ?? bindSlot(request.slot);
      const ofRoute = ofSlot.routes.get(request.route) ?? bindRoute(ofSlot, request);
      const code = request.status > LAST_STATUS ? LAST_STATUS : request.status;
      (ofRoute.codes.get(code) ?? bindCode(ofRoute, request, code)).increment();
      ofRoute.seconds.observe(request.seconds);
      if (request.parkedSeconds !== undefined) ofSlot.parked.observe(request.parkedSeconds);
      if (request.ttftSeconds !== undefined) ofRoute.firstToken.observe(request.ttftSeconds);
      observeTokens(ofSlot, ofRoute, request);
    },
    /** Removes the series of slots that have left the board, also those of requests that ended after that. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>) {
      for (const [slot, ofSlot] of bound) if (slot !== undefined && !slots.has(slot)) remove(slot, ofSlot);
    },
  };
}
