import { describe, expect, test } from '@jest/globals';
import { createMetricFactory } from '../../../src/api/metrics/metric-factory.ts';
import { METRICS, type MetricName } from '../../../src/api/metrics/metric-table.ts';
import { createRequestSeries } from '../../../src/api/metrics/request-series.ts';
import type { FinishedRequest } from '../../../src/gateway/exchange-deps.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';

/** In the order in which they are written. */
const NAMES = [
  'svc_requests_total',
  'svc_request_seconds',
  'svc_parked_seconds',
  'gen_ai_server_time_to_first_token_seconds',
  'gen_ai_server_time_per_output_token_seconds',
  'svc_output_tokens_per_second',
  'gen_ai_client_token_usage',
  'svc_fallback_total',
] as const;
const [one, two] = [SlotName.parse('one'), SlotName.parse('two')];
const chat = { slot: one, route: '/v1/chat/completions', status: 200, seconds: 0.02 };

/** The same metrics in the plainest way: every value is kept, and counted when the text is written. */
function createPlainSeries() {
  const values = new Map<MetricName<'counter' | 'histogram'>, Map<string, number[]>>(
    NAMES.map((name) => [name, new Map<string, number[]>()]),
  );
  const add = (name: MetricName<'counter' | 'histogram'>, labels: Readonly<Record<string, string>>, value = 1): void => {
    if (!Number.isFinite(value) || value < 0) return;
    const key = Object.entries(labels)
      .map(([label, text]) => `${label}="${text}"`)
      .join(',');
    const series = values.get(name);
    series?.set(key, [...(series.get(key) ?? []), value]);
  };
  return {
    text: () => NAMES.flatMap((name) => textOf(name, values.get(name) ?? new Map())).join('\n'),
    requestFinished({ slot: name, route, status, seconds, parkedSeconds, ttftSeconds, tokens, moves = [] }: FinishedRequest) {
      const slot = name ?? '';
      for (const { from, to, reason } of moves) add('svc_fallback_total', { slot: from, to, reason });
      add('svc_requests_total', { slot, route, code: String(Math.min(status, 599)) });
      add('svc_request_seconds', { slot, route }, seconds);
      if (parkedSeconds !== undefined) add('svc_parked_seconds', { slot }, parkedSeconds);
      if (ttftSeconds !== undefined) add('gen_ai_server_time_to_first_token_seconds', { slot, route }, ttftSeconds);
      if (tokens === undefined) return;
      const { input, output } = tokens;
      add('gen_ai_client_token_usage', { slot, gen_ai_token_type: 'input' }, input);
      add('gen_ai_client_token_usage', { slot, gen_ai_token_type: 'output' }, output);
      if (output > 0) add('svc_output_tokens_per_second', { slot }, output / (seconds - (parkedSeconds ?? 0)));
      if (output > 1 && ttftSeconds !== undefined)
        add('gen_ai_server_time_per_output_token_seconds', { slot, route }, (seconds - ttftSeconds) / (output - 1));
    },
    remove(gone: SlotName) {
      for (const series of values.values())
        for (const key of series.keys()) if (key.startsWith(`slot="${gone}"`) || key.includes(`to="${gone}"`)) series.delete(key);
    },
  };
}

function textOf(name: MetricName<'counter' | 'histogram'>, series: ReadonlyMap<string, readonly number[]>): readonly string[] {
  const { help, type, ...facts } = METRICS[name];
  const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
  const samples = [...series].flatMap(([labels, values]) => {
    if (!('buckets' in facts)) return [`${name}{${labels}} ${values.length}`];
    const below = facts.buckets.map(
      (bound) => `${name}_bucket{le="${bound}",${labels}} ${values.filter((value) => value <= bound).length}`,
    );
    const rest = [`${name}_bucket{le="+Inf",${labels}} ${values.length}`, `${name}_sum{${labels}} ${sumOf(values)}`];
    return [...below, ...rest, `${name}_count{${labels}} ${values.length}`];
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples];
}

type Event =
  | { readonly kind: 'request'; readonly request: FinishedRequest }
  | { readonly kind: 'keep'; readonly slots: readonly SlotName[] };

async function textsOf(events: readonly Event[]) {
  const plain = createPlainSeries();
  const factory = createMetricFactory();
  const own = createRequestSeries(factory);
  for (const event of events) {
    if (event.kind === 'request') {
      own.requestFinished(event.request);
      plain.requestFinished(event.request);
    } else {
      own.keepOnly(new Map(event.slots.map((slot) => [slot, true])));
      for (const slot of [one, two]) if (!event.slots.includes(slot)) plain.remove(slot);
    }
  }
  return { own: (await factory.text()).trimEnd(), plain: plain.text() };
}

const request = (finished: FinishedRequest): Event => ({ kind: 'request', request: finished });
const streamed = { ...chat, parkedSeconds: 0.3, ttftSeconds: 0.015, tokens: { input: 10, output: 100 } };
const moved = { ...chat, slot: two, moves: [{ from: one, to: two, reason: 'stalled' }] } as const;

describe('createRequestSeries() shows what counting every value shows', () => {
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
    ['moves to other slots', [request(moved), request({ ...moved, moves: [moved.moves[0], { from: two, to: one, reason: 'split' }] })]],
    ['moves to a slot that leaves', [request(moved), { kind: 'keep', slots: [one] }, request({ ...chat, slot: two }), request(moved)]],
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
    const { own, plain } = await textsOf(events);
    expect(own).toBe(plain);
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
    const { own, plain } = await textsOf(events);
    expect(own).toBe(plain);
  });
});
