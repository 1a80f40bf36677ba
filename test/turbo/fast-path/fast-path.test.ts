import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { publish } from '../../gateway/support/board-fixture.ts';
import { CHAT, chatBody, errorOf } from '../../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

let upstream: FakeUpstream;
let gateway: GatewayFixture;
/** Requests that Node's HTTP server has read. */
let readByNode = 0;
let clients: Client[] = [];

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ settings: { SVC_FAST_PATH: '1', SVC_MAX_CONNECTIONS: '4' } });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  readByNode = 0;
  gateway.api.server.on('request', () => (readByNode += 1));
});
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
  await gateway.close();
  await upstream.kill();
});

interface Client {
  readonly socket: Socket;
  text: string;
  closed: boolean;
}

async function dial(): Promise<Client> {
  const socket = connect(gateway.port, '127.0.0.1');
  const client: Client = { socket, text: '', closed: false };
  clients.push(client);
  socket.on('data', (bytes: Buffer) => (client.text += bytes.toString('latin1')));
  socket.on('error', () => undefined);
  socket.on('close', () => (client.closed = true));
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  return client;
}

const HEADERS = 'Host: localhost\r\nContent-Type: application/json\r\n';
const BODY = chatBody();
const requestOf = (more = '', body = BODY): string =>
  `POST ${CHAT} HTTP/1.1\r\n${HEADERS}${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const answersIn = ({ text }: Client): number => text.split('HTTP/1.1 200 OK\r\n').length - 1;

async function ask(client: Client, request: string): Promise<void> {
  const before = answersIn(client);
  client.socket.write(request);
  await until(() => answersIn(client) > before && client.text.endsWith('}'));
}

describe('an ordinary request', () => {
  test('is answered without Node’s HTTP server, one after the other on a connection', async () => {
    const client = await dial();
    for (let index = 0; index < 3; index += 1) await ask(client, requestOf());
    expect(readByNode).toBe(0);
    expect(upstream.seen.map(({ body }) => body.toString())).toEqual([BODY, BODY, BODY]);
    expect(client.text).toMatch(/\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n/);
    expect(gateway.finished.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('is read at any pace once its head is there', async () => {
    const client = await dial();
    const request = requestOf();
    const head = request.indexOf('\r\n\r\n') + 4;
    client.socket.write(request.slice(0, head));
    await until(() => gateway.gateway.load().requests === 1);
    for (const byte of BODY.slice(0, -1)) client.socket.write(byte);
    await ask(client, BODY.slice(-1));
    expect(readByNode).toBe(0);
    expect(upstream.seen[0]?.body.toString()).toBe(BODY);
  });

  test('is followed by the next one that came before its answer', async () => {
    const client = await dial();
    const request = requestOf();
    client.socket.write(request.slice(0, -1));
    await until(() => gateway.gateway.load().requests === 1);
    client.socket.write(`${request.slice(-1)}${request}`);
    await until(() => answersIn(client) === 2);
    expect(upstream.seen.map(({ body }) => body.toString())).toEqual([BODY, BODY]);
  });

  test('is followed by others that came with it', async () => {
    const client = await dial();
    client.socket.write(requestOf().repeat(3));
    await until(() => answersIn(client) === 3);
    expect(upstream.seen.map(({ body }) => body.toString())).toEqual([BODY, BODY, BODY]);
    expect(readByNode).toBe(0);
  });

  test('is answered before bytes that came with it and are no request', async () => {
    const client = await dial();
    client.socket.write(`${requestOf()}--\r\n\r\n`);
    await until(() => client.closed);
    expect(client.text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
    expect(upstream.seen.map(({ body }) => body.toString())).toEqual([BODY]);
  });

  test('ends the connection where the client asks for that, and where the service is leaving', async () => {
    const closing = await dial();
    await ask(closing, requestOf('Connection: close\r\n'));
    await until(() => closing.closed);
    gateway.api.leave();
    const leaving = await dial();
    await ask(leaving, requestOf());
    await until(() => leaving.closed);
    for (const { text } of [closing, leaving]) expect(text).toMatch(/\r\nConnection: close\r\n/);
    expect(readByNode).toBe(0);
  });

  test('that is not complete when its client ends the connection is refused', async () => {
    const client = await dial();
    client.socket.end(requestOf().slice(0, -1));
    await until(() => client.closed);
    expect(client.text).toMatch(/^HTTP\/1\.1 400 /);
    expect(errorOf(client.text.slice(client.text.indexOf('\r\n\r\n') + 4)).code).toBe('request.invalid');
    expect(gateway.gateway.load().requests).toBe(0);
  });
});

describe('a connection is handed over to Node’s HTTP server', () => {
  const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

  test('with the request that has another form, also after ordinary ones, and for good', async () => {
    const client = await dial();
    await ask(client, requestOf());
    await ask(client, `POST ${CHAT} HTTP/1.1\r\n${HEADERS}Transfer-Encoding: chunked\r\n\r\n${CHUNKS}`);
    expect(readByNode).toBe(1);
    await ask(client, requestOf());
    expect(readByNode).toBe(2);
    expect(upstream.seen.map(({ body }) => body.toString())).toEqual([BODY, BODY, BODY]);
  });

  test('with a head that comes in two parts', async () => {
    const client = await dial();
    const request = requestOf();
    client.socket.write(request.slice(0, 30));
    await until(() => client.socket.bytesWritten === 30);
    await ask(client, request.slice(30));
    expect(upstream.seen[0]?.body.toString()).toBe(BODY);
  });

  test('when it sends nothing', async () => {
    let accepted: Socket | undefined;
    gateway.api.server.on('connection', (socket) => (accepted = socket));
    const client = await dial();
    // Where Node's HTTP server keeps its parser of a connection.
    await until(() => accepted !== undefined && Reflect.get(accepted, 'parser') !== undefined);
    await ask(client, requestOf());
    expect(readByNode).toBe(1);
  });
});

test('connections over the limit get an error, and the others are answered', async () => {
  const accepted = await Promise.all([dial(), dial(), dial(), dial()]);
  const refused = await dial();
  await until(() => refused.closed);
  expect(refused.text).toMatch(/^HTTP\/1\.1 503 /);
  for (const client of accepted) await ask(client, requestOf());
});

test('a service that stops closes idle connections, and lets a request end', async () => {
  const idle = await dial();
  await ask(idle, requestOf());
  const busy = await dial();
  const request = requestOf();
  busy.socket.write(request.slice(0, -1));
  await until(() => gateway.gateway.load().requests === 1);
  const closed = gateway.api.close(10_000);
  await until(() => idle.closed);
  expect(busy.closed).toBe(false);
  await ask(busy, request.slice(-1));
  await closed;
  expect(answersIn(busy)).toBe(1);
});
