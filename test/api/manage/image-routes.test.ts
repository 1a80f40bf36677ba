/** Images by URL: as a browser fetches them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createImageRoutes, parseRange } from '../../../src/api/manage/image-routes.ts';
import { createImageCache } from '../../../src/files/image-cache.ts';
import { startGateway, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';
import { pngOf } from '../../support/comfyui/png.ts';

const PNG = pngOf(64, 64, 9);
let dir = '';
let gateway: GatewayFixture | undefined;
let url = '';

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-image-routes-'));
  const cache = createImageCache({ directory: path.join(dir, 'images'), limitBytes: 2 ** 20, maxAgeMs: 1e6, wallNow: Date.now });
  gateway = await startGateway({ routes: createImageRoutes(cache) });
  let sent = false;
  const kept = await cache.keep(async () => (sent ? undefined : ((sent = true), PNG)));
  if (!kept.ok) throw new Error(kept.problem);
  url = `${gateway.url}/api/images/cache/${kept.id}.png`;
});
afterEach(async () => {
  await gateway?.close();
  await rm(dir, { recursive: true });
});

const get = async (headers: Readonly<Record<string, string>> = {}, method = 'GET') => fetch(url, { method, headers });
const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

test('an image can be kept for ever by the client, and by nobody between', async () => {
  const answer = await get();
  expect([answer.status, answer.headers.get('content-type'), answer.headers.get('content-length')]).toEqual([
    200,
    'image/png',
    String(PNG.length),
  ]);
  expect(answer.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await bytesOf(answer)).toEqual(PNG);
});

test('HEAD has the same headers and no body', async () => {
  const answer = await get({}, 'HEAD');
  expect([answer.status, answer.headers.get('content-length'), (await bytesOf(answer)).length]).toEqual([200, String(PNG.length), 0]);
});

test('a client that has the image is told so', async () => {
  const etag = (await get()).headers.get('etag') ?? '';
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await get({ 'if-none-match': known });
    expect([answer.status, (await bytesOf(answer)).length]).toEqual([304, 0]);
  }
  expect((await get({ 'if-none-match': '"other"' })).status).toBe(200);
});

describe('ranges', () => {
  test.each([
    ['bytes=0-9', 0, 10],
    ['bytes=10-', 10, undefined],
    ['bytes=-5', -5, undefined],
    ['bytes=3-99999999', 3, undefined],
  ] as const)('%s', async (range, from, to) => {
    const answer = await get({ range });
    const part = PNG.subarray(from, to);
    expect(answer.status).toBe(206);
    expect(answer.headers.get('content-range')).toMatch(new RegExp(`^bytes \\d+-\\d+/${PNG.length}$`));
    expect(answer.headers.get('content-length')).toBe(String(part.length));
    expect(await bytesOf(answer)).toEqual(part);
  });

  test('one beyond the image cannot be satisfied', async () => {
    const answer = await get({ range: 'bytes=99999999-' });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([416, `bytes */${PNG.length}`]);
    expect(await answer.json()).toMatchObject({ error: { code: 'request.range', origin: 'gateway' } });
  });

  test.each(['bytes=5-2', 'bytes=-', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=a-b', ''])('"%s" is ignored', (header) => {
    expect(parseRange(header, 100)).toBeUndefined();
  });

  test.each([
    ['bytes=0-0', { from: 0, to: 0 }],
    ['bytes=99-', { from: 99, to: 99 }],
    ['bytes=-1000', { from: 0, to: 99 }],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=100-', 'unsatisfiable'],
  ] as const)('"%s" of 100 bytes', (header, range) => expect(parseRange(header, 100)).toEqual(range));
});

test.each(['x.png', '..%2f..%2fetc%2fpasswd', '11111111-2222-4333-8444-555555555555.png', '11111111-2222-4333-8444-555555555555'])(
  '"%s" is not found, in a sentence that says what to do',
  async (name) => {
    const answer = await fetch(`${gateway?.url}/api/images/cache/${name}`);
    expect(answer.status).toBe(404);
    const message = 'The image does not exist, or the cache no longer has it: draw it again';
    expect(await answer.json()).toMatchObject({ error: { code: 'image.not_found', message } });
  },
);
