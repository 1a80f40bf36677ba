import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { PARK, publish, slotName, workloadId } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream, type UpstreamOptions } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';
import { collectGarbage } from '../support/collect-garbage.ts';

const PRIMARY = slotName('primary');
let gateway: GatewayFixture;
let upstream: FakeUpstream;

async function open(options: UpstreamOptions, settings: Record<string, string> = {}): Promise<void> {
  upstream = await startUpstream(options);
  gateway = await startGateway({ settings });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
}

const inFlight = (): number => gateway.traffic.ofSlot(PRIMARY).inFlight;
const parked = (): number => gateway.traffic.ofSlot(PRIMARY).parked;
const silent: UpstreamOptions = { answer: () => undefined };

function start(body = chatBody({ stream: true })): ReturnType<typeof begin> {
  const req = begin(gateway.port, CHAT, { 'content-length': Buffer.byteLength(body) });
  req.end(body);
  return req;
}

function sse(res: ServerResponse, first: string): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(first);
}

beforeEach(() => expect.hasAssertions());
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  await upstream.kill();
  await until(() => gateway.gateway.load().connections === 0);
  expect([inFlight(), gateway.gateway.load()]).toEqual([0, { requests: 0, bufferedBytes: 0, spooledBytes: 0, connections: 0 }]);
});

describe('a client that disconnects', () => {
  test('before the first byte ends the upstream’s work at once and releases the hold once', async () => {
    await open(silent);
    const req = start();
    await until(() => upstream.seen.length === 1);
    expect(inFlight()).toBe(1);
    req.destroy();
    await until(() => upstream.left() === 1);
    expect(inFlight()).toBe(0);
    expect(gateway.finished).toMatchObject([{ status: 499, slot: 'primary' }]);
  });

  test('in the middle of a stream ends the upstream’s work at once', async () => {
    await open({ answer: (_request, res) => sse(res, 'data: 1\n\n') });
    const req = start();
    const res = await responseOf(req);
    res.on('error', () => undefined);
    req.destroy();
    await until(() => upstream.left() === 1);
    expect(inFlight()).toBe(0);
    expect(gateway.finished).toMatchObject([{ status: 200 }]);
  });

  test('while parked leaves the queue, and no workload sees its request', async () => {
    await open({});
    publish(gateway.board, { name: 'primary', admission: PARK });
    const gone = start();
    const stays = start();
    await until(() => parked() === 2);
    gone.destroy();
    await until(() => parked() === 1);
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    const res = await responseOf(stays);
    res.resume();
    await until(() => gateway.finished.length === 2);
    expect(upstream.seen.length).toBe(1);
  });

  test('in the middle of its body leaves nothing in memory', async () => {
    await open({});
    const req = begin(gateway.port, CHAT, { 'content-length': 1000 });
    req.write('{"model":"primary",');
    await until(() => gateway.gateway.load().bufferedBytes > 0);
    req.destroy();
    await until(() => gateway.gateway.load().requests === 0);
    expect(gateway.gateway.load().bufferedBytes).toBe(0);
  });
});

describe('an upstream that dies', () => {
  test.each([
    ['after an event', 'data: {"choices":[]}\n\n', 'data: {"choices":[]}\n\n'],
    ['in the middle of an event', 'data: {"cho', 'data: {"cho\n\n'],
    ['after a line', 'data: {}\n', 'data: {}\n\n'],
  ])('%s of a stream is reported in the stream, and the connection ends', async (_what, sent, received) => {
    await open({
      answer: (_request, res, socket) => {
        sse(res, sent);
        setTimeout(() => socket.resetAndDestroy(), 10);
      },
    });
    const reply = await post(gateway.port, CHAT, chatBody({ stream: true }));
    expect(reply.status).toBe(200);
    expect(reply.text.startsWith(received)).toBe(true);
    const last = reply.text.slice(received.length);
    expect(last).toMatch(/^data: .*\n\n$/);
    expect(errorOf(last.slice(6))).toMatchObject({ code: 'upstream.failed', origin: 'gateway' });
    expect(gateway.finished.length).toBe(1);
  });

  test.each([
    ['with a length', { 'content-length': '1000' }],
    ['without a length', {}],
  ])('in the middle of another body %s is detected by the client', async (_what, headers) => {
    await open({
      answer: (_request, res, socket) => {
        res.writeHead(200, { 'content-type': 'application/json', ...headers });
        res.write('{"half":');
        setTimeout(() => socket.resetAndDestroy(), 10);
      },
    });
    const reply = await post(gateway.port, CHAT, chatBody()).catch(() => 'cut');
    expect(typeof reply === 'string' ? reply : reply.cut).toBe(typeof reply === 'string' ? 'cut' : true);
    await until(() => gateway.finished.length === 1);
  });
});

