/** Bodies that JSON libraries and clients allow and that the service does not take. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { json } from '../../src/api/server/answer.ts';
import { defineRoute } from '../../src/api/server/define-route.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post } from '../gateway/support/client.ts';
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
