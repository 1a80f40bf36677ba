import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { FastConnection } from '../../../src/turbo/fast-path/fast-connection.ts';
import type { ClientRequest } from '../../../src/gateway/client-exchange.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';

const LIMITS = { keepAliveMs: 75_000, silentMs: 1000, requestMs: 600_000, restMs: 30_000 };
const HEAD = 'POST /a HTTP/1.1\r\nHost: localhost\r\n';

let server: Server;
let client: Socket;
let accepted: Socket;
let connection: FastConnection;
let events: string[];
let request: ClientRequest | undefined;
let isReading = true;
let onBytes: (bytes: Buffer) => unknown;

beforeEach(async () => {
  const seen: string[] = [];
  events = seen;
  isReading = true;
  onBytes = () => undefined;
  server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted = socket;
    connection = new FastConnection(socket, {
      rules: { headerLimit: 16_384, serves: () => true },
      date: () => 'now',
      keepAliveSeconds: 75,
      listener(req, res) {
        seen.push('request');
        request = req;
        req.on('data', (bytes) => void onBytes(bytes));
        if (!isReading) req.pause();
        req.on('end', () => {
          res.writeHead(200, { 'content-length': 0 });
          res.end();
        });
      },
      handOver: () => seen.push('handed over'),
      refuse: (_socket, error, isAnswered) => seen.push(`${error} ${isAnswered}`),
      onGone: () => seen.push('gone'),
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('Listen on a port');
  client = connect(address.port, '127.0.0.1');
  client.on('error', () => undefined);
  await new Promise<void>((resolve) => server.once('connection', () => resolve()));
});
afterEach(async () => {
  client.destroy();
  accepted.destroy();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

const look = (afterMs: number): void => connection.checkTimeouts(performance.now() + afterMs, LIMITS);

test('a connection without a request is handed over after the time for silence', () => {
  look(500);
  expect(events).toEqual([]);
  look(1001);
  expect(events).toEqual(['gone', 'handed over']);
});

test('a connection that has been used is closed after the time for keeping it', async () => {
  client.resume();
  client.write(`${HEAD}\r\n`);
  await until(() => events.includes('request') && !connection.isBusy);
  look(0);
  look(70_000);
  expect(accepted.destroyed).toBe(false);
  look(75_001);
  expect(accepted.destroyed).toBe(true);
  expect(events).toEqual(['request']);
});

test('a request whose body takes too long is refused, and one that waits for its answer is not', async () => {
  client.write(`${HEAD}Content-Length: 2\r\n\r\n{`);
  await until(() => events.includes('request'));
  look(0);
  look(590_000);
  expect(events).toEqual(['request']);
  look(600_001);
  expect(events).toEqual(['request', 'timeout false']);
});

test('a client that sends more than is read is slowed down, and loses nothing', async () => {
  const bytes = 1024 * 1024;
  let received = 0;
  isReading = false;
  onBytes = (piece) => (received += piece.length);
  client.resume();
  client.write(`${HEAD}Content-Length: ${bytes}\r\n\r\n`);
  client.write(Buffer.alloc(bytes));
  await until(() => accepted.isPaused());
  expect(received).toBe(0);
  request?.resume();
  await until(() => !connection.isBusy);
  expect(received).toBe(bytes);
});

test('the memory of bytes that are of no more use is freed at once', async () => {
  const pieces: Buffer[] = [];
  onBytes = (piece) => {
    if (piece.length > 16_384) pieces.push(piece);
    request?.free?.(piece);
    // A second time it does nothing.
    request?.free?.(piece);
  };
  client.resume();
  client.write(`${HEAD}Content-Length: 300000\r\n\r\n`);
  client.write(Buffer.alloc(300_000));
  await until(() => events.includes('request') && !connection.isBusy);
  expect(pieces.length).toBeGreaterThan(0);
  expect(pieces.map((piece) => piece.length)).toEqual(pieces.map(() => 0));
});

test('memory that also holds bytes of another request stays as it is', async () => {
  const bodies: string[] = [];
  onBytes = (piece) => {
    bodies.push(piece.toString());
    request?.free?.(piece);
    bodies.push(piece.toString());
  };
  const textOf = (body: string): string => `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
  const texts = ['first', 'second', 'third'];
  client.resume();
  client.write(texts.map(textOf).join(''));
  await until(() => events.length === 3 && !connection.isBusy);
  expect(bodies).toEqual(texts.flatMap((text) => [text, text]));
});
