/** A request gets one answer, whatever its body does, with and without the fast path, and through the framework. */
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { publish } from '../../gateway/support/board-fixture.ts';
import { CHAT, chatBody } from '../../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

/** Time limits are checked once a second. */
const SWEEP_MS = 1100;
const now = performance.now.bind(performance);
let aheadMs = 0;
let gateway: GatewayFixture;
let upstream: FakeUpstream;
let finish: (() => void)[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  aheadMs = 0;
  for (const socket of sockets.splice(0)) socket.destroy();
  await gateway.close();
  await upstream.kill();
});

async function start(SVC_FAST_PATH: string): Promise<void> {
  jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  finish = [];
  upstream = await startUpstream({
    answer: (_request, res) => {
      finish.push(() => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 });
        res.end('{}');
      });
    },
  });
  gateway = await startGateway({
    settings: { SVC_FAST_PATH },
    routes: [{ method: 'PUT', path: '/api/thing', access: 'all', summary: '', tag: '', handler: (request) => ({ body: request.body }) }],
  });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
}

interface Client {
  readonly socket: Socket;
  text: string;
  closed: boolean;
}

async function dial(): Promise<Client> {
  const socket = connect({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  const client: Client = { socket, text: '', closed: false };
  socket.on('data', (part: Buffer) => (client.text += part.toString('latin1')));
  socket.on('error', () => undefined);
  socket.on('end', () => socket.end());
  socket.on('close', () => (client.closed = true));
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  return client;
}

const statusesOf = ({ text }: Client): readonly string[] => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((found) => found[1] ?? '');

const BODY = chatBody();
const headOf = (line: string, framing: string, type = 'application/json'): string =>
  `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n`;
const length = (bytes: number): string => `Content-Length: ${bytes}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const CHAT_LINE = `POST ${CHAT}`;
const API_LINE = 'PUT /api/thing';
/** Holds of the gateway, and memory for bodies. */
const isIdle = (): boolean => gateway.gateway.load().requests === 0 && gateway.gateway.budget.reservedBytes() === 0;

const PATHS = [
  ['the fast path', '1'],
  ['Node’s server', '0'],
] as const;
const SLOW = PATHS.flatMap(([name, fast]) => [
  [`${name}, a chat`, fast, CHAT_LINE, length(BODY.length)] as const,
  [`${name}, a chat in chunks`, fast, CHAT_LINE, CHUNKED] as const,
  [`${name}, the management API`, fast, API_LINE, length(BODY.length)] as const,
  [`${name}, the management API in chunks`, fast, API_LINE, CHUNKED] as const,
]);

describe.each(SLOW)('a body (%s)', (_name, fast, line, framing) => {
  /** Node's server reads the others. */
  const isFast = fast === '1' && line === CHAT_LINE && framing !== CHUNKED;
  const piece = (text: string): string => (framing === CHUNKED ? `${text.length.toString(16)}\r\n${text}\r\n` : text);

  test('that stops is answered once with 408, and the connection closes', async () => {
    await start(fast);
    const client = await dial();
    client.socket.write(`${headOf(line, framing)}${piece(BODY.slice(0, 10))}`);
    await until(() => gateway.gateway.load().requests === 1 || gateway.gateway.budget.reservedBytes() > 0);
    aheadMs += 59_000;
    client.socket.write(piece(BODY.slice(10, 20)));
    await until(() => gateway.gateway.budget.reservedBytes() === 20);
    expect(client.text).toBe('');
    aheadMs += 61_000;
    await until(() => client.text !== '');
    expect(client.text).toMatch(/^HTTP\/1\.1 408 [^]*\r\nconnection: close\r\n[^]*"request\.timeout"/i);
    // The rest comes too late, and so does the next request.
    client.socket.write(piece(BODY.slice(20)) + (framing === CHUNKED ? '0\r\n\r\n' : '') + headOf(CHAT_LINE, length(BODY.length)) + BODY);
    await until(() => client.closed);
    expect(statusesOf(client)).toEqual(['408']);
    await until(isIdle);
    expect(upstream.seen).toEqual([]);
  }, 20_000);

  test('that trickles is answered once with 408', async () => {
    await start(fast);
    const client = await dial();
    client.socket.write(headOf(line, framing === CHUNKED ? framing : length(1_000_000)) + piece('{"a":"'));
    for (let sent = 6; client.text === '' && sent < 12; sent += 1) {
      await until(() => gateway.gateway.budget.reservedBytes() === sent || client.text !== '');
      aheadMs += 20_000;
      client.socket.write(piece('x'));
      await sleep(SWEEP_MS);
    }
    await until(() => client.closed);
    expect(statusesOf(client)).toEqual(['408']);
    expect(client.text).toContain('bytes per second');
    await until(isIdle);
  }, 20_000);

  test('whose client leaves holds nothing', async () => {
    await start(fast);
    const client = await dial();
    client.socket.write(`${headOf(line, framing)}${piece(BODY.slice(0, 10))}`);
    await until(() => gateway.gateway.budget.reservedBytes() === 10);
    client.socket.resetAndDestroy();
    await until(isIdle);
    expect(gateway.faults).toEqual([]);
  });

  test('that ends early, after its answer has been sent, gets no second answer', async () => {
    await start(fast);
    const client = await dial();
    client.socket.write(`${headOf(line, framing, 'text/plain')}${piece(BODY.slice(0, 10))}`);
    await until(() => client.text.includes('request.media_type'));
    client.socket.end();
    await until(() => client.closed);
    expect(statusesOf(client)).toEqual(['415']);
  }, 20_000);

  test('that stops after its answer has been sent gets no second answer, and the connection closes', async () => {
    const accepted: Socket[] = [];
    await start(fast);
    gateway.api.server.prependListener('connection', (socket: Socket) => accepted.push(socket));
    const client = await dial();
    client.socket.write(`${headOf(line, framing, 'text/plain')}${piece(BODY.slice(0, 10))}`);
    await until(() => client.text.includes('request.media_type'));
    aheadMs += 31_000;
    await sleep(SWEEP_MS);
    aheadMs += 31_000;
    // The limit of Node's own clock has passed.
    if (!isFast) gateway.api.server.emit('clientError', TIMEOUT, accepted[0]);
    await until(() => client.closed);
    expect(statusesOf(client)).toEqual(['415']);
  }, 20_000);

  test('that Node’s limit ends is answered once', async () => {
    const accepted: Socket[] = [];
    await start(fast);
    gateway.api.server.prependListener('connection', (socket: Socket) => accepted.push(socket));
    const client = await dial();
    client.socket.write(`${headOf(line, framing)}${piece(BODY.slice(0, 10))}`);
    await until(() => gateway.gateway.budget.reservedBytes() === 10);
    if (!isFast) gateway.api.server.emit('clientError', TIMEOUT, accepted[0]);
    else aheadMs += 1_000_000;
    await until(() => client.closed);
    expect(statusesOf(client)).toEqual(['408']);
    await until(isIdle);
  }, 20_000);
});

const TIMEOUT = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });

describe.each(PATHS)('a complete request (%s)', (_name, fast) => {
  const request = headOf(CHAT_LINE, length(BODY.length)) + BODY;

  test.each([
    ['the beginning of another request that never ends', 'POST /x HTTP/1.1\r\nContent-Length: 10\r\nHo'],
    ['bytes that are no request', '\0\0\0\r\n\r\n'],
    ['a request that is malformed', 'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ])('followed by %s gets its own answer first', async (_what, next) => {
    await start(fast);
    const accepted: Socket[] = [];
    gateway.api.server.prependListener('connection', (socket: Socket) => accepted.push(socket));
    const client = await dial();
    client.socket.write(request);
    await until(() => finish.length === 1);
    client.socket.write(next);
    await sleep(20);
    client.socket.write(next);
    await sleep(20);
    expect(client.text).toBe('');
    if (next.endsWith('Ho') && fast === '0') gateway.api.server.emit('clientError', TIMEOUT, accepted[0]);
    finish[0]?.();
    await until(() => statusesOf(client).length > 0 && client.text.includes('{}'));
    if (next.endsWith('Ho')) {
      client.socket.end();
      await until(() => client.closed);
      expect(statusesOf(client)[0]).toBe('200');
      return;
    }
    await until(() => client.closed);
    expect(statusesOf(client)).toEqual(['200', '400']);
  });

  test('is answered in order with others of the same packet, also if a later one is refused', async () => {
    await start(fast);
    const client = await dial();
    client.socket.write(request + headOf(CHAT_LINE, length(2), 'text/plain') + '{}' + request);
    await until(() => finish.length >= 1);
    expect(client.text).toBe('');
    finish[0]?.();
    await until(() => finish.length >= 2);
    finish[1]?.();
    await until(() => statusesOf(client).length === 3 && client.text.endsWith('{}'));
    expect(statusesOf(client)).toEqual(['200', '415', '200']);
  });
});
