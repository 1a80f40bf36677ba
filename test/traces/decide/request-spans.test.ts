import { describe, expect, test } from '@jest/globals';
import type { FinishedRequest } from '../../../src/gateway/exchange-deps.ts';
import type { TracedRequest, TracePhase } from '../../../src/gateway/trace/request-trace.ts';
import { requestSpans, type LoadFacts, type SpanFacts } from '../../../src/traces/decide/request-spans.ts';
import { slotName } from '../../gateway/support/board-fixture.ts';

const PRIMARY = slotName('primary');
const AT = 1_800_000_000_000;
const phase = (kind: TracePhase['kind'], fromMs: number, untilMs: number, more: Partial<TracePhase> = {}): TracePhase => ({
  kind,
  spanId: `${kind}-${fromMs}`,
  slot: kind === 'auth' ? undefined : PRIMARY,
  server: kind === 'attempt' ? { host: '127.0.0.1', port: 18_080 } : undefined,
  fromMs,
  untilMs,
  isLost: false,
  ...more,
});
const traced = (phases: readonly TracePhase[], more: Partial<TracedRequest> = {}): TracedRequest => ({
  traceId: 't',
  spanId: 'request',
  parentId: 'client',
  method: 'POST',
  model: 'gpt',
  at: AT,
  ms: 1000,
  phases,
  ...more,
});
const FINISHED: FinishedRequest = {
  slot: PRIMARY,
  requestId: 'r1',
  caller: 'token:1',
  route: '/v1/chat/completions',
  status: 200,
  seconds: 1,
};
const REFS = [{ traceId: 'loads', spanId: 'load' }];

function spansOf(finished: Partial<FinishedRequest>, trace: TracedRequest, loads: readonly LoadFacts[] = []): readonly SpanFacts[] {
  let count = 0;
  const newSpanId = (): string => `new-${(count += 1)}`;
  return requestSpans({ ...FINISHED, ...finished }, trace, { loads, slots: () => ({ model: 'qwen', provider: 'gguf' }), newSpanId });
}
const named = (spans: readonly SpanFacts[], name: string) => spans.filter((span) => span.name === name);

describe('the span of the request', () => {
  test('is that of an HTTP server', () => {
    expect(spansOf({}, traced([]))).toEqual([
      {
        name: 'POST /v1/chat/completions',
        kind: 'server',
        traceId: 't',
        spanId: 'request',
        parentId: 'client',
        from: AT,
        until: AT + 1000,
        error: undefined,
        attributes: {
          'http.request.method': 'POST',
          'http.route': '/v1/chat/completions',
          'http.response.status_code': 200,
          'svc.slot': 'primary',
          'svc.request.id': 'r1',
          'svc.caller': 'token:1',
        },
      },
    ]);
  });

  test.each([
    [{ status: 503, code: 'slot.loading' }, 'slot.loading'],
    [{ status: 500 }, '500'],
    [{ status: 404, code: 'model.not_found' }, undefined],
    [{ status: 499 }, undefined],
  ])('%j has the error %s: mistakes of clients are none of the server', (finished, error) => {
    expect(spansOf(finished, traced([]))[0]?.error).toBe(error);
  });
});

describe('attempts', () => {
  const attempts = [phase('attempt', 100, 200, { isLost: true }), phase('attempt', 300, 1000)];

  test('the last one has what the server answered, and the others are lost', () => {
    const [lost, last] = named(spansOf({ tokens: { input: 3, output: 5, cached: 2 } }, traced(attempts)), 'chat gpt');
    expect(lost).toMatchObject({ kind: 'client', parentId: 'request', from: AT + 100, until: AT + 200, error: 'upstream.lost' });
    expect(lost?.attributes['gen_ai.response.model']).toBeUndefined();
    expect(lost?.attributes['gen_ai.usage.input_tokens']).toBeUndefined();
    expect(last?.error).toBeUndefined();
    expect(last?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'gguf',
      'gen_ai.request.model': 'gpt',
      'gen_ai.response.model': 'qwen',
      'gen_ai.usage.input_tokens': 3,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 2,
      'server.address': '127.0.0.1',
      'server.port': 18_080,
    });
  });

  test('counts that were guessed are left out', () => {
    const [, last] = named(spansOf({ tokens: { input: 0, output: 5, isEstimated: true } }, traced(attempts)), 'chat gpt');
    expect(last?.attributes['gen_ai.usage.output_tokens']).toBeUndefined();
  });

  test('the first chunk is counted from the attempt, and times of the request from its access check', () => {
    const phases = [phase('auth', 0, 50), phase('attempt', 250, 1000)];
    const [, , span] = spansOf({ ttftSeconds: 0.5 }, traced(phases));
    expect(span?.attributes['gen_ai.response.time_to_first_chunk']).toBeCloseTo(0.3);
  });

  test.each([
    ['/v1/completions', 'text_completion gpt'],
    ['/v1/embeddings', 'embeddings gpt'],
    ['/v1/messages', 'chat gpt'],
    ['/rerank', 'rerank gpt'],
    ['/v1/images/edits', 'image gpt'],
  ])('%s is named "%s"', (route, name) => {
    expect(named(spansOf({ route }, traced(attempts)), name)).toHaveLength(2);
  });

  test('an error of the server is the error of its attempt', () => {
    const [, last] = named(spansOf({ status: 400, code: 'invalid_value' }, traced(attempts)), 'chat gpt');
    expect(last?.error).toBe('invalid_value');
  });
});

describe('loads', () => {
  const wait = [phase('wait', 100, 600)];
  const load = (from: number, until: number | undefined, slot = PRIMARY): LoadFacts => ({
    slot,
    from: AT + from,
    until: until === undefined ? undefined : AT + until,
    refs: REFS,
  });

  test.each([
    ['during the wait', load(200, 500), [200, 500]],
    ['before and after it', load(-5000, 900), [100, 600]],
    ['still going on', load(300, undefined), [300, 600]],
  ])('a load %s is linked, as long as the request waited for it', (_what, each, [from = 0, until = 0]) => {
    expect(named(spansOf({}, traced(wait), [each]), 'load')).toEqual([
      {
        name: 'load',
        kind: 'internal',
        traceId: 't',
        spanId: 'new-1',
        parentId: 'wait-100',
        from: AT + from,
        until: AT + until,
        attributes: { 'svc.slot': 'primary' },
        links: REFS,
      },
    ]);
  });

  test.each([
    ['before', load(-500, 99)],
    ['after', load(601, 900)],
    ['of another slot', load(200, 500, slotName('other'))],
  ])('a load %s is not', (_what, each) => {
    expect(named(spansOf({}, traced(wait), [each]), 'load')).toEqual([]);
  });

  test('a request that did not wait has none', () => {
    expect(named(spansOf({}, traced([phase('attempt', 0, 900)]), [load(0, 900)]), 'load')).toEqual([]);
  });
});
