import { fork, type ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, Socket } from 'node:net';
import { once } from 'node:events';
import { takeOver } from '../../../src/turbo/workers/worker-server.ts';

const BYTES = 3_000_000;
let child: ChildProcess;
let server: Server;
let port = 0;

/** A process that passes each connection on with its first bytes, and a server in this one that takes them. */
beforeAll(async () => {
  server = createServer((req, res) => {
    void hashOf(req).then(({ bytes, hash }) => res.end(JSON.stringify({ bytes, hash, from: req.socket.remotePort })));
  });
  child = fork(new URL('support/passing-process.ts', import.meta.url), [], { execArgv: [], serialization: 'advanced' });
  child.on('message', (message: { readonly port?: number; readonly bytes?: Uint8Array }, socket: unknown) => {
    port = message.port ?? port;
    if (message.bytes !== undefined && socket instanceof Socket) takeOver(server, socket, message.bytes);
  });
  await once(child, 'message');
});
afterAll(() => {
  child.kill('SIGKILL');
  server.closeAllConnections();
});

async function hashOf(req: IncomingMessage): Promise<{ readonly bytes: number; readonly hash: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of req) {
    bytes += piece.length;
    hash.update(piece);
  }
  return { bytes, hash: hash.digest('hex') };
}

async function answerOf(socket: Socket): Promise<string> {
  let text = '';
  for await (const piece of socket) {
    text += String(piece);
    if (text.endsWith('}')) break;
  }
  return text.slice(text.indexOf('{'));
}

test('a connection arrives with every byte of it, also while its client keeps sending', async () => {
  const body = Buffer.alloc(BYTES, 'abcdefghijklmnopqrstuvwxyz');
  const expected = createHash('sha256').update(body).digest('hex');
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      const { localPort } = socket;
      socket.write(`POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: ${BYTES}\r\n\r\n`);
      for (let at = 0; at < BYTES; at += 50_000) {
        socket.write(body.subarray(at, at + 50_000));
        if (at % 500_000 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      const answer = await answerOf(socket);
      expect(JSON.parse(answer)).toEqual({ bytes: BYTES, hash: expected, from: localPort });
      socket.destroy();
    }),
  );
});

test('a client that is gone leaves nothing behind', async () => {
  for (let index = 0; index < 20; index += 1) {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('POST');
    socket.resetAndDestroy();
  }
  const socket = connect(port, '127.0.0.1');
  socket.write('POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi');
  expect(JSON.parse(await answerOf(socket))).toMatchObject({ bytes: 2 });
  socket.destroy();
});
