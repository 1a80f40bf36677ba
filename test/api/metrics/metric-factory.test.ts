import { Registry } from 'prom-client';
import { expect, test } from '@jest/globals';
import { createMetricFactory } from '../../../src/api/metrics/metric-factory.ts';

test('other work has its turn between two metrics of a text, which has all of them', async () => {
  const done: string[] = [];
  const factory = createMetricFactory(new Registry(), () => async () => void done.push('turn'));
  const gauge = (name: 'svc_inflight' | 'svc_parked', value: number): void =>
    factory.gauge(name, (add) => {
      done.push(name);
      add({ slot: 'primary' }, value);
    });
  factory.ownCounter('svc_requests_total').series({ slot: 'primary' }).increment();
  gauge('svc_inflight', 3);
  gauge('svc_parked', 4);
  const lines = (await factory.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines).toEqual(['svc_requests_total{slot="primary"} 1', 'svc_inflight{slot="primary"} 3', 'svc_parked{slot="primary"} 4']);
  expect(done).toEqual(['turn', 'svc_inflight', 'turn', 'svc_parked', 'turn']);
});
