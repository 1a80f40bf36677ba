/** The inference requests that people look for afterwards. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { judgeRequest, createRequestRecord } from '../../../src/api/manage/request-record.ts';
import { viewRequests } from '../../../src/api/manage/decide/request-view.ts';
import { boardView } from '../../gateway/support/board-fixture.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { eventually } from '../../support/eventually.ts';
import { startWorld, type World } from './world.ts';

const FINE = { slot: undefined, route: '/v1/chat/completions', status: 200, seconds: 1 };

test.each([
  [{}, undefined],
  [{ status: 404 }, 'failed'],
  [{ status: 499 }, 'failed'],
  [{ seconds: 59 }, undefined],
  [{ seconds: 60 }, 'slow'],
  [{ seconds: 300, ttftSeconds: 2 }, undefined],
  [{ seconds: 11, ttftSeconds: 10 }, 'slow'],
  [{ status: 503, seconds: 120 }, 'failed'],
])('a request with %j is %p', (facts, judged) => {
  expect(judgeRequest({ ...FINE, ...facts })).toBe(judged);
});

test('keeps the newest 1000 of all, and the newest 200 that were not answered in time, the newest first', () => {
  let now = 0;
  const record = createRequestRecord(() => (now += 1));
  expect(record.list()).toEqual([]);
  for (let index = 0; index < 300; index += 1) record.note({ ...FINE, status: 500, seconds: index });
  expect(record.list()).toHaveLength(300);
  for (let index = 0; index < 900; index += 1) record.note(FINE);
  // The last 100 failures are among the 1000, and the 200 include them.
  expect(record.list()).toHaveLength(1100);
  expect(record.list()[0]).toMatchObject({ finished: FINE, because: undefined, at: 1201 });
  expect(record.list()[900]).toMatchObject({ finished: { seconds: 299 }, because: 'failed', at: 301 });
  for (let index = 0; index < 5000; index += 1) record.note(FINE);
  const list = record.list();
  expect(list).toHaveLength(1200);
  expect(list.slice(1000).map(({ finished }) => finished.seconds)).toEqual(Array.from({ length: 200 }, (_, index) => 299 - index));
  const numbers = list.map(({ number }) => number);
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => b - a));
});

test('keeps the object that was reported, and copies nothing', () => {
  const record = createRequestRecord(() => 1);
  const finished = { ...FINE };
  record.note(finished);
  expect(record.list()[0]?.finished).toBe(finished);
});

test('shows no prompt of an answer whose events were counted, because nobody knows it', () => {
  const view = (isEstimated?: true) => {
    const finished = { ...FINE, tokens: { input: 0, output: 13, isEstimated } };
    const ended = [{ finished, at: 1, number: 1, because: undefined }];
    const { requests } = viewRequests({ ended, running: [] }, [], { limit: 9, failed: false, slow: false });
    return requests.map(({ input_tokens: input, output_tokens: output }) => [input, output]);
  };
  expect([view(true), view()]).toEqual([[[null, 13]], [[0, 13]]]);
});

describe('GET /api/requests', () => {
  let world: World;
  let upstream: FakeUpstream;

  beforeEach(async () => {
    const caller = { key: 'token:1a2b3c4d', identity: 'laptop', scope: 'admin' } as const;
    world = await startWorld({ v1: true, authorize: () => ({ ok: true, caller }) });
    upstream = await startUpstream();
    world.board.publish(
      boardView(world.board.current().version + 1, [{ name: 'primary', targets: [{ workload: 'w', port: upstream.port }] }]),
    );
  });
  afterEach(async () => {
    await world.close();
    await upstream.kill();
  });

  async function chat(model: string, id: string): Promise<void> {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'secret' }] });
    const headers = { 'content-type': 'application/json', 'x-request-id': id };
    await (await fetch(`${world.url}/v1/chat/completions`, { method: 'POST', headers, body })).text();
  }
  const list = async (query = '') => Object(await (await fetch(`${world.url}/api/requests${query}`)).json());
  const idsOf = async (query: string): Promise<readonly string[]> =>
    Object(await list(query))
      .requests.map(Object)
      .map(idOf);
  const idOf = ({ id }: { readonly id: string }): string => id;

  test('lists every request with its caller, its slot and its code, without what it contained', async () => {
    await chat('primary', 'good');
    await chat('nobody', 'bad');
    const answer = await list();
    expect(answer.requests).toMatchObject([
      { id: 'bad', slot: null, route: '/v1/chat/completions', status: 404, code: 'model.not_found', because: 'failed' },
      { id: 'good', slot: 'primary', caller: 'token:1a2b3c4d', status: 200, code: null, because: null, why: null },
    ]);
    expect(answer.last).toBe(answer.requests[0].number);
    expect(JSON.stringify(answer)).not.toContain('secret');
  });

  test('filters by slot, caller and outcome, and limits', async () => {
    await chat('primary', 'good');
    await chat('nobody', 'bad');
    await chat('primary', 'good-2');
    expect(await idsOf('?slot=primary')).toEqual(['good-2', 'good']);
    expect(await idsOf('?failed=1')).toEqual(['bad']);
    expect(await idsOf('?failed=1&slow=1')).toEqual(['bad']);
    expect(await idsOf('?slow=1')).toEqual([]);
    expect(await idsOf('?caller=token:1a2b3c4d')).toEqual(['good-2', 'bad', 'good']);
    expect(await idsOf('?caller=user:anna')).toEqual([]);
    expect(await idsOf('?limit=1')).toEqual(['good-2']);
  });

  test('goes on after the last answer, and starts again with a number of another gateway', async () => {
    await chat('primary', 'good');
    const { last } = await list();
    expect(await list(`?after=${last}`)).toEqual({ requests: [], in_flight: [], last });
    await chat('nobody', 'bad');
    expect(await idsOf(`?after=${last}`)).toEqual(['bad']);
    expect(await idsOf(`?after=${last + 1_000_000}`)).toEqual(['bad', 'good']);
  });

  test('lists what runs, and cancels it: its client gets an error, its server stops, and the change is recorded', async () => {
    const silent = await startUpstream({ answer: () => undefined });
    const targets = [{ workload: 'silent', port: silent.port }];
    world.board.publish(boardView(world.board.current().version + 1, [{ name: 'primary', targets }]));
    const body = JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'secret' }] });
    const headers = { 'content-type': 'application/json', 'x-request-id': 'long' };
    const asked = fetch(`${world.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await eventually('the request', () => silent.seen.length === 1);
    const running = { id: 'long', slot: 'primary', caller: 'token:1a2b3c4d', route: '/v1/chat/completions', state: 'computing' };
    expect(await list('?slot=primary')).toMatchObject({ requests: [], in_flight: [running] });
    expect(await list('?slot=other')).toMatchObject({ in_flight: [] });
    const cancel = async (id: string) => await fetch(`${world.url}/api/requests/${id}`, { method: 'DELETE' });
    expect((await cancel('other')).status).toBe(404);
    expect((await cancel('long')).status).toBe(204);
    const answer = await asked;
    expect([answer.status, answer.headers.get('x-should-retry'), Object(await answer.json()).error.code]).toEqual([
      409,
      'false',
      'request.cancelled',
    ]);
    await eventually('the server is left', () => silent.left() === 1);
    expect(await list()).toMatchObject({ requests: [{ id: 'long', status: 409, code: 'request.cancelled' }], in_flight: [] });
    expect(world.agents.audited).toEqual(['"laptop" cancelled the request "long"']);
    await silent.kill();
  });

  test('tells what waits for a slot from what computes, and cancels it there', async () => {
    world.board.publish(boardView(world.board.current().version + 1, [{ name: 'primary', state: 'warming' }]));
    const asked = chat('primary', 'waits');
    const waiting = async (): Promise<boolean> => Object(await list()).in_flight[0]?.state === 'waiting';
    while (!(await waiting()));
    expect((await fetch(`${world.url}/api/requests/waits`, { method: 'DELETE' })).status).toBe(204);
    await asked;
    expect(await list()).toMatchObject({ requests: [{ id: 'waits', status: 409 }], in_flight: [] });
  });
});
