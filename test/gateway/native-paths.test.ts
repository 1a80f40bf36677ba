/** Paths of model servers that are no part of OpenAI's API. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { parseUpstreamUrl } from '../../src/gateway/route/decide/inference-paths.ts';
import { DISABLED, PARK, publish, slotName } from './support/board-fixture.ts';
import { errorOf, post } from './support/client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

let gateway: GatewayFixture;
let upstream: FakeUpstream;
let answer: Answer;

beforeAll(async () => {
  upstream = await startUpstream({ answer: (request, res, socket) => answer(request, res, socket) });
  gateway = await startGateway({ dialects: true, provider: { nativePaths: { '/v1/tokenize': '/tokenize', '/props': '/props' } } });
});
beforeEach(() => {
  expect.hasAssertions();
  answer = (_request, res) => sendJson(res, 200, { ok: true });
  const targets = [{ workload: 'w', port: upstream.port }];
  publish(
    gateway.board,
    { name: 'primary', targets },
    { name: 'embed', capabilities: ['embedding'], targets },
    { name: 'off', admission: DISABLED },
  );
});
afterEach(() => {
  expect(gateway.faults).toEqual([]);
  expect(gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0 });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

const last = () => upstream.seen.at(-1);

test('a path by name goes to the slot of the model, whatever it serves, with the name that its server knows', async () => {
  for (const model of ['primary', 'embed-model']) {
    const body = `{"content":"Hi", "model":"${model}"}`;
    expect((await post(gateway.port, '/v1/tokenize', body)).text).toBe('{"ok":true}');
    expect([last()?.method, last()?.url, last()?.body.toString()]).toEqual(['POST', '/tokenize', body]);
  }
  expect((await post(gateway.port, '/v1/tokenize', '{"content":"Hi"}')).status).toBe(200);
});

test('a server without the path is not asked, and nobody waits for it', async () => {
  publish(gateway.board, { name: 'primary', admission: PARK });
  for (const path of ['/v1/detokenize', '/infill', '/v1/score', '/v1/classify']) {
    const reply = await post(gateway.port, path, '{"model":"primary"}');
    expect([reply.status, errorOf(reply.text)]).toMatchObject([
      400,
      { code: 'model.unsupported', message: expect.stringContaining(`has a server without "${path}": no slot has it`) },
    ]);
  }
  expect((await post(gateway.port, '/v1/tokenize', '{"model":"off:x"}')).status).toBe(404);
});

test('properties are asked for with GET', async () => {
  const reply = await fetch(`${gateway.url}/props?model=embed`);
  expect([reply.status, await reply.json(), last()?.method, last()?.url]).toEqual([200, { ok: true }, 'GET', '/props']);
  expect((await fetch(`${gateway.url}/props?model=none`)).status).toBe(404);
  expect((await fetch(`${gateway.url}/props?model=off`)).status).toBe(503);
  expect((await post(gateway.port, '/props', '{}')).status).toBe(405);
});

test('everything else is reached by the name of the slot, in both directions as it is', async () => {
  answer = (request, res) => {
    res.writeHead(418, { 'content-type': 'text/html', 'x-own': '1', 'set-cookie': 'a=b' });
    res.end(`<p>${request.method} ${request.url} ${request.body.toString()}</p>`);
  };
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    const headers = {
      'content-type': 'text/plain',
      authorization: 'Bearer svc_secret',
      cookie: 'a=b',
      connection: 'x-hop',
      'x-hop': '1',
      'x-own': '2',
    };
    const reply = await post(gateway.port, '/upstream/primary/slots/0?action=a%2Fb', method === 'GET' ? '' : 'é', { method, headers });
    expect([reply.status, reply.text]).toEqual([418, `<p>${method} /slots/0?action=a%2Fb ${method === 'GET' ? '' : 'é'}</p>`]);
    expect(reply.headers).toMatchObject({ 'content-security-policy': 'sandbox', 'x-own': '1', 'content-type': 'text/html' });
    expect(reply.headers['set-cookie']).toBeUndefined();
    const seen = last()?.headers ?? {};
    expect([seen['x-own'], seen['x-hop'], seen.cookie, seen.authorization]).toEqual(['2', undefined, undefined, undefined]);
  }
  const large = Buffer.alloc(3_000_000, 7);
  await post(gateway.port, '/upstream/primary/', large, { headers: { 'content-type': 'application/octet-stream' } });
  expect(last()?.body.equals(large)).toBe(true);
});

test('such a request waits for its slot, and its answer is streamed', async () => {
  publish(gateway.board, { name: 'primary', admission: PARK });
  const waiting = fetch(`${gateway.url}/upstream/primary/metrics`);
  await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 1);
  let release = (): void => undefined;
  answer = (_request, res) => {
    res.write('one');
    release = () => res.end('two');
  };
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  const reader = (await waiting).body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? '').toString()).toBe('one');
  release();
  expect(Buffer.from((await reader?.read())?.value ?? '').toString()).toBe('two');
  expect((await reader?.read())?.done).toBe(true);
});

test.each([
  '/upstream/primary/../x',
  '/upstream/primary/%2e%2E/x',
  '/upstream/primary/a/..%2fb',
  '/upstream/primary//host/x',
  '/upstream/primary/a%5c..%5Cb',
  '/upstream/primary/%zz',
  `/upstream/primary/${'x'.repeat(5000)}`,
])('a path that leads elsewhere is refused: %s', async (path) => {
  const before = upstream.seen.length;
  const reply = await post(gateway.port, path, '', { method: 'GET' });
  expect([400, 404]).toContain(reply.status);
  expect(upstream.seen.length).toBe(before);
  expect(parseUpstreamUrl(path)).toBeUndefined();
});

test('an unknown slot is refused, and names of others are not taken for it', async () => {
  expect((await fetch(`${gateway.url}/upstream/none/health`)).status).toBe(404);
  expect(parseUpstreamUrl('http://evil/upstream/primary/x')).toBeUndefined();
  expect(parseUpstreamUrl('/upstream/primary/..a/b..?x=/../')).toEqual({ slot: 'primary', target: '/..a/b..?x=/../' });
});
