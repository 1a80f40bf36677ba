/** Streams while the event loop is so busy that they are read less often: nothing of them may be lost. */
import { afterEach, expect, jest, test } from '@jest/globals';
import { createServer, Socket } from 'node:net';
import { publish } from './support/board-fixture.ts';
import { CHAT, chatBody, post } from './support/client.ts';
import { startGateway } from './support/gateway-fixture.ts';

const EVENTS = 200;
const STREAMS = 40;

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of open.splice(0).toReversed()) await close();
});

const eventOf = (index: number): string => `data: {"choices":[{"delta":{"content":"word ${index}"}}]}\n\n`;
const ALL = `${Array.from({ length: EVENTS }, (_, index) => eventOf(index)).join('')}data: [DONE]\n\n`;

/** One event for each millisecond and stream. */
async function startStreamer(): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let timer: NodeJS.Timeout | undefined;
    socket.on('error', () => undefined);
    socket.on('close', () => clearInterval(timer));
    socket.once('data', () => {
      let index = 0;
      const write = (text: string): void => void socket.write(`${text.length.toString(16)}\r\n${text}\r\n`);
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
      timer = setInterval(() => {
        if (index < EVENTS) write(eventOf(index));
        index += 1;
        if (index !== EVENTS) return;
        write('data: [DONE]\n\n');
        socket.write('0\r\n\r\n');
        clearInterval(timer);
      }, 1);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  open.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

test('streams of a busy service arrive whole', async () => {
  const port = await startStreamer();
  const gateway = await startGateway();
  open.push(() => gateway.close());
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port }] });
  // As if each turn of the event loop took ten times as long.
  const { now } = performance;
  jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) * 10);
  const pauses = jest.spyOn(Socket.prototype, 'pause');
  const replies = await Promise.all(Array.from({ length: STREAMS }, () => post(gateway.port, CHAT, chatBody({ stream: true }))));
  expect(pauses.mock.calls.length).toBeGreaterThan(STREAMS);
  for (const { status, text } of replies) {
    expect(status).toBe(200);
    expect(text === ALL ? 'all events' : text).toBe('all events');
  }
}, 60_000);
