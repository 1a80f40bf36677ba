import { afterEach, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { readInto } from '../../../src/gateway/upstream/upstream-connection.ts';
import { until } from '../support/gateway-fixture.ts';

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close();
});

interface Pair {
  readonly server: Socket;
  /** Pieces as the client got them. */
  readonly pieces: Buffer[];
}

async function connectPairs(count: number): Promise<readonly Pair[]> {
  const accepted: Socket[] = [];
  const server = createServer((socket) => void accepted.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  open.push(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const pairs: Pair[] = [];
  for (let index = 0; index < count; index += 1) {
    const pieces: Buffer[] = [];
    const client = connect({ port, host: '127.0.0.1', onread: readInto((piece) => void pieces.push(piece)) });
    await until(() => accepted.length === index + 1);
    const [socket] = accepted.slice(-1);
    if (socket === undefined) throw new Error('The server has no connection');
    socket.on('error', () => undefined);
    open.push(() => {
      client.destroy();
      socket.destroy();
    });
    pairs.push({ server: socket, pieces });
  }
  return pairs;
}

const bytesOf = ({ pieces }: Pair): number => pieces.reduce((sum, { length }) => sum + length, 0);

test.each([
  { what: 'short pieces', sizes: [300, 1, 5000, 300, 16_000, 7] },
  { what: 'large pieces', sizes: [400_000, 90_000, 65_536, 200_000] },
  { what: 'short and large pieces in turn', sizes: [300, 200_000, 300, 65_536, 16_384, 16_385, 100, 1_000_000, 5] },
])('$what of two connections stay what they were, whatever is read after them', async ({ sizes }) => {
  const pairs = await connectPairs(2);
  const sent = pairs.map(() => Buffer.alloc(0));
  for (const size of sizes) {
    for (const [index, pair] of pairs.entries()) {
      const bytes = randomBytes(size);
      sent[index] = Buffer.concat([sent[index] ?? bytes, bytes]);
      pair.server.write(bytes);
    }
    await until(() => pairs.every((pair, index) => bytesOf(pair) === sent[index]?.length));
  }
  for (const [index, pair] of pairs.entries()) expect(Buffer.concat(pair.pieces).equals(sent[index] ?? Buffer.alloc(0))).toBe(true);
});
