/** Routes of captures: who may start one, where there are none, and what everybody sees while one runs. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { openCaptures } from '../../support/open-captures.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

let world: World;
let files: Awaited<ReturnType<typeof openCaptures>>;
afterEach(async () => {
  await world.close();
  await files.remove();
});

const PRIMARY = SlotName.parse('primary');
const WISH = { slot: 'primary', requests: 3, seconds: 60 };

async function send(method: string, path: string, body?: object) {
  const init = body === undefined ? { method } : { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const answer = await fetch(`${world.url}/api${path}`, init);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text.startsWith('{') ? JSON.parse(text) : text };
}

async function opened(options: WorldOptions = {}): Promise<void> {
  files = await openCaptures();
  world = await startWorld({ captures: files.open(), ...options });
  world.save(PRIMARY, '[model]\ndefault = "demo-fox"\n');
  await world.idle();
}

test('the key is in one answer, which nothing may cache, and everybody who reads the status sees that a capture runs', async () => {
  await opened();
  expect((await send('GET', '/status')).body).toMatchObject({ captures: 0 });
  const started = await send('POST', '/captures', WISH);
  expect(started.status).toBe(201);
  expect(started.headers.get('cache-control')).toBe('no-store');
  const { key, id } = started.body;
  expect(key).toMatch(/^[\w-]{43}$/);
  expect((await send('GET', '/status')).body).toMatchObject({ captures: 1 });
  const listed = await send('GET', '/captures');
  expect(listed.body).toMatchObject({ captures: [{ id, slot: 'primary', caller: null, active: true, requests: 0 }] });
  const file = await send('GET', `/captures/${id}`);
  expect(JSON.stringify([listed.body, file.body])).not.toContain(key);
  expect((await send('POST', `/captures/${id}/stop`)).body).toMatchObject({ active: false, ended_by: 'it was stopped' });
  expect((await send('GET', '/status')).body).toMatchObject({ captures: 0 });
});

describe('nothing is captured', () => {
  test.each([
    ['with SVC_CAPTURE=off', { env: { SVC_CAPTURE: 'off' } }, '"SVC_CAPTURE" is "off"'],
    ['in a cluster', { captures: undefined }, 'another replica'],
  ])('%s', async (_where, options, message) => {
    await opened(options);
    const error = { code: 'capture.unsupported', message: expect.stringContaining(message) };
    expect(await send('POST', '/captures', WISH)).toMatchObject({ status: 422, body: { error } });
    expect((await send('GET', '/captures')).body).toEqual({ captures: [] });
    expect((await send('GET', '/status')).body).toMatchObject({ captures: 0 });
    expect(await send('DELETE', '/captures/0123456789abcdef')).toMatchObject({
      status: 404,
      body: { error: { code: 'capture.not_found' } },
    });
  });

  test.each([
    [{ ...WISH, requests: 0 }],
    [{ ...WISH, requests: 1e9 }],
    [{ ...WISH, requests: 1.5 }],
    [{ ...WISH, seconds: 3601 }],
    [{ ...WISH, slot: 'a\u001B[2J' }],
    [{ ...WISH, slot: undefined, caller: 'user:\u001B[2J@example.com' }],
    [{ ...WISH, slot: undefined, caller: 'x'.repeat(301) }],
  ])('for %j', async (wish) => {
    await opened();
    expect(await send('POST', '/captures', wish)).toMatchObject({ status: 400, body: { error: { code: 'request.invalid' } } });
    expect((await send('GET', '/captures')).body).toEqual({ captures: [] });
  });

  test('and an id leads out of no directory', async () => {
    await opened();
    for (const id of ['..%2F..%2Fetc%2Fpasswd', '%2E%2E', 'a%00'])
      expect((await send('GET', `/captures/${id}`)).body).toMatchObject({ error: { code: expect.stringMatching(/not_found|invalid/) } });
  });
});
