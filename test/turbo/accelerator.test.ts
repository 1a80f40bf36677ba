import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { request } from 'node:http';
import { Socket } from 'node:net';
import { createHttpServer } from '../../src/api/server/http-server.ts';
import { createAccelerator, FreeingRequest } from '../../src/turbo/fast-path/fast-path.ts';

const LARGE = 16 * 1024;

test('memory that a piece has to itself is freed, and no other', () => {
  const req = new FreeingRequest(new Socket());
  const own = Buffer.from(new ArrayBuffer(100));
  const shared = Buffer.from(new ArrayBuffer(101), 0, 100);
  for (const piece of [own, own, shared]) req.free(piece);
  expect([own.length, shared.length]).toEqual([0, 100]);
});

test.each([
  ['of a known length', { 'content-length': 300_000 }],
  ['in chunks', { 'transfer-encoding': 'chunked' }],
])('large pieces of a body %s can be freed, and the next request on the connection is intact', async (_name, headers) => {
  const bodies: string[] = [];
  const left: number[] = [];
  const limits = { SVC_HEADER_LIMIT: 16_384, SVC_MAX_CONNECTIONS: 10, SVC_PARK_TIMEOUT: 1000 };
  const { server } = createHttpServer(limits, {
    listener(req, res) {
      let body = '';
      req.on('data', (piece: Buffer) => {
        body += String(piece);
        const isLarge = piece.length >= LARGE;
        if (req instanceof FreeingRequest) req.free(piece);
        if (isLarge) left.push(piece.length);
      });
      req.on('end', () => {
        bodies.push(body);
        res.end();
      });
    },
    fastListener: () => undefined,
    serves: () => false,
    upgrades: { serves: () => false, enter: () => undefined },
    accelerator: createAccelerator({ SVC_FAST_PATH: false }),
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const sent = ['a', 'b'].map((letter) => letter.repeat(300_000));
  for (const body of sent) {
    const asked = request({ port, host: '127.0.0.1', method: 'POST', headers });
    asked.end(body);
    const [answer] = await once(asked, 'response');
    answer.resume();
    await once(answer, 'end');
  }
  server.closeAllConnections();
  server.close();
  expect(bodies).toEqual(sent);
  expect(left.length).toBeGreaterThan(2);
  expect(new Set(left)).toEqual(new Set([0]));
});
