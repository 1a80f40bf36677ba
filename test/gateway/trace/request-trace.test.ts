/** What upstreams get of the trace of a request, and what is noted of it. */
import { expect, test } from '@jest/globals';
import { createTraceIds, createTracer } from '../../../src/gateway/trace/request-trace.ts';
import { slotName } from '../support/board-fixture.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const ALL = { isParentBased: true, ratio: 1 };
const NONE = { isParentBased: true, ratio: 0 };
const SLOT = slotName('primary');

const start = (sampling: typeof ALL, traceparent?: string) => {
  const trace = createTracer(sampling)?.({ traceparent });
  if (trace === undefined) throw new Error('Nothing is traced');
  return trace;
};
const headers = (traceparent: string) => `TraceParent: ${traceparent}\r\ntracestate: vendor=1\r\nx-other: 2\r\n`;

test('an attempt has a span of its own, whose parent is the one of the client', () => {
  const trace = start(NONE, `00-${TRACE}-${SPAN}-01`);
  trace.begin('attempt', SLOT, { host: '127.0.0.1', port: 1 });
  const first = trace.linesFor(headers(`00-${TRACE}-${SPAN}-01`));
  trace.end(true);
  trace.begin('wait', SLOT);
  trace.begin('attempt', SLOT, { host: '127.0.0.1', port: 2 });
  const second = trace.linesFor('');
  const finished = trace.finish('POST', 'm'.repeat(1000));
  expect(finished).toMatchObject({ traceId: TRACE, parentId: SPAN, method: 'POST', model: 'm'.repeat(200) });
  expect(finished?.phases.map(({ kind, isLost }) => [kind, isLost])).toEqual([
    ['attempt', true],
    ['wait', false],
    ['attempt', false],
  ]);
  const [one, wait, other] = finished?.phases ?? [];
  expect(first).toBe(`tracestate: vendor=1\r\nx-other: 2\r\ntraceparent: 00-${TRACE}-${one?.spanId}-01\r\n`);
  expect(second).toBe(`traceparent: 00-${TRACE}-${other?.spanId}-01\r\n`);
  expect(new Set([SPAN, finished?.spanId, one?.spanId, wait?.spanId, other?.spanId]).size).toBe(5);
  expect(one?.untilMs).toBeLessThanOrEqual(wait?.fromMs ?? 0);
  expect(wait?.untilMs).toBeLessThanOrEqual(other?.fromMs ?? 0);
});

test('a client that does not trace its request is followed, and nothing is noted', () => {
  const trace = start(ALL, `00-${TRACE}-${SPAN}-00`);
  trace.begin('attempt', SLOT);
  expect(trace.linesFor(headers(`00-${TRACE}-${SPAN}-00`))).toBe(
    `tracestate: vendor=1\r\nx-other: 2\r\ntraceparent: 00-${TRACE}-${SPAN}-00\r\n`,
  );
  expect(trace.finish()).toBeUndefined();
});

test.each([
  ['10 KB', `00-${TRACE.repeat(320)}-${SPAN}-01`],
  ['zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['nonsense', 'x'],
  ['two', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
])('a malformed header is not passed on, nor its state: a new trace begins (%s)', (_what, traceparent) => {
  const trace = start(ALL, traceparent);
  trace.begin('attempt', SLOT);
  const lines = trace.linesFor(headers(traceparent));
  const finished = trace.finish();
  expect(lines).toBe(`x-other: 2\r\ntraceparent: 00-${finished?.traceId}-${finished?.phases[0]?.spanId}-01\r\n`);
  expect(finished?.traceId).not.toBe(TRACE);
  expect(finished?.parentId).toBeUndefined();
});

test('upstreams are told that nothing is traced, so that they do not begin traces', () => {
  const trace = start(NONE);
  expect(trace.linesFor('a: b\r\n')).toMatch(/^a: b\r\ntraceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-00\r\n$/);
  expect(trace.finish()).toBeUndefined();
  expect(createTracer(undefined)).toBeUndefined();
});

test('ids do not repeat', () => {
  const newId = createTraceIds();
  const ids = Array.from({ length: 10_000 }, (_, index) => newId(index % 2 === 0 ? 8 : 16));
  expect(new Set(ids).size).toBe(10_000);
  expect(ids.slice(0, 2).map(({ length }) => length)).toEqual([16, 32]);
});
