import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, type Dispatcher } from 'undici';
import { publish } from '../../gateway/support/board-fixture.ts';
import { chatBody } from '../../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

/** So many that some are of each process. */
const CLIENTS = 24;
const LARGE_BYTES = 16 * 1024 * 1024;
let upstream: FakeUpstream;
let gateway: GatewayFixture;
/** Requests that the HTTP server of the controller has read. */
let readByNode = 0;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ processes: 4 });
  gateway.api.server.on('request', () => (readByNode += 1));
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

const HEADERS = { 'content-type': 'application/json' };
const CHAT = { method: 'POST', path: '/v1/chat/completions', headers: HEADERS } as const;

async function statusOf(client: Client, request: Dispatcher.RequestOptions): Promise<number> {
  const answer = await client.request(request);
  await answer.body.dump();
  return answer.statusCode;
}

test.each<[string, () => Dispatcher.RequestOptions, number]>([
  ['a route of the API', () => ({ method: 'GET', path: '/v1/models' }), 200],
  ['a path that does not exist', () => ({ method: 'GET', path: '/nothing' }), 404],
  ['a body in chunks', () => ({ ...CHAT, body: Readable.from([chatBody()]) }), 200],
  ['an image, with an answer of the gateway', () => ({ ...CHAT, path: '/v1/images/generations', body: '{"prompt":"a"}' }), 404],
  ['a header in another encoding', () => ({ ...CHAT, headers: { ...HEADERS, 'x-name': 'é' }, body: chatBody() }), 200],
])('a connection of any process goes on after %s', async (_, odd, expected) => {
  const clients = Array.from({ length: CLIENTS }, () => new Client(gateway.url));
  let connections = 0;
  for (const client of clients) client.on('connect', () => (connections += 1));
  const all = await Promise.all(
    clients.map(async (client) => [
      await statusOf(client, { ...CHAT, body: chatBody() }),
      await statusOf(client, odd()),
      await statusOf(client, { ...CHAT, body: chatBody() }),
    ]),
  );
  expect(new Set(all.map((statuses) => statuses.join(' ')))).toEqual(new Set([`200 ${expected} 200`]));
  expect(connections).toBe(CLIENTS);
  await Promise.all(clients.map(async (client) => await client.close()));
});

test('a body that is large for a worker reaches the upstream, byte by byte', async () => {
  const body = chatBody({ padding: 'z'.repeat(LARGE_BYTES) });
  const clients = Array.from({ length: 6 }, () => new Client(gateway.url));
  const before = upstream.seen.length;
  for (const client of clients) expect(await statusOf(client, { ...CHAT, body })).toBe(200);
  expect(upstream.seen.slice(before).map((request) => request.body.toString() === body)).toEqual(clients.map(() => true));
  await Promise.all(clients.map(async (client) => await client.close()));
});

test('requests of all processes are reported, each once', async () => {
  gateway.finished.length = 0;
  const clients = Array.from({ length: CLIENTS }, () => new Client(gateway.url));
  const before = readByNode;
  await Promise.all(clients.map(async (client) => await statusOf(client, { ...CHAT, body: chatBody() })));
  await until(() => gateway.finished.length >= CLIENTS);
  expect(gateway.finished.map(({ slot, route, status }) => `${slot} ${route} ${status}`)).toEqual(
    clients.map(() => 'primary /v1/chat/completions 200'),
  );
  expect(readByNode).toBe(before);
  await Promise.all(clients.map(async (client) => await client.close()));
});
