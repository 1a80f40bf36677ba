/** Anyone can reach the open routes of a service with authentication. Bodies that are expensive to parse must not harm it, also with little memory. */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { OPEN_ROUTES } from '../support/open-routes.ts';
import { startService, type Service } from '../support/service.ts';

const HEAP_MB = 160;
/** As large as a request to a model may be. */
const BODY_BYTES = 60 * 1024 * 1024;
const LONG = 120_000;
let service: Service;

beforeAll(async () => {
  const environment = {
    SVC_AUTH_ENABLED: '1',
    SVC_PROXY_SECRET: 'a-secret-of-the-proxy',
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
  };
  service = await startService({ runtime: 'process', environment });
}, LONG);
afterAll(async () => await service.dispose(), LONG);

/** Begin and repeated part of a text without end, so that it costs the most until the parser finds that out. */
const SHAPES = [
  ['wide JSON', '[{}', ',{}'],
  ['wide JSON of numbers', '[0', ',0'],
  ['deep JSON', '', '['],
  ['many keys', '{"a":0', ',"__proto__":{}'],
] as const;

interface Attack {
  readonly route: string;
  readonly start: string;
  readonly part: string;
  readonly chunked: boolean;
}

/** Sends the body until the service answers. Returns the status, or nothing if the connection ends without an answer. */
async function attack({ route, start, part, chunked }: Attack): Promise<string> {
  const [method, path] = route.split(' ');
  const { hostname, port } = new URL(service.url);
  const piece = Buffer.from(part.repeat(Math.ceil(65_536 / part.length)));
  const socket = connect(Number(port), hostname);
  let answer = '';
  let isClosed = false;
  socket.on('data', (bytes: Buffer) => (answer += bytes.toString('latin1')));
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) =>
    socket.on('close', () => {
      isClosed = true;
      resolve();
    }),
  );
  const framing = chunked ? 'transfer-encoding: chunked' : `content-length: ${BODY_BYTES}`;
  const frame = (bytes: Buffer): Buffer =>
    chunked ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]) : bytes;
  socket.write(`${method} ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`);
  let sent = start.length;
  if (start !== '') socket.write(frame(Buffer.from(start)));
  while (answer === '' && !isClosed && sent < BODY_BYTES) {
    const next = piece.subarray(0, BODY_BYTES - sent);
    sent += next.length;
    if (!socket.write(frame(next))) await Promise.race([new Promise<void>((resolve) => socket.once('drain', resolve)), closed]);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (chunked) socket.write('0\r\n\r\n');
  while (answer === '' && !isClosed) await new Promise<void>((resolve) => setTimeout(resolve, 5));
  socket.destroy();
  await closed;
  return answer.split(' ')[1] ?? '';
}

const ROUTES = [
  ...OPEN_ROUTES,
  'GET /',
  'GET /v1/models',
  'POST /v1/models',
  'POST /nothing',
  'POST /api/apply',
  'POST /v1/chat/completions',
];

test.each(SHAPES)(
  'endless %s on any route, without a credential, is answered and leaves the service alive',
  async (_what, start, part) => {
    const pid = service.pid();
    for (const route of ROUTES) {
      for (const chunked of [false, true]) {
        const status = await attack({ route, start, part, chunked });
        // What needs no body is answered without it.
        const expected = route.startsWith('GET ') && chunked ? /^(?:200|404|503)$/ : /^4\d\d$/;
        expect([route, chunked, status]).toEqual([route, chunked, expect.stringMatching(expected)]);
      }
    }
    const health = await fetch(`${service.url}/api/health/system`);
    expect([health.status, service.pid(), service.output().includes('out of memory')]).toEqual([200, pid, false]);
  },
  LONG,
);
