/** The links of images that clients get: each is fetched as it stands, by a program without a credential. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createImageRoutes } from '../../src/api/manage/image-routes.ts';
import { allowEveryone, createTokenCheck } from '../../src/auth/check-token.ts';
import { createImageLinks } from '../../src/auth/image-links.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { openImageCache } from '../../src/wiring/create-api.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';
import { pngOf } from '../support/comfyui/png.ts';

const PNG = pngOf(64, 64, 9);
const HOUR_MS = 3_600_000;
const stopping = new AbortController();
let dir = '';
let gateway: GatewayFixture | undefined;
let nowMs = Date.now();

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-links-'));
  nowMs = Date.now();
});
afterEach(async () => {
  await gateway?.close();
  await rm(dir, { recursive: true });
});

/** Keeps an image, and returns the link that its client gets. */
async function linkWith(settings: Readonly<Record<string, string>>, origin?: string): Promise<string> {
  const parsed = parseSettings({ SVC_STATE_DIR: dir, ...settings });
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const images = openImageCache(parsed.settings, () => nowMs, stopping.signal);
  const check = parsed.settings.SVC_AUTH_ENABLED
    ? createTokenCheck(parsed.settings, { store: { current: () => new Map() }, onUse: () => undefined })
    : allowEveryone;
  gateway = await startGateway({ authorize: images.admit(check), routes: createImageRoutes(images.source) });
  let sent = false;
  const kept = await images.keep(async () => (sent ? undefined : ((sent = true), PNG)), 200, origin ?? gateway.url);
  if (!kept.ok) throw new Error(kept.problem);
  return kept.url;
}

const statusOf = async (url: string): Promise<number> => (await fetch(url)).status;

test('without authentication, a link is absolute, by what the client calls the service', async () => {
  const url = await linkWith({});
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/images\/cache\/[0-9a-f-]{36}\.png$/);
  expect(await statusOf(url)).toBe(200);
});

test('a public URL takes precedence, and a client that names no host gets a path', async () => {
  expect(await linkWith({ SVC_PUBLIC_URL: 'https://ai.example/' })).toMatch(/^https:\/\/ai\.example\/api\/images\/cache\//);
  await gateway?.close();
  expect(await linkWith({}, '')).toMatch(/^\/api\/images\/cache\//);
});

describe('with authentication, a link works for an hour without a credential', () => {
  const AUTH = { SVC_AUTH_ENABLED: '1' };

  test('as it stands, also for HEAD', async () => {
    const url = await linkWith(AUTH);
    expect(await statusOf(url)).toBe(200);
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    nowMs += HOUR_MS + 1000;
    expect(await statusOf(url)).toBe(401);
  });

  test('and nothing else does', async () => {
    const url = await linkWith(AUTH);
    const { pathname, search, origin } = new URL(url);
    const later = search.replace(/expires=\d+/, (found) => `expires=${Number(found.slice(8)) + 60}`);
    const others = [
      `${origin}${pathname}`,
      `${origin}${pathname}${later}`,
      `${origin}${pathname}${search.slice(0, -1)}${search.endsWith('A') ? 'B' : 'A'}`,
      `${origin}${pathname.replace(/[0-9a-f](?=\.png)/, (digit) => (digit === '0' ? '1' : '0'))}${search}`,
      `${origin}/v1/models/x${search}`,
      `${origin}${pathname}${search}&more=1`,
    ];
    for (const other of others) expect([other, await statusOf(other)]).toEqual([other, 401]);
  });

  test('of the same process: the key is in memory only', () => {
    const [one, other] = [createImageLinks(() => nowMs), createImageLinks(() => nowMs)];
    const id = '11111111-2222-4333-8444-555555555555';
    const url = `/api/images/cache/${id}.png${one.queryOf(id)}`;
    expect([one.isValid(url), other.isValid(url), one.isValid(undefined)]).toEqual([true, false, false]);
  });
});
