/** The inference requests that people look for afterwards. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { judgeRequest, createRequestRecord } from '../../../src/api/manage/request-record.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
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

test('keeps the newest 200, the newest first', () => {
  let now = 0;
  const record = createRequestRecord(() => (now += 1));
  for (let index = 0; index < 300; index += 1) record.note({ ...FINE, status: 500, seconds: index });
  expect(record.list()).toHaveLength(200);
  expect(record.list()[0]).toMatchObject({ seconds: 299, because: 'failed', at: 300 });
});

describe('GET /api/requests', () => {
  let world: World;

  beforeEach(async () => {
    world = await startWorld({ v1: true });
  });
  afterEach(() => world.close());

  test('lists a request that no slot could answer, without what it contained', async () => {
    world.save(SlotName.parse('primary'), 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await world.idle();
    const body = JSON.stringify({ model: 'nobody', messages: [{ role: 'user', content: 'secret' }] });
    const headers = { 'content-type': 'application/json' };
    await fetch(`${world.url}/v1/chat/completions`, { method: 'POST', headers, body });
    const text = await (await fetch(`${world.url}/api/requests`)).text();
    expect(JSON.parse(text)).toMatchObject({ requests: [{ slot: null, route: '/v1/chat/completions', status: 404, because: 'failed' }] });
    expect(text).not.toContain('secret');
  });
});
