import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ApiError } from '../../../src/api/server/answer.ts';
import type { Authorize } from '../../../src/auth/check-token.ts';
import type { Route } from '../../../src/api/server/define-route.ts';
import { buildServer, type ServerDeps } from '../../../src/api/server/server.ts';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { publish } from '../../gateway/support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf } from '../../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const checked: string[] = [];
let decide: Authorize = () => ({ ok: true });
const authorize: Authorize = (access, req) => {
  checked.push(`${access} ${req.url ?? ''}`);
  return decide(access, req);
};

const ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/thing/:name', access: 'read', summary: '', tag: '', handler: (request) => ({ params: request.params }) },
  { method: 'PUT', path: '/api/thing/:name', access: 'all', summary: '', tag: '', handler: (request) => ({ body: request.body }) },
  {
    method: 'GET',
    path: '/api/fails',
    access: 'open',
    summary: '',
    tag: '',
    handler() {
      throw new Error('secret detail');
    },
  },
  {
    method: 'GET',
    path: '/api/refuses',
    access: 'open',
    summary: '',
    tag: '',
    handler() {
      throw new ApiError('slot.conflict', 'Read the slot again', { param: 'If-Match', headers: { 'x-extra': '1' } });
    },
  },
];

let upstream: FakeUpstream;
let gateway: GatewayFixture;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ authorize, routes: ROUTES, settings: { SVC_BODY_LIMIT: '2Mi', SVC_HEADER_LIMIT: '4Ki' } });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});
beforeEach(() => {
  checked.length = 0;
  decide = () => ({ ok: true });
});

const get = (path: string, method = 'GET', headers = {}): ReturnType<typeof post> =>
  post(gateway.port, path, '', { method, headers: { 'content-length': '0', ...headers } });

/** Never called: the compiler checks that a server cannot be built without the checks of the site and of the access. */
export function forgetChecks({ site, authorize, ...rest }: ServerDeps): void {
  // @ts-expect-error -- the check of the access is missing
  buildServer({ ...rest, site });
  // @ts-expect-error -- the check of the site is missing
  buildServer({ ...rest, authorize });
}

describe('the access check', () => {
  const refusals = [
    ['auth.required', 401],
    ['auth.invalid', 401],
    ['auth.scope', 403],
  ] as const;

  test.each(refusals)(
    'refuses with %s with and without the framework, at once or later, and nothing reaches an upstream',
    async (code, status) => {
      const before = upstream.seen.length;
      for (const late of [false, true]) {
        const decision = { ok: false, code, message: 'Send a token' } as const;
        decide = () => (late ? Promise.resolve(decision) : decision);
        for (const path of [CHAT, '/rerank', `${CHAT}?x=1`]) {
          const reply = await post(gateway.port, path, chatBody());
          expect([reply.status, errorOf(reply.text).code]).toEqual([status, code]);
          if (status === 401) expect(reply.headers['www-authenticate']).toBe('Bearer');
        }
        for (const path of ['/api/thing/a', '/v1/models']) expect((await get(path)).status).toBe(status);
      }
      expect(upstream.seen.length).toBe(before);
    },
  );

  test.each([
    '/v1/%63hat/completions',
    '/v1/chat%2Fcompletions',
    '//v1/chat/completions',
    '/v1//chat/completions',
    '/v1/chat/completions/',
    '/V1/chat/completions',
    '/v1/./chat/completions',
    '/v1/chat/completions#x',
    'http://x/v1/chat/completions',
    '/v1/chat/completions;x',
  ])('cannot be bypassed with "%s"', async (path) => {
    decide = () => ({ ok: false, code: 'auth.required', message: 'Send a token' });
    const before = upstream.seen.length;
    const reply = await post(gateway.port, path, chatBody());
    expect([400, 401, 404]).toContain(reply.status);
    errorOf(reply.text);
    expect(upstream.seen.length).toBe(before);
  });

  test('runs once per request with the class of the route', async () => {
    await post(gateway.port, CHAT, chatBody());
    await post(gateway.port, '/v1/%63hat/completions', chatBody());
    await get('/v1/models');
    await get('/api/thing/a');
    expect(checked).toEqual([`v1 ${CHAT}`, 'v1 /v1/%63hat/completions', 'any /v1/models', 'read /api/thing/a']);
  });

  test('that fails lets nothing through', async () => {
    const before = upstream.seen.length;
    for (const broken of [
      () => Promise.reject(new Error('store gone')),
      (): never => {
        throw new Error('store gone');
      },
    ]) {
      decide = broken;
      for (const reply of [await post(gateway.port, CHAT, chatBody()), await get('/api/thing/a')]) {
        expect([reply.status, errorOf(reply.text).code]).toEqual([500, 'server.internal']);
        expect(reply.text).not.toContain('store gone');
      }
    }
    expect(upstream.seen.length).toBe(before);
    expect(gateway.faults.splice(0).length).toBe(4);
  });
});

