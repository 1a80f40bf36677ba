import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { METRICS } from '../../../src/api/metrics/metric-table.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { CONDITION_TYPES, type Condition } from '../../../src/schema/status/slot-status.ts';
import { boardWith, CLUSTER, img, start } from './metrics-fixture.ts';

const HAS_PROMTOOL =
  spawnSync('promtool', ['--version']).error === undefined || process.env['SVC_TEST_REQUIRE']?.includes('promtool') === true;

describe('createMetrics()', () => {
  test('shows the state (one-hot) and the traffic of the slots on the board', async () => {
    const { metrics } = start('warming');
    const text = await metrics.text();
    expect(text).toContain('svc_slot_state{slot="primary",state="warming"} 1');
    expect(text.match(/svc_slot_state\{.*\} 0/g)).toHaveLength(7);
    expect(text).toContain('svc_inflight{slot="primary"} 3');
    expect(text).toContain('svc_parked{slot="primary"} 4');
    expect(text).toContain('svc_request_progress_ratio{slot="primary"} 0.25');
    expect(text).toContain('svc_build_info{version="1",runtime="in-memory"} 1');
  });

  test('counts requests by slot, route and code, with time to first token and tokens', async () => {
    const { metrics } = start();
    const request = { slot: img, route: '/v1/chat/completions', status: 200, seconds: 0.02 };
    metrics.requestFinished({ ...request, ttftSeconds: 0.015, tokens: { input: 10, output: 100 } });
    metrics.requestFinished(request);
    metrics.requestFinished({ ...request, slot: undefined, status: 404 });
    const text = await metrics.text();
    expect(text).toContain('svc_requests_total{slot="primary",route="/v1/chat/completions",code="200"} 2');
    expect(text).toContain('svc_requests_total{slot="",route="/v1/chat/completions",code="404"} 1');
    expect(text).toContain('svc_request_seconds_count{slot="primary",route="/v1/chat/completions"} 2');
    expect(text).toContain('gen_ai_server_time_to_first_token_seconds_bucket{le="0.02",slot="primary",route="/v1/chat/completions"} 1');
    expect(text).toContain('gen_ai_client_token_usage_sum{slot="primary",gen_ai_token_type="output"} 100');
  });

  test('says whether callers are counted together, where a server is set', async () => {
    expect(await start('ready').metrics.text()).not.toMatch(/^svc_limits_shared/m);
    let isShared = true;
    const { metrics } = start('ready', undefined, { limitsAreShared: () => isShared });
    expect(await metrics.text()).toMatch(/^svc_limits_shared 1$/m);
    isShared = false;
    expect(await metrics.text()).toMatch(/^svc_limits_shared 0$/m);
  });

  test('says whether the repository that declares the configuration is in force, once it is known', async () => {
    expect(await start('ready').metrics.text()).not.toMatch(/^svc_source_synced/m);
    let isSynced: boolean | undefined;
    const { metrics } = start('ready', undefined, { sourceIsSynced: () => isSynced });
    expect(await metrics.text()).not.toMatch(/^svc_source_synced/m);
    for (const [found, value] of [
      [true, 1],
      [false, 0],
    ] as const) {
      isSynced = found;
      expect(await metrics.text()).toContain(`\nsvc_source_synced ${value}\n`);
    }
  });

  test('ignores invalid token counts of an upstream', async () => {
    const { metrics } = start();
    const request = { slot: img, route: '/v1/completions', status: 200, seconds: 1 };
    metrics.requestFinished({ ...request, tokens: { input: Number.NaN, output: -5 } });
    expect(await metrics.text()).toContain('svc_requests_total{slot="primary",route="/v1/completions",code="200"} 1');
  });

  test('counts what callers report with more fields than the labels of a series', async () => {
    const { metrics } = start();
    const request = { verb: 'watch', resource: 'leases', code: '200', seconds: 0.1, namespace: 'svc', name: 'svc-controller' };
    metrics.cluster.requestEnded(request);
    const action = { action: 'apply', result: 'ok', slot: img };
    metrics.reconcile.actionFinished(action);
    const text = await metrics.text();
    expect(text).toContain('svc_kube_requests_total{verb="watch",resource="leases",code="200"} 1');
    expect(text).toContain('svc_actions_total{action="apply",result="ok"} 1');
  });

  test('counts passes, actions, transitions, drift and pulled bytes', async () => {
    const { metrics } = start();
    const entry = { seq: 1, at: 0, slot: img, message: '' };
    metrics.reconcile.passFinished({ seconds: 0.002, result: 'ok' });
    metrics.reconcile.actionFinished({ action: 'apply', result: 'ok' });
    metrics.reconcile.bytesPulled({ what: 'model', bytes: 1000 });
    metrics.reconcile.write({
      entries: [{ ...entry, kind: 'drift' }],
      moves: [{ slot: entry.slot, from: 'warming', to: 'ready' }],
    });
    const text = await metrics.text();
    expect(text).toContain('svc_reconcile_passes_total{result="ok"} 1');
    expect(text).toContain('svc_reconcile_pass_seconds_count 1');
    expect(text).toContain('svc_actions_total{action="apply",result="ok"} 1');
    expect(text).toContain('svc_slot_transitions_total{slot="primary",from="warming",to="ready"} 1');
    expect(text).toContain('svc_drift_total{slot="primary"} 1');
    expect(text).toContain('svc_pull_bytes_total{what="model"} 1000');
  });

  test('shows the conditions of slots, also of those whose text has never been valid', async () => {
    const { board, metrics } = start();
    const condition = (type: Condition['type'], status: Condition['status']): Condition => ({
      type,
      status,
      reason: 'Crashed',
      message: '',
      lastTransitionAt: 1,
      observedGeneration: 1,
    });
    const view = boardWith('starting', [condition('Ready', 'Unknown'), condition('Stalled', 'True')]);
    board.publish({ ...view, refused: new Map([[SlotName.parse('img'), []]]) });
    const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('svc_slot_condition{'));
    expect(lines).toEqual(
      expect.arrayContaining([
        'svc_slot_condition{slot="primary",type="Ready",status="True"} 0',
        'svc_slot_condition{slot="primary",type="Ready",status="False"} 0',
        'svc_slot_condition{slot="primary",type="Ready",status="Unknown"} 1',
        'svc_slot_condition{slot="primary",type="Stalled",status="True"} 1',
        'svc_slot_condition{slot="img",type="SpecValid",status="False"} 1',
        'svc_slot_condition{slot="img",type="Stalled",status="True"} 1',
      ]),
    );
    expect(lines.filter((line) => line.endsWith(' 1'))).toHaveLength(5);
  });

  test('measures queueing and generation of requests, and ignores what has no token counts', async () => {
    const { metrics } = start();
    const request = { slot: img, route: '/v1/chat/completions', status: 200 };
    // 101 tokens, the first after 2 s of 1 s in the queue, then 100 in 5 s.
    metrics.requestFinished({ ...request, seconds: 7, parkedSeconds: 1, ttftSeconds: 2, tokens: { input: 1, output: 101 } });
    metrics.requestFinished({ ...request, seconds: 3, tokens: { input: 1, output: 30 } });
    metrics.requestFinished({ ...request, seconds: 3, ttftSeconds: 1 });
    metrics.requestFinished({ ...request, seconds: 3, ttftSeconds: 3, tokens: { input: 1, output: 0 } });
    const text = await metrics.text();
    const route = 'slot="primary",route="/v1/chat/completions"';
    expect(text).toContain(`gen_ai_server_time_per_output_token_seconds_sum{${route}} 0.05`);
    expect(text).toContain(`gen_ai_server_time_per_output_token_seconds_count{${route}} 1`);
    expect(text).toContain(`gen_ai_server_time_to_first_token_seconds_count{${route}} 3`);
    expect(text).toContain('svc_parked_seconds_sum{slot="primary"} 1');
    expect(text).toContain('svc_parked_seconds_count{slot="primary"} 1');
    expect(text).toContain('svc_output_tokens_per_second_count{slot="primary"} 2');
    expect(text).toContain(`svc_output_tokens_per_second_sum{slot="primary"} ${101 / 6 + 10}`);
    expect(text).toContain(`gen_ai_server_time_to_first_token_seconds_bucket{le="300",${route}} 3`);
    expect(text).toContain(`svc_request_seconds_bucket{le="1800",${route}} 4`);
    expect(metrics.totalsOf(img)).toEqual({ outputTokens: 131, firstTokens: 3, firstTokenSeconds: 6 });
    expect(metrics.totalsOf(SlotName.parse('embed'))).toBeUndefined();
  });

  test('shows drift from the beginning, so that its first occurrence is an increase', async () => {
    const { metrics } = start();
    expect(await metrics.text()).toContain('svc_drift_total{slot="primary"} 0');
  });

  test('shows how long turns of the event loop take: a blocked event loop is seen in the next scrape and not in the one after', async () => {
    const { metrics } = start();
    const max = async (): Promise<number> => Number(/^nodejs_eventloop_delay_max_seconds (\S+)$/m.exec(await metrics.text())?.[1]);
    await metrics.text();
    await sleep(50);
    const until = performance.now() + 400;
    while (performance.now() < until);
    await sleep(50);
    const blocked = await max();
    expect(blocked).toBeGreaterThan(0.3);
    await sleep(50);
    expect(await max()).toBeLessThan(blocked);
    expect(await metrics.text()).toMatch(/^nodejs_eventloop_utilization_ratio [01]/m);
  });

  test('has exactly the metrics of the table, with their types and labels', async () => {
    const { board, metrics } = start('ready', CLUSTER, { limitsAreShared: () => true, sourceIsSynced: () => true });
    const conditions = CONDITION_TYPES.map((type): Condition => ({
      type,
      status: 'True',
      reason: 'Crashed',
      message: '',
      lastTransitionAt: 1,
      observedGeneration: 1,
    }));
    board.publish(boardWith('ready', conditions, { price: { currency: 'EUR', outputTokens: 1 } }));
    const guessed = { tokens: { input: 0, output: 1, isEstimated: true as const }, media: { images: 1, audioSeconds: 1 } };
    metrics.requestFinished({ slot: img, route: '/v1/a', status: 500, seconds: 1, ...guessed });
    metrics.requestFinished({
      slot: img,
      route: '/v1/a',
      status: 200,
      seconds: 2,
      parkedSeconds: 0,
      ttftSeconds: 1,
      tokens: { input: 1, output: 2 },
      moves: [{ from: SlotName.parse('primary'), to: img, reason: 'stalled' }],
    });
    metrics.reconcile.passFinished({ seconds: 1, result: 'ok' });
    metrics.reconcile.actionFinished({ action: 'apply', result: 'done' });
    for (const what of ['loads', 'evictions'] as const) metrics.callers?.write({ caused: [{ slot: img, caller: 'token:1', what }] });
    metrics.reconcile.bytesPulled({ what: 'image', bytes: 1 });
    metrics.reconcile.write({ entries: [], moves: [{ slot: img, from: 'ready', to: 'idle' }] });
    metrics.workers.workerStarted(1);
    metrics.workers.workerReported(1, { connections: 1, cpuSeconds: 1, memoryBytes: 1 }, 1);
    metrics.cluster.requestEnded({ verb: 'get', resource: 'pods', code: '200', seconds: 0.1 });
    metrics.cluster.copyStarted({ resource: 'pods', ageMs: () => 0 }, new AbortController().signal);
    metrics.cluster.copyListed({ resource: 'pods', cause: 'start' });
    metrics.cluster.copyWatchEnded({ resource: 'pods', result: 'ended' });
    metrics.cluster.publicationEnded({ what: 'status', result: 'done' });
    const text = await metrics.text();
    // Without promtool this says nothing, and `SVC_TEST_REQUIRE=promtool` makes that a failure.
    if (HAS_PROMTOOL) {
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
      expect([status, `${stdout}${stderr}`]).toEqual([0, '']);
    }
    const types = Object.fromEntries([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    expect(types).toEqual(Object.fromEntries(Object.entries(METRICS).map(([name, { type }]) => [name, type])));
    for (const [name, { labels, type }] of Object.entries(METRICS)) {
      const line = new RegExp(`^${name}${type === 'histogram' ? '_count' : ''}(?:\\{(.*)\\})? `, 'm').exec(text);
      const found = [...(line?.[1] ?? '').matchAll(/(\w+)=/g)].map(([, label]) => label);
      expect([name, line !== null, new Set(found)]).toEqual([name, true, new Set(labels)]);
    }
  });

  test('has a bounded number of series whatever statuses a model server sends', async () => {
    const { metrics } = start();
    for (let status = 600; status < 1000; status += 1) metrics.requestFinished({ slot: img, route: '/v1/a', status, seconds: 1 });
    expect((await metrics.text()).match(/^svc_requests_total\{/gm)).toHaveLength(1);
  });

  test('drops every series of a slot that leaves the board', async () => {
    const { board, metrics } = start();
    const request = { slot: img, route: '/v1/completions', status: 200, seconds: 1, ttftSeconds: 1 };
    metrics.requestFinished({ ...request, tokens: { input: 1, output: 1 } });
    metrics.reconcile.write({ entries: [], moves: [{ slot: img, from: 'ready', to: 'unloading' }] });
    board.publish(boardWith());
    expect(await metrics.text()).not.toContain('slot="primary"');
    // A request that was still in progress, and what was noted of the removal.
    metrics.requestFinished({ ...request, parkedSeconds: 1, tokens: { input: 1, output: 2 } });
    metrics.reconcile.write({ entries: [], moves: [{ slot: img, from: 'unloading', to: 'offline' }] });
    expect(await metrics.text()).toContain('svc_requests_total{slot="primary",route="/v1/completions",code="200"} 1');
    board.publish(boardWith());
    expect(await metrics.text()).not.toContain('slot="primary"');
  });
});
