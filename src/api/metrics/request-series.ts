/** Request metrics. Series are bound once per slot, route and status: a request costs a few lookups and additions. */
import type { FinishedRequest } from '../../gateway/exchange-deps.ts';
import type { Move } from '../../gateway/route/decide/fall-back.ts';
import type { BoardView } from '../../reconciler/board.ts';
import type { Caused } from '../../schema/status/slot-status.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { NANOS, OTHERS, type UsageCounts } from '../../usage/decide/usage-rows.ts';
import type { PendingRows, SlotFacts } from '../../usage/pending-rows.ts';
import type { Counted, MetricFactory } from './metric-factory.ts';
import type { MetricName } from './metric-table.ts';

/** What the requests of a slot have generated since this process started, for readers that want no histograms. */
export interface SlotTotals {
  outputTokens: number;
  /** Requests whose first token was timed. */
  firstTokens: number;
  /** Their times from arrival to the first token, added up. */
  firstTokenSeconds: number;
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
  const fallback = counter('svc_fallback_total');
  const moved = new Map<string, Move>();
  /** Key: slot; undefined for requests that reached none. */
  const bound = new Map<SlotName | undefined, OfSlot>();
  type OfSlot = ReturnType<typeof seriesOfSlot>;
  type OfRoute = ReturnType<typeof seriesOfRoute>;

  function seriesOfSlot(slot: string) {
    return {
      routes: new Map<string, OfRoute>(),
      totals: { outputTokens: 0, firstTokens: 0, firstTokenSeconds: 0 },
      parked: parkedSeconds.series({ slot }),
      input: tokens.series({ slot, gen_ai_token_type: 'input' }),
      output: tokens.series({ slot, gen_ai_token_type: 'output' }),
      tokensPerSecond: tokensPerSecond.series({ slot }),
    };
  }

  function seriesOfRoute(labels: { readonly slot: string; readonly route: string }) {
    return {
      seconds: seconds.series(labels),
      firstToken: firstToken.series(labels),
      perToken: perToken.series(labels),
      codes: new Map<number, Counted>(),
    };
  }