describe('a time limit', () => {
  test('for the first byte results in 504', async () => {
    await open(silent, { SVC_FIRST_BYTE_TIMEOUT: '60ms' });
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).code]).toEqual([504, 'upstream.timeout']);
    await until(() => upstream.left() === 1);
  });

  test('for silence in a stream is reported in the stream', async () => {
    await open({ answer: (_request, res) => sse(res, 'data: 1\n\n') }, { SVC_STREAM_TIMEOUT: '60ms' });
    const reply = await post(gateway.port, CHAT, chatBody({ stream: true }));
    expect(errorOf(reply.text.slice('data: 1\n\ndata: '.length)).code).toBe('upstream.timeout');
    await until(() => upstream.left() === 1);
  });

  test('applies to an upstream that is silent in the middle of an error', async () => {
    await open(
      {
        answer: (_request, res) => {
          res.writeHead(500, { 'content-type': 'application/json' });
          res.write('{"error":');
        },
      },
      { SVC_STREAM_TIMEOUT: '60ms' },
    );
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).code]).toEqual([504, 'upstream.timeout']);
    await until(() => upstream.left() === 1);
    expect(gateway.finished.length).toBe(1);
  });

  test('does not end a stream that continues', async () => {
    await open(
      {
        answer: (_request, res) => {
          sse(res, 'data: 0\n\n');
          let count = 0;
          const timer = setInterval(
            () => (count++ < 10 ? res.write('data: x\n\n') : (clearInterval(timer), res.end('data: [DONE]\n\n'))),
            40,
          );
        },
      },
      { SVC_STREAM_TIMEOUT: '250ms', SVC_FIRST_BYTE_TIMEOUT: '250ms' },
    );
    const reply = await post(gateway.port, CHAT, chatBody({ stream: true }));
    expect(reply.text.endsWith('[DONE]\n\n')).toBe(true);
  });
});

describe('a workload that is aborted', () => {
  test('ends its own requests, sends those without an answer to the new workload, and leaves others alone', async () => {
    await open({
      answer: (request, res) => {
        if (!JSON.parse(request.body.toString()).stream) return;
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\n\n');
      },
    });
    const other = await startUpstream({ answer: (_request, res) => void held.push(res) });
    const held: ServerResponse[] = [];
    const waiting = post(gateway.port, CHAT, chatBody());
    const begun = post(gateway.port, CHAT, chatBody({ stream: true }));
    await until(() => upstream.seen.length === 2);
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'new', port: other.port }] });
    const second = start(chatBody());
    await until(() => held.length === 1);
    gateway.traffic.abort(workloadId('w'));
    expect((await begun).text).toContain('upstream.failed');
    await until(() => upstream.left() === 2 && held.length === 2);
    expect([inFlight(), other.busy()]).toEqual([2, 2]);
    const [, resent] = held;
    if (resent !== undefined) sendJson(resent, 200, { resent: true });
    expect((await waiting).text).toBe('{"resent":true}');
    second.destroy();
    await until(() => other.left() === 1);
    await other.kill();
  });
});

describe('back-pressure', () => {
  test('pauses the upstream when the client reads nothing', async () => {
    let [written, blocked] = [0, false];
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    await open({
      answer: (_request, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        const piece = Buffer.alloc(64 * 1024, 'x');
        const pump = (): void => {
          do written += piece.length;
          while (!res.destroyed && res.write(piece));
          blocked = true;
          res.once('drain', () => {
            blocked = false;
            pump();
          });
        };
        pump();
      },
    });
    const req = start();
    const res = await responseOf(req);
    res.pause();
    res.on('error', () => undefined);
    let last = -1;
    while (!blocked || written !== last) {
      last = written;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    // Only the sockets' own buffers: the stream itself is endless.
    expect(written).toBeLessThan(64 * 1024 * 1024);
    // What was freed is counted until a thread of V8 has returned it.
    await until(() => (collectGarbage(), process.memoryUsage().arrayBuffers - before < 64 * 1024 * 1024));
    req.destroy();
    await until(() => upstream.left() === 1);
    expect(gateway.finished[0]?.blockedSeconds).toBeGreaterThan(0);
  });

  test('does not pause a client with a large body until its slot is open, because it would not be noticed when it leaves', async () => {
    await open({});
    publish(gateway.board, { name: 'primary', admission: PARK });
    const size = 24 * 1024 * 1024;
    const body = chatBody({ pad: 'x'.repeat(size) });
    const reply = post(gateway.port, CHAT, body);
    await until(() => gateway.gateway.load().bufferedBytes === body.length);
    expect(parked()).toBe(1);
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    expect((await reply).status).toBe(200);
    expect(upstream.seen[0]?.body.equals(Buffer.from(body))).toBe(true);
  });

  test('pauses a client whose upstream does not read', async () => {
    let readOn = (): void => undefined;
    await open({
      onRequest(req) {
        req.pause();
        readOn = () => void req.resume();
      },
    });
    const req = begin(gateway.port, CHAT, { 'transfer-encoding': 'chunked' });
    req.write('{"model":"primary","pad":"');
    let sent = 0;
    let blocked = false;
    const piece = Buffer.alloc(256 * 1024, 'x');
    const pump = (): void => {
      do sent += piece.length;
      while (sent < 60 * 1024 * 1024 && req.write(piece));
      blocked = true;
      req.once('drain', () => {
        blocked = false;
        pump();
      });
    };
    pump();
    let last = -1;
    while (!blocked || sent !== last) {
      last = sent;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    expect(sent).toBeLessThan(50 * 1024 * 1024);
    expect(gateway.gateway.load().bufferedBytes).toBeLessThan(3 * 1024 * 1024);
    // The upstream notices the disconnect only after it has read the bytes before it.
    req.destroy();
    readOn();
    await until(() => upstream.left() === 1);
    expect(inFlight()).toBe(0);
  });
});
