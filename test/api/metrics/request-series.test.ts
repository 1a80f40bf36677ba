import { Counter, Histogram, Registry } from 'prom-client';
import { describe, expect, test } from '@jest/globals';
import { createMetricFactory } from '../../../src/api/metrics/metric-factory.ts';
import { METRICS, type MetricName } from '../../../src/api/metrics/metric-table.ts';
import { createRequestSeries } from '../../../src/api/metrics/request-series.ts';
import type { FinishedRequest } from '../../../src/gateway/exchange-deps.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';

const [one, two] = [SlotName.parse('one'), SlotName.parse('two')];
const chat = { slot: one, route: '/v1/chat/completions', status: 200, seconds: 0.02 };

/** The same metrics kept by prom-client, which is called with labels for each event. */
function createLibrarySeries() {
  const registry = new Registry();
  const factsOf = (name: keyof typeof METRICS) => ({
    name,
    help: METRICS[name].help,
    labelNames: METRICS[name].labels,
    registers: [registry],
  });
  const histogramOf = (name: MetricName<'histogram'>): Histogram =>
    new Histogram({ ...factsOf(name), buckets: [...METRICS[name].buckets] });
  const total = new Counter(factsOf('svc_requests_total'));
  const seconds = histogramOf('svc_request_seconds');
  const parked = histogramOf('svc_parked_seconds');
  const firstToken = histogramOf('gen_ai_server_time_to_first_token_seconds');
  const perToken = histogramOf('gen_ai_server_time_per_output_token_seconds');
  const perSecond = histogramOf('svc_output_tokens_per_second');
  const usage = histogramOf('gen_ai_client_token_usage');
  const codes = new Map<string, { slot: string; route: string; code: string }>();
  const observe = (metric: Histogram, labels: Record<string, string>, value: number | undefined): void => {
    if (value !== undefined && Number.isFinite(value) && value >= 0) metric.observe(labels, value);
  };
  return {
    text: () => registry.metrics(),
    requestFinished({ slot: name, route, status, seconds: all, parkedSeconds, ttftSeconds, tokens }: FinishedRequest) {
      const slot = name ?? '';
      const counted = { slot, route, code: String(Math.min(status, 599)) };
      codes.set(Object.values(counted).join(' '), counted);
      total.inc(counted);
      observe(seconds, { slot, route }, all);
      observe(parked, { slot }, parkedSeconds);
      observe(firstToken, { slot, route }, ttftSeconds);
      if (tokens === undefined) return;
      const { input, output } = tokens;
      observe(usage, { slot, gen_ai_token_type: 'input' }, input);
      observe(usage, { slot, gen_ai_token_type: 'output' }, output);
      if (output > 0) observe(perSecond, { slot }, output / (all - (parkedSeconds ?? 0)));
      if (output > 1 && ttftSeconds !== undefined) observe(perToken, { slot, route }, (all - ttftSeconds) / (output - 1));
    },
    remove(gone: SlotName) {
      for (const { slot, route, code } of codes.values()) {
        if (slot !== gone) continue;
        total.remove({ slot, route, code });
        for (const metric of [seconds, firstToken, perToken]) metric.remove({ slot, route });
        for (const metric of [parked, perSecond]) metric.remove({ slot });
        for (const gen_ai_token_type of ['input', 'output']) usage.remove({ slot, gen_ai_token_type });
      }
    },
  };
}

type Event =
  | { readonly kind: 'request'; readonly request: FinishedRequest }
  | { readonly kind: 'keep'; readonly slots: readonly SlotName[] };

async function textsOf(events: readonly Event[]) {
  const library = createLibrarySeries();
  const factory = createMetricFactory(new Registry());
  const own = createRequestSeries(factory);
  for (const event of events) {
    if (event.kind === 'request') {
      own.requestFinished(event.request);
      library.requestFinished(event.request);
    } else {
      own.keepOnly(new Map(event.slots.map((slot) => [slot, true])));
      for (const slot of [one, two]) if (!event.slots.includes(slot)) library.remove(slot);
    }
  }
  return { own: (await factory.text()).trimEnd(), library: (await library.text()).trimEnd() };
}

const request = (finished: FinishedRequest): Event => ({ kind: 'request', request: finished });
const streamed = { ...chat, parkedSeconds: 0.3, ttftSeconds: 0.015, tokens: { input: 10, output: 100 } };

describe('createRequestSeries() shows what prom-client would show', () => {
  test.each<readonly [string, readonly Event[]]>([
    ['nothing', []],
    ['one request', [request(chat)]],
    ['a stream with everything', [request(streamed), request(streamed)]],
    [
      'slots, routes and codes in the order of their first event',
      [
        request({ ...chat, slot: two }),
        request(chat),
        request({ ...chat, slot: two, route: '/v1/a', status: 404 }),
        request({ ...chat, slot: two }),
      ],
    ],
    ['no slot', [request({ ...chat, slot: undefined, status: 404, seconds: 0 })]],
    ['values on and above the bounds', [0.005, 0.0050001, 1800, 1801].map((seconds) => request({ ...chat, seconds }))],
    [
      'values that are no use',
      [Number.NaN, -1, Number.POSITIVE_INFINITY].map((seconds) =>
        request({ ...streamed, seconds, tokens: { input: seconds, output: seconds } }),
      ),
    ],
    ['tokens in no time', [request({ ...chat, seconds: 1, parkedSeconds: 1, tokens: { input: 0, output: 5 } })]],
    ['statuses that no one knows', [599, 600, 999].map((status) => request({ ...chat, status }))],
    ['a slot that leaves', [request(streamed), request({ ...streamed, slot: two }), { kind: 'keep', slots: [two] }]],
    [
      'a slot that leaves and comes back at the end',
      [request(streamed), request({ ...streamed, slot: two }), { kind: 'keep', slots: [two] }, request(chat)],
    ],
    [
      'a request that ends after its slot has left',
      [request(streamed), { kind: 'keep', slots: [] }, request(streamed), { kind: 'keep', slots: [] }],
    ],
  ])('%s', async (_what, events) => {
    const { own, library } = await textsOf(events);
    expect(own.slice(0, library.length)).toBe(library);
    expect(own.slice(library.length).trim()).toBe('');
  });

  test('hundreds of events in random order', async () => {
    const { chance, int, next, pick } = createRandom(4711);
    const events = Array.from({ length: 600 }, (): Event => {
      if (chance(0.02)) return { kind: 'keep', slots: [one, two].filter(() => chance(0.5)) };
      const measured = { input: int(0, 100_000), output: int(0, 100) };
      return request({
        slot: pick([one, two, undefined]),
        route: pick(['/v1/chat/completions', '/v1/embeddings']),
        status: pick([200, 404, 499, 503, 700]),
        seconds: next() * 10 ** pick([-3, 0, 3]),
        parkedSeconds: pick([undefined, next() * 100]),
        ttftSeconds: pick([undefined, next()]),
        tokens: pick([undefined, measured, { input: Number.NaN, output: -5 }]),
      });
    });
    const { own, library } = await textsOf(events);
    expect(own.slice(0, library.length)).toBe(library);
  });
});