  function observeTokens(ofSlot: OfSlot, ofRoute: OfRoute, request: FinishedRequest, exemplar: ReturnType<typeof exemplarOf>): void {
    if (request.tokens === undefined || request.tokens.isEstimated === true) return;
    const { input, output } = request.tokens;
    ofSlot.input.observe(input, exemplar);
    ofSlot.output.observe(output, exemplar);
    ofSlot.totals.outputTokens += output;
    if (output > 0) ofSlot.tokensPerSecond.observe(output / (request.seconds - (request.parkedSeconds ?? 0)), exemplar);
    if (output > 1 && request.ttftSeconds !== undefined)
      ofRoute.perToken.observe((request.seconds - request.ttftSeconds) / (output - 1), exemplar);
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
      const { slot = '', route } = request;
      const ofSlot = bound.get(request.slot) ?? added(bound, request.slot, seriesOfSlot(slot));
      const ofRoute = ofSlot.routes.get(route) ?? added(ofSlot.routes, route, seriesOfRoute({ slot, route }));
      const code = request.status > LAST_STATUS ? LAST_STATUS : request.status;
      (ofRoute.codes.get(code) ?? added(ofRoute.codes, code, total.series({ slot, route, code: String(code) }))).increment();
      const exemplar = exemplarOf(request);
      ofRoute.seconds.observe(request.seconds, exemplar);
      if (request.parkedSeconds !== undefined) ofSlot.parked.observe(request.parkedSeconds, exemplar);
      if (request.ttftSeconds !== undefined) {
        ofRoute.firstToken.observe(request.ttftSeconds, exemplar);
        ofSlot.totals.firstTokens += 1;
        ofSlot.totals.firstTokenSeconds += request.ttftSeconds;
      }
      observeTokens(ofSlot, ofRoute, request, exemplar);
      for (const move of request.moves ?? []) {
        moved.set(`${move.from} ${move.to} ${move.reason}`, move);
        fallback.increment(labelsOf(move));
      }
    },
    /** Undefined for a slot that nobody has asked yet. */
    totalsOf(slot: SlotName): Readonly<SlotTotals> | undefined {
      const ofSlot = bound.get(slot);
      return ofSlot && { ...ofSlot.totals };
    },
    /** Removes the series of slots that have left the board, also those of requests that ended after that. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>) {
      for (const [slot, ofSlot] of bound) if (slot !== undefined && !slots.has(slot)) remove(slot, ofSlot);
      for (const [key, move] of moved) {
        if (slots.has(move.from) && slots.has(move.to)) continue;
        fallback.remove(labelsOf(move));
        moved.delete(key);
      }
    },
  };
}

const exemplarOf = ({ trace }: FinishedRequest) =>
  trace && { traceId: trace.traceId, spanId: trace.spanId, at: Math.round(trace.at + trace.ms) };

const labelsOf = ({ from, to, reason }: Move) => ({ slot: from, to, reason });

function added<Key, Value>(all: Map<Key, Value>, key: Key, value: Value): Value {
  all.set(key, value);
  return value;
}

/** Their series do not begin anew. */
const ALL_HOURS = 0;

type ReadCount = (row: UsageCounts) => number;

/** By the value of the label `kind`; empty: the metric has no such label. */
const COUNTERS: readonly (readonly [MetricName<'counter'>, Readonly<Record<string, ReadCount>>])[] = [
  ['svc_usage_requests_total', { '': ({ requests }) => requests }],
  ['svc_usage_errors_total', { '': ({ errors }) => errors }],
  ['svc_usage_estimated_requests_total', { '': ({ estimated }) => estimated }],
  ['svc_usage_tokens_total', { input: ({ input }) => input, cached: ({ cached }) => cached, output: ({ output }) => output }],
  [
    'svc_usage_seconds_total',
    { queue: ({ queueMs }) => queueMs / 1000, busy: ({ busyMs }) => busyMs / 1000, audio: ({ audioMs }) => audioMs / 1000 },
  ],
  ['svc_usage_images_total', { '': ({ images }) => images }],
  ['svc_usage_cost_total', { '': ({ nanos }) => nanos / NANOS }],
  ['svc_usage_loads_total', { '': ({ loads }) => loads }],
  ['svc_usage_evictions_total', { '': ({ evictions }) => evictions }],
];

/**
 * Usage of callers, for a cluster: replicas share no file, and Prometheus adds them up. `sums`: counts nothing yet, and
 * bounds the number of callers and series.
 */
export function createCallerSeries({ readCounters }: MetricFactory, sums: PendingRows, board: { current(): Pick<BoardView, 'slots'> }) {
  const register = (name: MetricName<'counter'>, kinds: Readonly<Record<string, ReadCount>>): void =>
    readCounters(name, (add) => {
      for (const row of sums.rows()) {
        const { caller, slot, currency } = row;
        for (const [kind, read] of Object.entries(kinds)) {
          const value = read(row);
          if (value > 0) add({ caller, slot, currency, ...(kind === '' ? {} : { kind }) }, value);
        }
      }
    });
  for (const [name, kinds] of COUNTERS) register(name, kinds);
  const factsOf = (slot: SlotName | undefined): Pick<SlotFacts, 'price'> => ({
    price: slot === undefined ? undefined : board.current().slots.get(slot)?.spec.price,
  });
  return {
    requestFinished: (request: FinishedRequest) => sums.add(request, ALL_HOURS, factsOf(request.slot)),
    /** A `StatusSink` of the reconciler. */
    write({ caused = [] }: { readonly caused?: readonly Caused[] }): void {
      for (const each of caused) sums.addCaused(each, ALL_HOURS, factsOf(each.slot));
    },
    /** Removes the series of slots that have left the board. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>): void {
      const names: ReadonlySet<string> = new Set([...slots.keys(), '', OTHERS]);
      if (sums.rows().every(({ slot }) => names.has(slot))) return;
      sums.putBack(sums.take().filter(({ slot }) => names.has(slot)));
    },
  };
}
