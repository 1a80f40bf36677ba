/** Bodies that JSON libraries and clients allow and that the service does not take. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { json } from '../../src/api/server/answer.ts';
import { defineRoute } from '../../src/api/server/define-route.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post, raw } from '../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';

let gateway: GatewayFixture;
let upstream: FakeUpstream;

const AnyJson = z.record(z.string(), z.json());

beforeAll(async () => {
  gateway = await startGateway({
    routes: [
      defineRoute('POST', '/api/anything', 'all', {
        summary: 'Takes any JSON',
        tag: 'test',
        input: z.object({ body: AnyJson }),
        answers: { 200: json('The same', AnyJson) },
        errors: [],
        handler: ({ body }) => ({ status: 200, body }),
      }),
    ],
  });
  upstream = await startUpstream();
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

const DEEP = 50_000;

test.each([
  ['arrays', `{"a":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`],
  ['objects', `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`],
])('50,000 nested %s are refused by the management API with 400', async (_what, body) => {
  const reply = await post(gateway.port, '/api/anything', body);
  expect([reply.status, errorOf(reply.text).code, gateway.faults]).toEqual([400, 'request.invalid', []]);
});

test.each([
  ['objects', `{"a":[${'{},'.repeat(150_000)}{}]}`],
  ['numbers', `{"a":[${'0,'.repeat(150_000)}0]}`],
])('150,000 %s in one array are refused by the management API with 400', async (_what, body) => {
  const reply = await post(gateway.port, '/api/anything', body);
  expect([reply.status, errorOf(reply.text)]).toEqual([400, expect.objectContaining({ message: expect.stringContaining('values') })]);
});

test('a key that changes prototypes is refused, wherever it stands', async () => {
  for (const body of ['{"__proto__":{"a":1}}', '{"a":[{"__proto__":null}]}', String.raw`{"\u005f_proto__":{"a":1}}`]) {
    const reply = await post(gateway.port, '/api/anything', body);
    expect([body, reply.status, errorOf(reply.text).code]).toEqual([body, 400, 'request.invalid']);
  }
});

test('a repeated key has its last value', async () => {
  expect((await post(gateway.port, '/api/anything', '{"a":1,"a":2}')).text).toBe('{"a":2}');
});

test.each([CHAT, '/api/anything'])('a chunk of "%s" with an endless extension ends the connection with one answer', async (path) => {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const answer = await raw(gateway.port, `${head}2;${'a'.repeat(100_000)}\r\n{}\r\n0\r\n\r\n`);
  expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map((found) => found[1])).toEqual(['400']);
});

test.each([
  ['GET', '/v1/models', 200],
  ['POST', '/api/nothing', 404],
  ['POST', '/api/anything?x=%', 415],
])('"%s %s" answers without a body that the client announces and withholds, and closes the connection', async (method, path, status) => {
  const head = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n`;
  expect(await raw(gateway.port, head)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});

test('a text in which brackets are only in strings is accepted', async () => {
  const body = JSON.stringify({ a: '['.repeat(DEEP) });
  expect(await post(gateway.port, '/api/anything', body)).toMatchObject({ status: 200, text: body });
});

test.each([
  [CHAT, 'gzip'],
  [CHAT, 'br, gzip'],
  ['/api/anything', 'gzip'],
])('a compressed body for "%s" (%s) is refused with 415', async (path, encoding) => {
  const reply = await post(gateway.port, path, gzipSync(chatBody()), { headers: { 'content-encoding': encoding } });
  expect([reply.status, errorOf(reply.text)]).toEqual([
    415,
    expect.objectContaining({ code: 'request.media_type', param: 'Content-Encoding' }),
  ]);
  expect(upstream.seen).toEqual([]);
});

test.each([CHAT, '/api/anything'])('"Content-Encoding: identity" is accepted by "%s"', async (path) => {
  expect((await post(gateway.port, path, chatBody(), { headers: { 'content-encoding': 'Identity' } })).status).toBe(200);
});
