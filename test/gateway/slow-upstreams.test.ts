/** Bodies of which a part waits in the gateway, because the upstream is slower than the client: memory that is freed too early would be sent with other content. */
import { afterEach, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { publish } from './support/board-fixture.ts';
import { CHAT, chatBody, post } from './support/client.ts';
import { startGateway } from './support/gateway-fixture.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
const STUCK_MS = 20;
const SLOW_PIECES = 8;
const PARALLEL = 4;

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

interface SlowUpstream {
  readonly port: number;
  /** SHA-256 of each body that has arrived. */
  readonly bodies: string[];
}

/** Reads one piece of a request at a time, with pauses between the first ones. */
async function startSlowUpstream(): Promise<SlowUpstream> {
  const bodies: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const hash = createHash('sha256');
    let missing: number | undefined;
    let pieces = 0;
    socket.on('error', () => undefined);
    socket.on('data', (piece: Buffer) => {
      let body = piece;
      if (missing === undefined) {
        const end = piece.indexOf('\r\n\r\n');
        missing = Number(/content-length: (\d+)/i.exec(piece.toString('latin1', 0, end))?.[1]);
        body = piece.subarray(end + 4);
      }
      hash.update(body);
      missing -= body.length;
      if (missing === 0) {
        bodies.push(hash.digest('hex'));
        socket.write(ANSWER);
        return;
      }
      pieces += 1;
      if (pieces > SLOW_PIECES) return;
      socket.pause();
      setTimeout(() => socket.resume(), STUCK_MS);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  open.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, bodies };
}

const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
const bodyOf = (bytes: number): string => chatBody({ pad: randomBytes((bytes * 3) / 4).toString('base64') });

test.each([
  { what: 'that are kept', bytes: 900_000 },
  { what: 'that flow', bytes: 12_000_000 },
])(
  'bodies $what arrive unchanged',
  async ({ bytes }) => {
    const upstream = await startSlowUpstream();
    const gateway = await startGateway();
    open.push(() => gateway.close());
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    const bodies = Array.from({ length: PARALLEL }, () => bodyOf(bytes));
    const replies = await Promise.all(bodies.map((body) => post(gateway.port, CHAT, body)));
    expect(replies.map(({ status }) => status)).toEqual(bodies.map(() => 200));
    while (upstream.bodies.length < PARALLEL) await new Promise((resolve) => setTimeout(resolve, STUCK_MS));
    expect(upstream.bodies.toSorted()).toEqual(bodies.map(sha).toSorted());
  },
  60_000,
);
