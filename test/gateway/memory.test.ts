import { afterEach, describe, expect, test } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { begin, CHAT, chatBody, errorOf, post, responseOf } from './support/client.ts';
import { startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { FORM_TYPE, formOf } from './support/forms.ts';
import { until } from './support/gateway-fixture.ts';

interface Memory {
  readonly bytes: number;
  /** RAM of the whole process. */
  readonly residentBytes: number;
  readonly requests: number;
  readonly bufferedBytes: number;
}

interface Child {
  readonly process: ChildProcess;
  readonly port: number;
  command(what: 'open' | 'park'): void;
  measure(): Promise<Memory>;
  /** Bytes of all buffers, with those that nothing needs any more. */
  bufferBytes(): Promise<number>;
}

const MIB = 1024 * 1024;
const EMPTY_FILE = { name: 'file', fileName: 'a.wav', content: '' };
const open: { close(): Promise<void> | void }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

async function startChild(upstream: Pick<FakeUpstream, 'port'>, settings: Readonly<Record<string, string>>): Promise<Child> {
  const program = new URL('./support/gateway-child.ts', import.meta.url);
  const child = fork(program, [String(upstream.port), JSON.stringify(settings)], { execArgv: ['--expose-gc'] });
  open.push({ close: () => void child.kill('SIGKILL') });
  const reply = (kind: string): Promise<unknown> =>
    new Promise((resolve) => {
      const listen = (message: unknown): void => {
        if (Reflect.get(Object(message), 'kind') !== kind) return;
        child.off('message', listen);
        resolve(message);
      };
      child.on('message', listen);
    });
  const port = Number(Reflect.get(Object(await reply('port')), 'port'));
  return {
    process: child,
    port,
    command: (what) => void child.send(what),
    async measure() {
      const answer = reply('memory');
      child.send('measure');
      const { bytes, residentBytes, requests, bufferedBytes } = Object(await answer);
      return {
        bytes: Number(bytes),
        residentBytes: Number(residentBytes),
        requests: Number(requests),
        bufferedBytes: Number(bufferedBytes),
      };
    },
    async bufferBytes() {
      const answer = reply('buffers');
      child.send('buffers');
      return Number(Reflect.get(Object(await answer), 'bytes'));
    },
  };
}

async function upstreamOf(...options: Parameters<typeof startUpstream>): Promise<FakeUpstream> {
  const upstream = await startUpstream(...options);
  open.push({ close: () => upstream.kill() });
  return upstream;
}

async function sendAll(port: number, count: number, text: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  open.push({ close: () => sockets.forEach((socket) => void socket.destroy()) });
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(200, count - sockets.length) }, () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      sockets.push(socket);
      return new Promise<void>((resolve) => socket.once('connect', () => void socket.write(text, () => resolve())));
    });
    await Promise.all(batch);
  }
  return sockets;
}

