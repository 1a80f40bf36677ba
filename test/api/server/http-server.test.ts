import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { createHttpServer } from '../../../src/api/server/http-server.ts';
import type { Route } from '../../../src/api/server/define-route.ts';
import { publish } from '../../gateway/support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post, raw } from '../../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const common = { access: 'all', summary: '', tag: '', handler: (request) => ({ body: request.body }) } satisfies Partial<Route>;
const ROUTES: readonly Route[] = [
  { method: 'PUT', path: '/api/thing/:name', ...common },
  { method: 'DELETE', path: '/api/thing/:name', ...common },
  { method: 'POST', path: '/api/text', consumes: ['application/toml'], ...common },
];

let upstream: FakeUpstream;
let gateway: GatewayFixture;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ routes: ROUTES, settings: { SVC_BODY_LIMIT: '2Mi', SVC_HEADER_LIMIT: '4Ki' } });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

const get = (path: string, method = 'GET'): ReturnType<typeof post> =>
  post(gateway.port, path, '', { method, headers: { 'content-length': '0' } });

describe('an HTTP request', () => {
  const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4);

  test.each([
    ['a protocol other than HTTP', 'hello\r\n\r\n', 400, 'request.invalid'],
    [
      'a header too large',
      `GET /v1/models HTTP/1.1\r\nhost: localhost\r\na: ${'x'.repeat(5000)}\r\n\r\n`,
      431,
      'request.headers_too_large',
    ],
    ['a URL too large', `GET /${'x'.repeat(9000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 431, 'request.headers_too_large'],
    ['two lengths', `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na`, 400, 'request.invalid'],
    [
      'length and chunks',
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'request.invalid',
    ],
    ['a header with a NUL', 'GET /v1/models HTTP/1.1\r\nhost: localhost\r\na: \0\r\n\r\n', 400, 'request.invalid'],
    [
      'a bad chunk',
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`,
      400,
      'request.invalid',
    ],
    ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nhost: localhost\r\n\r\n', 405, 'route.method'],
    ['no host', `POST ${CHAT} HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`, 400, 'request.invalid'],
    ['no host for the framework', 'GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'request.invalid'],
    [
      'two hosts',
      `POST ${CHAT} HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`,
      400,
      'request.invalid',
    ],
    [
      'an unknown expectation',
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\nexpect: magic\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
      400,
      'request.invalid',
    ],
  ])('with %s gets an error of the documented shape', async (_what, text, status, code) => {
    const answer = await raw(gateway.port, text);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(errorOf(bodyOf(answer)).code).toBe(code);
  });

  test('of version 1.0 is answered, and the connection ends', async () => {
    const body = chatBody({ stream: true });
    const answer = await raw(
      gateway.port,
      `POST ${CHAT} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(answer.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('gets "100 Continue" before it sends its body', async () => {
    for (const [path, method, body, status] of [
      [CHAT, 'POST', chatBody(), 200],
      ['/api/thing/a', 'PUT', '{}', 200],
    ] as const) {
      const socket = connect(gateway.port, '127.0.0.1');
      let text = '';
      socket.on('data', (part: Buffer) => (text += part.toString()));
      socket.write(
        `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n`,
      );
      await until(() => text.includes('\r\n\r\n'));
      expect(text).toBe('HTTP/1.1 100 Continue\r\n\r\n');
      socket.write(body);
      await until(() => socket.closed);
      expect(text).toContain(`HTTP/1.1 ${status} `);
    }
  });

  test('gets no "100 Continue" for a body that is too large', async () => {
    const answer = await raw(
      gateway.port,
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 99999999\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('with a body and without a content type is refused, because a page of another site can send one', async () => {
    for (const [method, path] of [
      ['POST', CHAT],
      ['PUT', '/api/thing/a'],
    ]) {
      const answer = await raw(
        gateway.port,
        `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 7\r\n\r\n{"a":1}`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 415 /);
      expect(errorOf(bodyOf(answer)).code).toBe('request.media_type');
    }
  });

  test('may have another content type only where a route accepts it', async () => {
    const toml = { headers: { 'content-type': 'application/toml; charset=utf-8' } };
    expect((await post(gateway.port, '/api/text', 'a = 1', toml)).text).toBe('{"body":"a = 1"}');
    expect((await post(gateway.port, '/api/thing/a', 'a = 1', { method: 'PUT', ...toml })).status).toBe(415);
    const merge = { method: 'PUT', headers: { 'content-type': 'application/merge-patch+json' } };
    expect((await post(gateway.port, '/api/thing/a', '{"a":1}', merge)).text).toBe('{"body":{"a":1}}');
  });

  test('may be HEAD or OPTIONS', async () => {
    const head = await get('/v1/models', 'HEAD');
    expect([head.status, head.text]).toEqual([200, '']);
    const options = await get(CHAT, 'OPTIONS');
    expect([options.status, options.headers.allow]).toEqual([204, 'OPTIONS, POST']);
    expect((await get('/nothing', 'OPTIONS')).status).toBe(404);
    expect(await raw(gateway.port, 'OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 204 /);
  });

  test('with an empty body counts as one without a body, whatever its type', async () => {
    expect((await get('/api/thing/a', 'DELETE')).text).toBe('{}');
  });

  test('is kept apart from others that arrive in the same packet', async () => {
    const one = (id: string, last: string): string =>
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-request-id: ${id}\r\n${last}content-length: ${chatBody().length}\r\n\r\n${chatBody()}`;
    const answer = await raw(gateway.port, one('a', '') + one('b', '') + one('c', 'connection: close\r\n'));
    expect([...answer.matchAll(/x-request-id: (\w+)/g)].map((found) => found[1])).toEqual(['a', 'b', 'c']);
  });
});

test('a client may not take longer for its headers than for its request, nor for ever', () => {
  const limits = { SVC_HEADER_LIMIT: 16_384, SVC_MAX_CONNECTIONS: 10, SVC_PARK_TIMEOUT: 1000 };
  const upgrades = { serves: () => false, enter: () => undefined };
  const { server } = createHttpServer(limits, { listener: () => undefined, fastListener: () => undefined, serves: () => false, upgrades });
  // Zero means that Node waits for ever.
  expect(server.headersTimeout).toBeGreaterThan(0);
  expect(server.headersTimeout).toBeLessThanOrEqual(60_000);
  expect(server.requestTimeout).toBeGreaterThan(server.headersTimeout);
});