describe('a path that does not exist', () => {
  test.each([
    ['/chat/completions', 'There is no path "/chat/completions": did you mean "/v1/chat/completions": end the base URL with "/v1"? '],
    ['/v1/chat/completion?a=b', 'There is no path "/v1/chat/completion?a=b": did you mean "/v1/chat/completions"? '],
    ['/health', 'There is no path "/health": did you mean "/api/health/system"? '],
  ])('is answered with the path that was meant: %s', async (path, message) => {
    const reply = await post(gateway.port, path, '{}');
    expect([reply.status, errorOf(reply.text)]).toMatchObject([
      404,
      { code: 'route.not_found', message: expect.stringContaining(message) },
    ]);
  });

  test('of Ollama is answered with a string, as its clients read errors', async () => {
    const reply = await post(gateway.port, '/api/chat', '{}');
    expect([reply.status, JSON.parse(reply.text)]).toEqual([
      404,
      { error: expect.stringContaining('did you mean "/v1/chat/completions"') },
    ]);
  });
});

test('an error on the wire has the reason phrase of HTTP', async () => {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.end('GET / HTTP/9\r\n\r\n');
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
});

describe('an error', () => {
  test.each([
    ['an unknown path', () => get('/v1/nothing'), 404, 'route.not_found'],
    ['a path with bad encoding', () => get('/api/%zz'), 400, 'request.invalid'],
    ['no body', () => get(CHAT, 'POST'), 400, 'request.invalid'],
    ['a body that is not JSON', () => post(gateway.port, CHAT, 'model=x'), 400, 'request.invalid'],
    ['a body that ends too early', () => post(gateway.port, CHAT, '{"model":"primary"'), 400, 'request.invalid'],
    ['a model that is not a string', () => post(gateway.port, CHAT, '{"model":1}'), 400, 'request.invalid'],
    ['an unknown model', () => post(gateway.port, CHAT, '{"model":"zzz"}'), 404, 'model.not_found'],
    ['an unknown model in the list', () => get('/v1/models/zzz'), 404, 'model.not_found'],
    [
      'a form',
      () => post(gateway.port, CHAT, 'a=b', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
      415,
      'request.media_type',
    ],
    [
      'a form to the framework',
      () => post(gateway.port, '/api/thing/a', 'a=b', { method: 'PUT', headers: { 'content-type': 'text/plain' } }),
      415,
      'request.media_type',
    ],
    ['bad JSON to the framework', () => post(gateway.port, '/api/thing/a', '{', { method: 'PUT' }), 400, 'request.invalid'],
    [
      'a large body to the framework',
      () => post(gateway.port, '/api/thing/a', 'x'.repeat(3_000_000), { method: 'PUT' }),
      413,
      'request.too_large',
    ],
    ['an error of a handler', () => get('/api/refuses'), 409, 'slot.conflict'],
  ])('of %s has the documented shape', async (_what, send, status, code) => {
    const reply = await send();
    expect([reply.status, errorOf(reply.text)]).toMatchObject([status, { code, origin: 'gateway' }]);
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
    expect(reply.headers['x-request-id']).toBeTruthy();
  });

  test('of a handler has its headers and tells the client not to retry', async () => {
    expect((await get('/api/refuses')).headers).toMatchObject({ 'x-extra': '1', 'x-should-retry': 'false' });
  });

  test('of the service itself reveals no internals', async () => {
    const reply = await get('/api/fails');
    expect([reply.status, errorOf(reply.text).code]).toEqual([500, 'server.internal']);
    expect(reply.text).not.toContain('secret');
    expect(gateway.faults.splice(0)).toMatchObject([{ message: 'secret detail' }]);
  });

  test('for a wrong method lists the allowed ones', async () => {
    for (const [path, method, allow] of [
      [CHAT, 'GET', 'OPTIONS, POST'],
      [CHAT, 'DELETE', 'OPTIONS, POST'],
      ['/api/thing/a', 'DELETE', 'GET, HEAD, OPTIONS, PUT'],
      ['/v1/models/a/b', 'POST', 'GET, HEAD, OPTIONS'],
    ] as const) {
      const reply = await get(path, method);
      expect([reply.status, reply.headers.allow, errorOf(reply.text).code]).toEqual([405, allow, 'route.method']);
    }
  });

  test.each([
    ['with a length', { 'content-length': 3_000_000 }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ])('for a body over the limit %s reaches the client while it is still sending', async (_what, headers) => {
    const req = begin(gateway.port, CHAT, headers);
    req.write(`{"model":"primary","x":"${'x'.repeat(2_500_000)}`);
    const res = await responseOf(req);
    const parts: Buffer[] = [];
    for await (const part of res) parts.push(part);
    expect([res.statusCode, errorOf(Buffer.concat(parts).toString())]).toMatchObject([413, { code: 'request.too_large' }]);
    req.destroy();
  });
});

describe('every request', () => {
  test('is reported once, by its route and never by its raw path', async () => {
    const [reports, before] = [gateway.reported, gateway.finished.length];
    reports.length = 0;
    await post(gateway.port, CHAT, chatBody());
    await post(gateway.port, '/v1/%63hat/completions', chatBody());
    expect(gateway.finished.slice(before).map(({ route, status }) => [route, status])).toEqual([
      [CHAT, 200],
      [CHAT, 200],
    ]);
    await get('/api/thing/secret-name');
    await get('/v1/models/dir/a');
    await get('/secret-path');
    await post(gateway.port, CHAT, 'a=b', { headers: { 'content-type': 'text/plain' } });
    await until(() => reports.length >= 4);
    expect(reports.map(({ route, status }) => [route, status])).toEqual([
      ['/api/thing/:name', 200],
      ['/v1/models/*', 404],
      ['none', 404],
      [CHAT, 415],
    ]);
  });
});
