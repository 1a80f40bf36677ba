import { describe, expect, test } from '@jest/globals';
import { createMetrics } from '../../src/api/metrics.ts';
import { createBoard, EMPTY_BOARD, type BoardSlot } from '../../src/reconciler/board.ts';
import { SlotName } from '../../src/schema/names.ts';
import { parseSlot } from '../../src/schema/slot-spec.ts';
import type { SlotState } from '../../src/schema/slot-status.ts';

const img = SlotName.parse('primary');

function boardWith(state?: SlotState) {
  const parsed = parseSlot(img, { model: { default: 'a' } });
  if (!parsed.ok || state === undefined) return EMPTY_BOARD;
  const { spec } = parsed;
  const status = {
    name: img,
    state,
    conditions: [],
    observedGeneration: 1,
    provider: spec.provider,
    backend: spec.backend,
    model: spec.model.default,
    restarts: 0,
    since: 0,
  };
  const slot: BoardSlot = {
    name: img,
    capabilities: [],
    admission: { kind: 'park' },
    targets: [],
    status,
    spec,
    generation: 1,
    problems: [],
    explain: () => '',
  };
  return { ...EMPTY_BOARD, slots: new Map([[img, slot]]) };
}

function start(state: SlotState = 'ready') {
  const board = createBoard();
  const metrics = createMetrics({
    version: '1',
    runtime: 'in-memory',
    board,
    leads: () => true,
    traffic: () => ({ inFlight: 3, parked: 4 }),
  });
  board.publish(boardWith(state));
  return { board, metrics };
}

describe('createMetrics()', () => {
  test('shows the state (one-hot) and the traffic of the slots on the board', async () => {
    const { metrics } = start('warming');
    const text = await metrics.text();
    expect(text).toContain('svc_slot_state{slot="primary",state="warming"} 1');
    expect(text.match(/svc_slot_state\{.*\} 0/g)).toHaveLength(7);
    expect(text).toContain('svc_inflight{slot="primary"} 3');
    expect(text).toContain('svc_parked{slot="primary"} 4');
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

  test('ignores invalid token counts of an upstream', async () => {
    const { metrics } = start();
    const request = { slot: img, route: '/v1/completions', status: 200, seconds: 1 };
    metrics.requestFinished({ ...request, tokens: { input: Number.NaN, output: -5 } });
    expect(await metrics.text()).toContain('svc_requests_total{slot="primary",route="/v1/completions",code="200"} 1');
  });

  test('counts what callers report with more fields than the labels of a series', async () => {
    const { metrics } = start();
    const request = { verb: 'watch', resource: 'leases', namespace: 'svc', name: 'svc-controller' };
    metrics.cluster.requestSent(request);
    const action = { action: 'apply', result: 'ok', slot: img };
    metrics.reconcile.actionFinished(action);
    const text = await metrics.text();
    expect(text).toContain('svc_kube_requests_total{verb="watch",resource="leases"} 1');
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

  test('drops every series of a slot that leaves the board', async () => {
    const { board, metrics } = start();
    const request = { slot: img, route: '/v1/completions', status: 200, seconds: 1, ttftSeconds: 1 };
    metrics.requestFinished({ ...request, tokens: { input: 1, output: 1 } });
    metrics.reconcile.write({ entries: [], moves: [{ slot: img, from: 'ready', to: 'unloading' }] });
    board.publish(boardWith());
    expect(await metrics.text()).not.toContain('slot="primary"');
    metrics.requestFinished(request);
    expect(await metrics.text()).toContain('svc_requests_total{slot="primary",route="/v1/completions",code="200"} 1');
  });
});
