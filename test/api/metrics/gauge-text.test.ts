import { expect, test } from '@jest/globals';
import { Gauge, Registry } from 'prom-client';
import { writeGauge } from '../../../src/api/metrics/metric-factory.ts';

test('gauges are written as the library of Prometheus writes them, odd values of labels included', async () => {
  const samples = [
    [{}, 0],
    [{ slot: 'primary', state: 'ready' }, 1],
    [{ slot: 'a "quoted" \\ one', state: 'of\ntwo lines' }, -1.5],
    [{ slot: 'tiny', state: '' }, 1e-9],
    [{ slot: 'huge', state: 'x' }, Number.POSITIVE_INFINITY],
    [{ slot: 'low', state: 'x' }, Number.NEGATIVE_INFINITY],
  ] as const;
  const facts = { name: 'svc_test', help: 'What "it" says, with a \\ in it' };
  const registry = new Registry();
  const gauge = new Gauge({ ...facts, labelNames: ['slot', 'state'], registers: [registry] });
  const text = writeGauge(facts, (add) => {
    for (const [labels, value] of samples) {
      gauge.set(labels, value);
      add(labels, value);
    }
  });
  expect(text).toBe(await registry.metrics());
});
