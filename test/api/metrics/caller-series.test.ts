import { describe, expect, test } from '@jest/globals';
import { EMPTY_BOARD } from '../../../src/reconciler/board.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { boardWith, CLUSTER, img, start } from './metrics-fixture.ts';

const request = { slot: img, caller: 'token:1a2b3c4d', route: '/v1/chat/completions', status: 200, seconds: 2 };
const PRICE = { price: { currency: 'EUR', outputTokens: 1 } };

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line.startsWith('svc_usage_'));

describe('usage of callers as metrics', () => {
  test('has tokens, seconds, images and cost of each caller and slot', async () => {
    const { metrics, board } = start('ready', CLUSTER);
    board.publish(boardWith('ready', [], PRICE));
    metrics.requestFinished({ ...request, parkedSeconds: 0.5, tokens: { input: 30, cached: 10, output: 2_000_000 } });
    metrics.requestFinished({ ...request, status: 500, seconds: 0, media: { images: 2, audioSeconds: 1.5 } });
    const labels = 'caller="token:1a2b3c4d",slot="primary",currency="EUR"';
    expect(linesOf(await metrics.text())).toEqual([
      `svc_usage_requests_total{${labels}} 2`,
      `svc_usage_errors_total{${labels}} 1`,
      `svc_usage_tokens_total{${labels},kind="input"} 30`,
      `svc_usage_tokens_total{${labels},kind="cached"} 10`,
      `svc_usage_tokens_total{${labels},kind="output"} 2000000`,
      `svc_usage_seconds_total{${labels},kind="queue"} 0.5`,
      `svc_usage_seconds_total{${labels},kind="busy"} 1.5`,
      `svc_usage_seconds_total{${labels},kind="audio"} 1.5`,
      `svc_usage_images_total{${labels}} 2`,
      `svc_usage_cost_total{${labels}} 2`,
    ]);
  });

  test('has the loads and evictions that requests of each caller have caused', async () => {
    const { metrics } = start('ready', CLUSTER);
    metrics.callers?.write({});
    for (const what of ['loads', 'evictions', 'loads'] as const)
      metrics.callers?.write({ caused: [{ slot: img, caller: 'token:1a2b3c4d', what }] });
    const labels = 'caller="token:1a2b3c4d",slot="primary",currency=""';
    expect(linesOf(await metrics.text())).toEqual([`svc_usage_loads_total{${labels}} 2`, `svc_usage_evictions_total{${labels}} 1`]);
  });

  test('names 100 callers, and loses none', async () => {
    const { metrics } = start('ready', CLUSTER);
    for (let caller = 0; caller < 1000; caller += 1) metrics.requestFinished({ ...request, caller: `user:${caller}` });
    metrics.requestFinished({ ...request, caller: 'user:7' });
    const lines = linesOf(await metrics.text()).filter((line) => line.startsWith('svc_usage_requests_total'));
    expect(lines).toHaveLength(101);
    expect(lines).toEqual(expect.arrayContaining([expect.stringMatching(/user:7".* 2$/), expect.stringMatching(/caller="others".* 900$/)]));
  });

  test('has 2000 rows, and then counts callers together', async () => {
    const { metrics } = start('ready', CLUSTER);
    for (let each = 0; each < 5000; each += 1)
      metrics.requestFinished({ ...request, slot: SlotName.parse(`s${each % 50}`), caller: `user:${Math.floor(each / 50)}` });
    const lines = linesOf(await metrics.text()).filter((line) => line.startsWith('svc_usage_requests_total'));
    expect(lines).toHaveLength(2050);
    expect(lines.map((line) => Number(line.split(' ').at(-1))).reduce((sum, count) => sum + count)).toBe(5000);
  });

  test('has each series once, whatever callers are called', async () => {
    const { metrics } = start('ready', CLUSTER);
    for (const name of ['x'.repeat(300), 'x'.repeat(301), 'a"b', 'a\nb', 'a\\b'])
      metrics.requestFinished({ ...request, caller: `user:${name}` });
    const lines = linesOf(await metrics.text()).filter((line) => line.startsWith('svc_usage_requests_total'));
    expect(lines.map((line) => line.replace(/,slot.*\}/, '}'))).toEqual([
      `svc_usage_requests_total{caller="user:${'x'.repeat(195)}"} 2`,
      'svc_usage_requests_total{caller="user:a\\"b"} 1',
      'svc_usage_requests_total{caller="user:a\\nb"} 1',
      'svc_usage_requests_total{caller="user:a\\\\b"} 1',
    ]);
  });

  test('never goes back, and ends with its slot', async () => {
    const { metrics, board } = start('ready', CLUSTER);
    metrics.requestFinished(request);
    metrics.requestFinished({ ...request, slot: undefined, status: 404 });
    board.publish(boardWith('idle'));
    metrics.requestFinished(request);
    expect(await metrics.text()).toMatch(/svc_usage_requests_total\{.*primary.*\} 2/);
    board.publish(EMPTY_BOARD);
    const left = linesOf(await metrics.text());
    expect(left.join('\n')).not.toContain('primary');
    expect(left).toContain('svc_usage_requests_total{caller="token:1a2b3c4d",slot="",currency=""} 1');
  });

  test('exists only in a cluster', async () => {
    const { metrics } = start();
    metrics.requestFinished(request);
    expect(linesOf(await metrics.text())).toEqual([]);
  });
});
