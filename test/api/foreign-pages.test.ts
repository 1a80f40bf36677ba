/** Walks the whole table of routes: what pages of other sites can send is refused everywhere, except on the routes that are listed here. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Route } from '../../src/api/server/define-route.ts';
import { createV1Routes } from '../../src/api/v1/v1-routes.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post, raw, type Reply } from '../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';
import { startWorld, type World } from './manage/world.ts';

/** These change and reveal nothing. */
const ANY_SITE = ['GET /api/health/system', 'GET /api/health/ready'];

let upstream: FakeUpstream;
let gateway: GatewayFixture;
let world: World;
let table: readonly { readonly route: Route; readonly port: number; readonly label: string }[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway();
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  world = await startWorld();
  const v1 = createV1Routes({ board: gateway.board, gateway: gateway.gateway, startedAt: 0 });
  const row = (port: number) => (route: Route) => ({ route, port, label: `${route.method} ${route.path}` });
  table = [...v1.map(row(gateway.port)), ...world.routes.map(row(Number(new URL(world.url).port)))];
});
afterAll(async () => {
  await gateway.close();
  await world.close();
  await upstream.kill();
});

const pathOf = ({ path }: Route): string => path.replace(':name', 'primary').replace('*', 'primary');

async function send({ route, port }: (typeof table)[number], headers: Readonly<Record<string, string>>, body = ''): Promise<Reply> {
  return post(port, pathOf(route), body, { method: route.method, headers: { 'content-type': 'application/json', ...headers } });
}

/** Returns the routes whose answer is not a refusal with this status and code. */
async function answering(
  status: number,
  code: string,
  sendTo: (row: (typeof table)[number]) => Promise<Reply>,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const row of table) {
    const reply = await sendTo(row);
    if (reply.status !== status || (row.route.method !== 'GET' && errorOf(reply.text).code !== code)) found.push(row.label);
  }
  return found;
}

