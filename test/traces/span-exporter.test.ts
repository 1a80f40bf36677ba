/** A collector that fails costs spans: a bounded queue, one line of the log, and pauses between attempts. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { SpanFacts } from '../../src/traces/decide/request-spans.ts';
import { openSpanExporter } from '../../src/traces/span-exporter.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/otlp-receiver.ts';

const span = (index: number): SpanFacts => ({
  name: `span ${index}`,
  kind: 'internal',
  traceId: 'a'.repeat(32),
  spanId: index.toString(16).padStart(16, '0'),
  from: 1_800_000_000_000.25,
  until: 1_800_000_000_001.5,
  attributes: { text: 'x', number: 1.5, missing: undefined },
});
const SPANS = Array.from({ length: 100 }, (_, index) => span(index + 1));

let receiver: Awaited<ReturnType<typeof startReceiver>>;
let lines: string[];
let now = 0;
const log = {
  info: (_fields: object, line: string) => void lines.push(line),
  warn: (_fields: object, line: string) => void lines.push(line),
};
const open = async (endpoint = receiver.url, env: Readonly<Record<string, string>> = {}) => {
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = endpoint;
  process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = '200';
  return await openSpanExporter({ env: { OTEL_BSP_SCHEDULE_DELAY: '10', ...env }, version: '1.2.3', now: () => now, log });
};

beforeEach(async () => {
  receiver = await startReceiver();
  lines = [];
  now = 0;
});
afterEach(() => {
  receiver.close();
  delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  delete process.env['OTEL_EXPORTER_OTLP_TIMEOUT'];
});

test('spans arrive as they were sent', async () => {
  const exporter = await open();
  const links = [{ traceId: 'b'.repeat(32), spanId: 'c'.repeat(16) }];
  exporter.send([{ ...span(1), kind: 'client', parentId: 'd'.repeat(16), links, error: 'slot.loading' }]);
  await exporter.close();
  expect(receiver.spans).toEqual([
    {
      name: 'span 1',
      kind: 3,
      traceId: 'a'.repeat(32),
      spanId: '0000000000000001',
      parentId: 'd'.repeat(16),
      from: 1_800_000_000_000_250_000n,
      until: 1_800_000_000_001_500_000n,
      attributes: { text: 'x', number: 1.5, 'error.type': 'slot.loading' },
      links,
      status: 2,
      resource: expect.objectContaining({ 'service.name': 'svc', 'service.version': '1.2.3', 'telemetry.sdk.language': 'nodejs' }),
    },
  ]);
});

test.each(['hang', 500, 404, 503] as const)('a collector that answers with %s is left alone for a while', async (answer) => {
  receiver.answerWith(answer);
  const exporter = await open();
  exporter.send(SPANS);
  await eventually('a line was logged', () => lines.length > 0);
  expect(lines).toEqual([expect.stringContaining('Traces cannot be sent')]);
  const calls = receiver.calls();
  receiver.answerWith('ok');
  for (let round = 0; round < 10; round += 1) {
    exporter.send(SPANS);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(receiver.calls()).toBe(calls);
  now += 5000;
  exporter.send(SPANS);
  await eventually('they arrive again', () => receiver.spans.length > 0);
  await exporter.close();
  expect(lines.slice(1)).toEqual(['Traces are sent again']);
});

test('pauses grow, and the log has one line for all of them', async () => {
  receiver.answerWith(500);
  const exporter = await open();
  for (const pauseMs of [5000, 10_000, 20_000, 40_000]) {
    const calls = receiver.calls();
    exporter.send([span(1)]);
    await eventually('it was asked again', () => receiver.calls() > calls);
    await new Promise((resolve) => setTimeout(resolve, 30));
    now += pauseMs - 1;
    exporter.send([span(1)]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(receiver.calls()).toBe(calls + 1);
    now += 1;
  }
  await exporter.close();
  expect(lines).toHaveLength(1);
});

test('a page of HTML counts as an answer', async () => {
  receiver.answerWith('html');
  const exporter = await open();
  exporter.send(SPANS);
  await exporter.close();
  expect(receiver.spans).toHaveLength(100);
  expect(lines).toEqual([]);
});

test('a collector that is not there is reported once, without credentials of its address', async () => {
  const exporter = await open('http://me:hunter2@127.0.0.1:9');
  exporter.send(SPANS);
  await eventually('a line was logged', () => lines.length > 0);
  exporter.send(SPANS);
  await exporter.close();
  expect(lines).toEqual([expect.stringContaining('ECONNREFUSED')]);
  expect(lines.join('\n')).not.toContain('hunter2');
});

test('spans that a collector does not take are dropped, so that memory stays bounded', async () => {
  receiver.answerWith('hang');
  const exporter = await open(receiver.url, { OTEL_BSP_MAX_QUEUE_SIZE: '50', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10' });
  for (let round = 0; round < 1000; round += 1) exporter.send(SPANS);
  receiver.answerWith('ok');
  await exporter.close();
  // Those of the queue, and of the export under way.
  expect(receiver.spans.length).toBeLessThanOrEqual(60);
});
