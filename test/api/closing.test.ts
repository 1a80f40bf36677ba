import { afterEach, describe, expect, test } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { PARK, publish, slotName } from '../gateway/support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf } from '../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';

let gateway: GatewayFixture;
let upstream: FakeUpstream;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await gateway.close();
  await upstream.kill();
});

async function start(settings: Record<string, string> = {}): Promise<{ finish(): void }> {
  let finish = (): void => undefined;
  upstream = await startUpstream({
    answer: (_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n');
      finish = () => void res.end('data: [DONE]\n\n');
    },
  });
  gateway = await startGateway({ settings });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  return { finish: () => finish() };
}

function dial(): Promise<{ socket: Socket; text(): string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1');
    sockets.push(socket);
    let text = '';
    socket.on('data', (part: Buffer) => (text += part.toString()));
    socket.once('error', reject);
    socket.once('connect', () => resolve({ socket, text: () => text }));
  });
}

describe('closing', () => {
  test('lets requests in flight end, accepts no new ones, and closes idle connections', async () => {
    const { finish } = await start();
    const idle = await dial();
    const body = chatBody({ stream: true });
    const req = begin(gateway.port, CHAT, { 'content-length': body.length });
    req.end(body);
    const res = await responseOf(req);
    let text = '';
    res.on('data', (part: Buffer) => (text += part.toString()));
    const closed = gateway.api.close(10_000);
    await until(() => idle.socket.closed);
    await expect(dial()).rejects.toThrow('ECONNREFUSED');
    finish();
    await closed;
    await until(() => res.complete);
    expect(text).toBe('data: 1\n\ndata: [DONE]\n\n');
  });

  test('ends the remaining requests after the grace period', async () => {
    await start();
    const body = chatBody({ stream: true });
    const req = begin(gateway.port, CHAT, { 'content-length': body.length });
    req.end(body);
    const res = await responseOf(req);
    res.resume();
    res.on('error', () => undefined);
    await gateway.api.close(50);
    await until(() => upstream.left() === 1);
    expect(gateway.gateway.load().requests).toBe(0);
  });

  test('refuses parked requests with a time to retry', async () => {
    await start();
    publish(gateway.board, { name: 'primary', admission: PARK });
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 1);
    await gateway.api.close(5_000);
    const { status, headers, text } = await reply;
    expect([status, errorOf(text).code, headers['retry-after']]).toEqual([503, 'slot.loading', expect.stringMatching(/^(1\d|20)$/)]);
  });

  test('lets parked requests wait for their slot for a limited time, then refuses them', async () => {
    await start();
    publish(gateway.board, { name: 'primary', admission: PARK }, { name: 'embed', admission: PARK });
    const replies = [post(gateway.port, CHAT, chatBody({ model: 'primary' })), post(gateway.port, CHAT, chatBody({ model: 'embed' }))];
    await until(() => gateway.gateway.load().requests === 2);
    const closed = gateway.api.close(5_000, 300);
    await upstream.kill();
    upstream = await startUpstream();
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] }, { name: 'embed', admission: PARK });
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 503]);
    await closed;
  });

  test('ends keep-alive with each answer, and still serves a recently used connection', async () => {
    await start();
    const { socket, text } = await dial();
    const ask = (): void => void socket.write('GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n');
    ask();
    await until(() => text().includes('keep-alive'));
    expect(text()).not.toContain('close');
    const closed = gateway.api.close(5_000);
    await new Promise((resolve) => setTimeout(resolve, 120));
    ask();
    await until(() => socket.closed);
    expect(
      text()
        .toLowerCase()
        .match(/http\/1.1 200|connection: [a-z-]+/g),
    ).toEqual(['http/1.1 200', 'connection: keep-alive', 'http/1.1 200', 'connection: close']);
    await closed;
  });

  test('also serves new connections after leave()', async () => {
    await start();
    gateway.api.leave();
    const { status, headers } = await post(gateway.port, '/v1/models', '', { method: 'GET', headers: { 'content-length': '0' } });
    expect([status, headers.connection]).toEqual([200, 'close']);
  });

  test('may happen twice and before listening', async () => {
    await start();
    await gateway.api.close(0);
    await gateway.api.close(0);
    expect(gateway.api.server.listening).toBe(false);
  });
});

describe('connections', () => {
  test('over the limit get an error, and are accepted again when others have closed', async () => {
    await start({ SVC_MAX_CONNECTIONS: '3' });
    const first = await Promise.all([dial(), dial(), dial()]);
    const over = await dial();
    await until(() => over.socket.closed);
    expect(over.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(errorOf(over.text().slice(over.text().indexOf('\r\n\r\n') + 4)).code).toBe('server.overloaded');
    for (const { socket } of first) socket.destroy();
    let status = 503;
    while (status === 503) ({ status } = await post(gateway.port, '/v1/nothing', '{}').catch(() => ({ status: 503 })));
    expect(status).toBe(404);
  });
});

describe('after the start', () => {
  test('requests wait for the first board, and the list of models is served at once', async () => {
    upstream = await startUpstream();
    gateway = await startGateway();
    const models = await post(gateway.port, '/v1/models', '', { method: 'GET', headers: { 'content-length': '0' } });
    expect(models.text).toBe('{"object":"list","data":[]}');
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => gateway.gateway.load().requests === 1);
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    expect((await reply).status).toBe(200);
  });
});