async function whenHolding(child: Child, requests: number): Promise<Memory> {
  for (;;) {
    const memory = await child.measure();
    if (memory.requests === requests) return memory;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const textOf = (body: string): string =>
  `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

describe('the memory of the gateway', () => {
  test('is bounded with 10,000 parked requests and is freed afterwards', async () => {
    const upstream = await upstreamOf();
    const child = await startChild(upstream, { SVC_PARK_LIMIT: '10000', SVC_MAX_CONNECTIONS: '10100', SVC_PARK_TIMEOUT: '300s' });
    child.command('park');
    const before = await child.measure();
    const body = chatBody({ pad: 'x'.repeat(2000) });
    const sockets = await sendAll(child.port, 10_000, textOf(body));
    const holding = await whenHolding(child, 10_000);
    expect(holding.bufferedBytes).toBe(10_000 * body.length);
    // Node's connection and request, the objects of the gateway and the body of 2 KB.
    expect((holding.bytes - before.bytes) / 10_000).toBeLessThan(32_000);
    const over = await post(child.port, CHAT, chatBody());
    expect([over.status, errorOf(over.text).code]).toEqual([429, 'slot.queue_full']);
    for (const socket of sockets) socket.destroy();
    let after = await whenHolding(child, 0);
    expect(after.bufferedBytes).toBe(0);
    // Sockets close a moment after their requests.
    while (after.bytes - before.bytes > (holding.bytes - before.bytes) / 8) after = await child.measure();
  }, 60_000);

  test('holds a small part of a 64 MiB body while it flows', async () => {
    const upstream = await upstreamOf();
    const child = await startChild(upstream, {});
    child.command('open');
    const before = await child.measure();
    const body = chatBody({ pad: 'x'.repeat(64 * MIB - 200) });
    const reply = post(child.port, CHAT, body);
    let peak = 0;
    let done = false;
    void reply.then(() => (done = true));
    while (!done) peak = Math.max(peak, (await child.measure()).bytes);
    expect((await reply).status).toBe(200);
    expect(upstream.seen[0]?.body.length).toBe(body.length);
    expect(peak - before.bytes).toBeLessThan(16 * MIB);
  }, 60_000);

  test.each([
    ['kept', 900_000],
    ['passed on', 3_000_000],
  ])('has no garbage of bodies that were %s, although nothing collects it', async (_how, bytes) => {
    const upstream = await upstreamOf();
    const child = await startChild(upstream, { SVC_FAST_PATH: '1' });
    child.command('open');
    const body = chatBody({ pad: 'x'.repeat(bytes) });
    const sent = 24;
    expect((await post(child.port, CHAT, body)).status).toBe(200);
    await child.measure();
    const before = await child.bufferBytes();
    let most = 0;
    for (let round = 0; round < sent; round += 1) {
      expect((await post(child.port, CHAT, body)).status).toBe(200);
      most = Math.max(most, (await child.bufferBytes()) - before);
    }
    expect(upstream.seen.map((request) => request.body.length)).toEqual(Array.from({ length: sent + 1 }, () => body.length));
    expect(most).toBeLessThan(4 * MIB);
  });

  test.each([
    ['before', true],
    ['after', false],
  ])(
    'holds a small part of an upload of 200 MB whose model stands %s the file',
    async (_where, first) => {
      let received = 0;
      const server = createServer((req, res) => {
        req.on('data', (chunk: Buffer) => (received += chunk.length));
        req.on('end', () => void res.end('{}'));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
      open.push({ close: () => void server.close() });
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const child = await startChild({ port }, { SVC_AUDIO_LIMIT: '300Mi' });
      child.command('open');
      const before = await child.measure();
      const model = { name: 'model', content: 'primary' };
      const [head, tail] = [formOf(first ? [model, EMPTY_FILE] : [EMPTY_FILE], false), first ? formOf([]) : formOf([model])];
      const start = head.subarray(0, -2);
      const bytes = 200_000_000;
      const length = start.length + bytes + 2 + tail.length;
      const req = begin(child.port, '/v1/audio/transcriptions', { 'content-type': FORM_TYPE, 'content-length': length });
      const answered = responseOf(req);
      const piece = Buffer.alloc(1_000_000);
      req.write(start);
      let peak = 0;
      let residentPeak = 0;
      for (let sent = 0; sent < bytes; sent += piece.length) {
        if (!req.write(piece)) await new Promise<void>((resolve) => req.once('drain', () => resolve()));
        if (sent % 10_000_000 !== 0) continue;
        const memory = await child.measure();
        peak = Math.max(peak, memory.bytes);
        residentPeak = Math.max(residentPeak, memory.residentBytes);
      }
      req.end(Buffer.concat([Buffer.from('\r\n'), tail]));
      expect((await answered).statusCode).toBe(200);
      expect(received).toBe(length);
      expect(peak - before.bytes).toBeLessThan(16 * MIB);
      expect(residentPeak - before.residentBytes).toBeLessThan(64 * MIB);
    },
    60_000,
  );

  test.each([
    ['whose model comes last', (pad: string) => JSON.stringify({ pad, model: 'primary' })],
    ['that waits for its slot', (pad: string) => JSON.stringify({ model: 'primary', pad })],
  ])(
    'holds one copy of a body %s, and refuses bodies over the budget',
    async (_which, bodyOf) => {
      const upstream = await upstreamOf();
      const child = await startChild(upstream, { SVC_BUFFER_LIMIT: '40Mi' });
      child.command('park');
      const before = await child.measure();
      const body = bodyOf('x'.repeat(30 * MIB));
      const first = post(child.port, CHAT, body);
      void first.catch(() => undefined);
      let holding = await whenHolding(child, 1);
      while (holding.bufferedBytes < body.length) holding = await child.measure();
      expect(holding.bytes - before.bytes).toBeLessThan(1.3 * body.length);
      const second = await post(child.port, CHAT, body);
      expect([second.status, errorOf(second.text).code, second.headers['retry-after']]).toEqual([
        503,
        'server.overloaded',
        expect.stringMatching(/^[1-4]$/),
      ]);
      child.command('open');
      expect((await first).status).toBe(200);
      expect((await child.measure()).bufferedBytes).toBe(0);
    },
    60_000,
  );

  test('returns to the system after large bodies', async () => {
    const upstream = await upstreamOf({ answer: (_request, res) => void res.end('{}') });
    const child = await startChild(upstream, {});
    child.command('park');
    const sendFive = async (): Promise<number> => {
      const body = JSON.stringify({ pad: 'x'.repeat(45 * MIB), model: 'primary' });
      const replies = Array.from({ length: 5 }, () => post(child.port, CHAT, body));
      for (;;) {
        const { residentBytes, bufferedBytes } = await child.measure();
        if (bufferedBytes < 5 * body.length) continue;
        child.command('open');
        expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
        child.command('park');
        return residentBytes;
      }
    };
    const before = (await child.measure()).residentBytes;
    let peak = 0;
    for (let round = 0; round < 2; round += 1) peak = Math.max(peak, await sendFive());
    await whenHolding(child, 0);
    const after = (await child.measure()).residentBytes;
    expect((after - before) / (peak - before)).toBeLessThan(0.4);
  }, 120_000);

  test('does not grow with clients that never read', async () => {
    const upstream = await upstreamOf({
      answer: (_request, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        const piece = Buffer.alloc(64 * 1024, 'x');
        const pump = (): void => {
          while (!res.destroyed && res.write(piece));
          res.once('drain', pump);
        };
        pump();
      },
    });
    const child = await startChild(upstream, {});
    child.command('open');
    const before = await child.measure();
    const sockets = await sendAll(child.port, 20, textOf(chatBody({ stream: true })));
    for (const socket of sockets) socket.pause();
    await until(() => upstream.seen.length === 20);
    let last = await child.measure();
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      const now = await child.measure();
      if (Math.abs(now.bytes - last.bytes) < 64 * 1024) break;
      last = now;
    }
    expect((last.bytes - before.bytes) / 20).toBeLessThan(MIB);
    for (const socket of sockets) socket.destroy();
    await until(() => upstream.left() === 20);
  }, 60_000);
});
