import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { publish } from '../gateway/support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post, type Reply } from '../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';

const CHAT_UI = 'http://chat.test:3001';
let upstream: FakeUpstream;
let gateway: GatewayFixture;
let closed: GatewayFixture;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ settings: { SVC_CORS_ORIGINS: `${CHAT_UI}/, HTTPS://Other.test:443 app://obsidian.md` } });
  closed = await startGateway();
  for (const { board } of [gateway, closed]) publish(board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterAll(async () => {
  await gateway.close();
  await closed.close();
  await upstream.kill();
});

function preflight(path: string, headers: Readonly<Record<string, string>>, port = gateway.port): Promise<Reply> {
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type,x-stainless-os' };
  return post(port, path, '', { method: 'OPTIONS', headers: { ...asked, ...headers } });
}

const cors = (reply: Reply) => Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'));

describe('a preflight', () => {
  test.each(['https://other.test', 'app://obsidian.md'])('of "%s" is allowed, however the setting writes it', async (origin) => {
    const reply = await preflight(CHAT, { origin });
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([204, origin]);
  });

  test('of an allowed origin gets the methods of the path and the headers it asked for', async () => {
    const reply = await preflight(CHAT, { origin: CHAT_UI });
    expect(reply.status).toBe(204);
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': CHAT_UI,
      'access-control-allow-headers': 'authorization,content-type,x-stainless-os',
      vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
    });
    expect(reply.headers['access-control-allow-methods']).toContain('POST');
    expect(reply.headers['access-control-allow-credentials']).toBeUndefined();
  });

  test.each([
    ['of another origin', CHAT, { origin: 'http://evil.test' }],
    ['for a route of the management API', '/v1/models/x', { origin: 'null' }],
  ])('%s is refused and allows nothing', async (_what, path, headers) => {
    const reply = await preflight(path, headers);
    expect([reply.status, errorOf(reply.text).code, cors(reply)]).toEqual([403, 'request.cross_site', []]);
  });

  test('is refused for everyone unless SVC_CORS_ORIGINS lists an origin', async () => {
    expect((await preflight(CHAT, { origin: CHAT_UI }, closed.port)).status).toBe(403);
  });

  test('cannot break the answer with what it asks for', async () => {
    const reply = await preflight(CHAT, { origin: CHAT_UI, 'access-control-request-headers': 'a: b' });
    expect(reply.headers['access-control-allow-headers']).toBeUndefined();
  });
});

describe('OPTIONS of a program', () => {
  test('lists the methods and allows no origin', async () => {
    const reply = await post(gateway.port, CHAT, '', { method: 'OPTIONS' });
    expect([reply.status, reply.headers.allow, cors(reply)]).toEqual([204, 'OPTIONS, POST', []]);
  });
});

describe('an answer to an allowed origin', () => {
  const origin = { origin: CHAT_UI, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };

  test.each([
    ['a chat', () => post(gateway.port, CHAT, chatBody(), { headers: origin }), 200],
    ['a stream', () => post(gateway.port, CHAT, chatBody({ stream: true }), { headers: origin }), 200],
    ['the list of models', () => post(gateway.port, '/v1/models', '', { method: 'GET', headers: origin }), 200],
    ['an error of the gateway', () => post(gateway.port, CHAT, chatBody({ model: 'zzz' }), { headers: origin }), 404],
    ['an error of another route', () => post(gateway.port, '/v1/models/zzz', '', { method: 'GET', headers: origin }), 404],
  ])('may be read by its pages: %s', async (_what, send, status) => {
    const reply = await send();
    expect(reply.status).toBe(status);
    expect(reply.headers['access-control-allow-origin']).toBe(CHAT_UI);
    expect(reply.headers['access-control-expose-headers']).toContain('x-request-id');
    expect(reply.headers.vary).toContain('Origin');
    expect(reply.headers['access-control-allow-credentials']).toBeUndefined();
  });
});

describe('an answer to a program', () => {
  test('names no origin, and says that it would differ for one', async () => {
    const reply = await post(gateway.port, '/v1/models', '', { method: 'GET' });
    expect([reply.status, cors(reply), reply.headers.vary]).toEqual([200, [], 'Origin']);
    expect((await post(closed.port, '/v1/models', '', { method: 'GET' })).headers.vary).toBeUndefined();
  });
});