describe('every route', () => {
  test('is in the table that this test walks', () => {
    expect(table.length).toBeGreaterThan(35);
    expect(
      table
        .filter(({ route }) => route.anySite)
        .map(({ label }) => label)
        .sort(),
    ).toEqual(ANY_SITE.toSorted());
  });

  test.each([
    ['a foreign Origin', { origin: 'http://evil.test' }],
    ['an opaque Origin', { origin: 'null' }],
    ['the Origin of another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['Sec-Fetch-Site: cross-site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' }],
    ['Sec-Fetch-Site: same-site', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
    ['a name after DNS rebinding', { host: 'rebind.test:8080' }],
    ['a name after DNS rebinding, with the Origin of that page', { host: 'rebind.test', origin: 'http://rebind.test' }],
  ])('refuses %s, except those that change and reveal nothing', async (_what, headers) => {
    const served = await answering(403, 'request.cross_site', (row) => send(row, headers));
    expect(served.toSorted()).toEqual(ANY_SITE.toSorted());
  });

  test('refuses HEAD as it refuses GET', async () => {
    for (const { route, port, label } of table.filter((row) => row.route.method === 'GET' && row.route.anySite !== true)) {
      const reply = await post(port, pathOf(route), '', { method: 'HEAD', headers: { host: 'rebind.test' } });
      expect([label, reply.status]).toEqual([label, 403]);
    }
  });

  /** Forms of other sites are refused by their `Origin`, as all other requests of their pages. */
  test('that can have a body refuses one without a media type, and one that a form can send unless it takes forms', async () => {
    const bodies = table.filter(({ route }) => route.method !== 'GET');
    const port = (row: (typeof table)[number]) => row.port;
    for (const row of bodies) {
      const form = row.route.multipart === true ? 'application/json' : 'multipart/form-data; boundary=x';
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', form]) {
        expect([row.label, type, (await send(row, { 'content-type': type }, '{}')).status]).toEqual([row.label, type, 415]);
      }
      const request = `${row.route.method} ${pathOf(row.route)} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`;
      const answer = await raw(port(row), request);
      expect([row.label, answer.split(' ', 2)[1]]).toEqual([row.label, '415']);
    }
  });

  test('answers programs and its own pages', async () => {
    for (const headers of [
      {},
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      {
        'sec-fetch-site': 'same-origin',
        'sec-fetch-mode': 'cors',
        'sec-fetch-dest': 'empty',
        host: 'localhost:8080',
        origin: 'http://localhost:8080',
      },
      { host: 'api.example.com:6443', 'sec-svc-client': 'svcctl' },
    ]) {
      for (const row of table) {
        // Streams do not end.
        if (row.route.path === '/api/events') continue;
        const type = row.route.multipart === true ? { 'content-type': 'multipart/form-data; boundary=x' } : {};
        expect([row.label, 403, 415]).not.toContain((await send(row, { ...headers, ...type })).status);
      }
    }
  });
});

describe('a refused request', () => {
  test('reaches no upstream and changes no slot', async () => {
    const before = upstream.seen.length;
    const texts = new Map(world.slots.texts);
    const apply = JSON.stringify({ slots: [{ name: 'primary', spec: { backend: 'cpu', model: { default: 'demo-fox' } } }] });
    for (const headers of [{ origin: 'http://evil.test' }, { host: 'rebind.test' }]) {
      expect((await post(gateway.port, CHAT, chatBody(), { headers })).status).toBe(403);
      expect((await post(Number(new URL(world.url).port), '/api/apply', apply, { headers })).status).toBe(403);
    }
    expect(upstream.seen.length).toBe(before);
    expect(world.slots.texts).toEqual(texts);
  });

  test('says what to do', async () => {
    const message = async (path: string, headers: Readonly<Record<string, string>>) =>
      errorOf((await post(gateway.port, path, chatBody(), { headers })).text).message;
    expect(await message(CHAT, { host: 'gpu.example.com:8080' })).toContain('"gpu.example.com"');
    expect(await message(CHAT, { host: 'gpu.example.com:8080' })).toContain('"SVC_ALLOWED_HOSTS"');
    expect(await message(CHAT, { origin: 'https://chat.example.com' })).toContain('"https://chat.example.com"');
    expect(await message(CHAT, { origin: 'https://chat.example.com' })).toContain('"SVC_CORS_ORIGINS"');
  });

  test('is refused again when the same name was accepted for another reason before', async () => {
    const headers = { host: 'api.example.com:6443' };
    expect((await post(gateway.port, CHAT, chatBody(), { headers: { ...headers, 'sec-svc-client': 'svcctl' } })).status).toBe(200);
    expect((await post(gateway.port, CHAT, chatBody(), { headers })).status).toBe(403);
  });
});

describe('the form of a request', () => {
  const ask = async (head: string): Promise<string> =>
    (await raw(gateway.port, `${head}\r\nconnection: close\r\n\r\n`)).split('\r\n', 1)[0] ?? '';

  test.each([
    ['no Host', 'GET /v1/models HTTP/1.1', '400'],
    ['two Hosts', 'GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.test', '400'],
    ['an empty Host', 'GET /v1/models HTTP/1.1\r\nhost:', '400'],
    ['a Host with user information', 'GET /v1/models HTTP/1.1\r\nhost: a@localhost', '400'],
    ['an address without brackets', 'GET /v1/models HTTP/1.1\r\nhost: ::1', '400'],
    ['an absolute target', 'GET http://127.0.0.1/v1/models HTTP/1.1\r\nhost: 127.0.0.1', '200'],
    ['an absolute target with a foreign name', 'GET http://evil.test/v1/models HTTP/1.1\r\nhost: evil.test', '403'],
    ['an absolute target with another name than Host', 'GET http://evil.test/v1/models HTTP/1.1\r\nhost: 127.0.0.1', '400'],
    ['HTTP/1.0 without Host, which no browser sends', 'GET /v1/models HTTP/1.0', '200'],
    ['HTTP/1.0 with a foreign Host', 'GET /v1/models HTTP/1.0\r\nhost: evil.test', '403'],
    ['HTTP/1.0 with two Hosts', 'GET /v1/models HTTP/1.0\r\nhost: 127.0.0.1\r\nhost: 127.0.0.1', '400'],
    ['HTTP/1.0 with a foreign target and no Host', 'GET http://evil.test/v1/models HTTP/1.0', '403'],
  ])('%s', async (_what, head, status) => {
    expect((await ask(head)).split(' ')[1]).toBe(status);
  });

  test.each([
    ['two Hosts', 'host: 127.0.0.1\r\nhost: 127.0.0.1', '400'],
    ['a foreign Host', 'host: evil.test', '403'],
    ['two Origins', 'host: 127.0.0.1\r\norigin: http://127.0.0.1\r\norigin: http://evil.test', '403'],
  ])('of an inference request: %s', async (_what, lines, status) => {
    const head = `POST ${CHAT} HTTP/1.1\r\n${lines}\r\ncontent-type: application/json\r\ncontent-length: 0`;
    expect((await ask(head)).split(' ')[1]).toBe(status);
  });
});
