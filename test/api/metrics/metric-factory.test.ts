import { expect, test } from '@jest/globals';
import { createMetricFactory, writeRead } from '../../../src/api/metrics/metric-factory.ts';

test('other work has its turn between two metrics of a text, which has all of them', async () => {
  const done: string[] = [];
  const factory = createMetricFactory(() => async () => {
    await Promise.resolve();
    done.push('turn');
  });
  const gauge = (name: 'svc_inflight' | 'svc_parked', value: number): void =>
    factory.gauge(name, (add) => {
      done.push(name);
      add({ slot: 'primary' }, value);
    });
  factory.counter('svc_requests_total').series({ slot: 'primary' }).increment();
  gauge('svc_inflight', 3);
  gauge('svc_parked', 4);
  const lines = (await factory.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines).toEqual(['svc_requests_total{slot="primary"} 1', 'svc_inflight{slot="primary"} 3', 'svc_parked{slot="primary"} 4']);
  expect(done).toEqual(['turn', 'svc_inflight', 'turn', 'svc_parked', 'turn']);
});

test('gauges are written as Prometheus reads them, odd values of labels included', () => {
  const samples = [
    [{}, 0],
    [{ slot: 'primary', state: 'ready' }, 1],
    [{ slot: 'a "quoted" \\ one', state: 'of\ntwo lines' }, -1.5],
    [{ slot: 'tiny', state: '' }, 1e-9],
    [{ slot: 'huge', state: 'x' }, Number.POSITIVE_INFINITY],
    [{ slot: 'low', state: 'x' }, Number.NEGATIVE_INFINITY],
  ] as const;
  const addAll = (add: Parameters<Parameters<typeof writeRead>[1]>[0]): void => {
    for (const [labels, value] of samples) add(labels, value);
  };
  const text = writeRead({ name: 'svc_test', help: 'What "it" says, with a \\ in it', type: 'gauge' }, addAll, 'prometheus');
  expect(text.split('\n')).toEqual([
    '# HELP svc_test What "it" says, with a \\\\ in it',
    '# TYPE svc_test gauge',
    'svc_test 0',
    'svc_test{slot="primary",state="ready"} 1',
    'svc_test{slot="a \\"quoted\\" \\\\ one",state="of\\ntwo lines"} -1.5',
    'svc_test{slot="tiny",state=""} 1e-9',
    'svc_test{slot="huge",state="x"} +Inf',
    'svc_test{slot="low",state="x"} -Inf',
  ]);
});
