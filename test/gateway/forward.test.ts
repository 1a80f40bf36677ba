import type { ClientRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PARK, publish, slotName } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf } from './support/client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream, type UpstreamOptions } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const PRIMARY = slotName('primary');
let gateway: GatewayFixture;
let upstream: FakeUpstream;

async function open(options: UpstreamOptions = {}, settings: Record<string, string> = {}): Promise<void> {
  upstream = await startUpstream(options);
  gateway = await startGateway({ settings });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
}

const answering = (answer: Answer, settings: Record<string, string> = {}): Promise<void> => open({ answer }, settings);
const inFlight = (): number => gateway.traffic.ofSlot(PRIMARY).inFlight;

beforeEach(() => expect.hasAssertions());
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  await upstream.kill();
  expect(inFlight()).toBe(0);
  await until(() => gateway.gateway.load().connections === 0);
  expect(gateway.gateway.load()).toEqual({ requests: 0, bufferedBytes: 0, spooledBytes: 0, connections: 0 });
});

describe('a request that is forwarded', () => {
  test('and its answer are passed on byte for byte', async () => {
    const answers: { bytes: Buffer; length: boolean }[] = [];
    await answering((_request, res) => {
      const { bytes, length } = answers.at(-1) ?? { bytes: Buffer.alloc(0), length: true };
      res.writeHead(200, { 'content-type': 'application/json', ...(length && { 'content-length': bytes.length }) });
      for (let from = 0; from < bytes.length; from += 50_000) res.write(bytes.subarray(from, from + 50_000));
      res.end();
    });
    const size = fc.oneof(fc.nat({ max: 100 }), fc.nat({ max: 200_000 }));
    await fc.assert(
      fc.asyncProperty(size, size, fc.integer({ min: 1, max: 255 }), fc.boolean(), async (sent, received, step, length) => {
        const bytes = Buffer.from(Array.from({ length: received }, (_unused, index) => (index * step) % 256));
        answers.push({ bytes, length });
        const body = `{"model":"primary","x":"${'é'.repeat(sent)}"}  `;
        const reply = await post(gateway.port, CHAT, body);
        expect([reply.status, reply.cut, reply.bytes.equals(bytes)]).toEqual([200, false, true]);
        expect(upstream.seen.at(-1)?.body.toString()).toBe(body);
      }),
      { numRuns: 40 },
    );
  });

  test('is forwarded when the client sends it in pieces without a length', async () => {
    await open();
    const req = begin(gateway.port, CHAT, { 'transfer-encoding': 'chunked' });
    const body = chatBody();
    for (const letter of body) {
      req.write(letter);
      await new Promise((resolve) => setImmediate(resolve));
    }
    req.end();
    expect((await responseOf(req)).statusCode).toBe(200);
    expect(upstream.seen[0]?.body.toString()).toBe(body);
  });

  test('keeps the client’s headers except credentials and hop-by-hop headers', async () => {
    await open();
    await post(gateway.port, CHAT, chatBody(), {
      headers: {
        authorization: 'Bearer secret',
        cookie: 'a=b',
        'x-api-key': 'secret',
        'x-forwarded-email': 'a@b.c',
        connection: 'close, x-mine',
        'x-mine': '1',
        te: 'trailers',
        'accept-encoding': 'gzip',
        'x-custom': 'kept',
        traceparent: '00-1-2-03',
        'x-client-request-id': 'mine-1',
      },
    });
    const seen = upstream.seen[0]?.headers ?? {};
    expect(Object.keys(seen).toSorted()).toEqual(['content-length', 'content-type', 'host', 'traceparent', 'x-custom', 'x-request-id']);
    expect(seen).toMatchObject({ host: `127.0.0.1:${upstream.port}`, 'x-custom': 'kept', 'x-request-id': 'mine-1' });
  });

  test('has the client’s request id if it is well-formed, else a new one', async () => {
    await open();
    const ids = await Promise.all(
      [{ 'x-request-id': 'abc.1' }, { 'x-request-id': 'a b"' }, { 'x-request-id': 'x'.repeat(200) }, {}].map(async (headers) => {
        const reply = await post(gateway.port, CHAT, chatBody(), { headers });
        return String(reply.headers['x-request-id']);
      }),
    );
    expect(ids[0]).toBe('abc.1');
    for (const id of ids.slice(1)) expect(id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(new Set(ids).size).toBe(4);
  });

  test('is sent to the provider’s path from each alias', async () => {
    await open();
    for (const path of ['/v1/rerankings', '/v1/rerank', '/v1/reranking', '/rerank', '/rerank?x=1']) {
      expect((await post(gateway.port, path, chatBody())).status).toBe(200);
    }
    expect(upstream.seen.map((request) => request.url)).toEqual(Array.from({ length: 5 }, () => '/v1/rerank'));
  });

  test('streams without proxy buffering and without CORS headers', async () => {
    await open();
    const headers = { host: `127.0.0.1:${gateway.port}`, origin: `http://127.0.0.1:${gateway.port}` };
    const reply = await post(gateway.port, CHAT, chatBody({ stream: true }), { headers });
    expect(reply.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    expect(reply.headers['access-control-allow-origin']).toBeUndefined();
    expect(reply.text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('passes on each piece of a stream as it arrives, and the headers with the first one', async () => {
    let step = (): void => undefined;
    let answered = false;
    await answering((_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.flushHeaders();
      answered = true;
      let count = 0;
      step = () => void (count++ < 3 ? res.write(`data: ${count}\n\n`) : res.end());
    });
    const req = begin(gateway.port, CHAT, { 'content-length': chatBody().length });
    req.end(chatBody());
    await until(() => answered);
    step();
    const res = await responseOf(req);
    const pieces: string[] = [];
    res.on('data', (piece: Buffer) => pieces.push(piece.toString()));
    await until(() => pieces.length === 1);
    for (const count of [2, 3]) {
      step();
      await until(() => pieces.length === count);
    }
    step();
    expect(pieces).toEqual(['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']);
  });

  test('streams any pieces at any pace without changing or reordering a byte', async () => {
    let plan: readonly (readonly [number, number])[] = [];
    await answering(async (_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      let next = 0;
      for (const [size, pauseMs] of plan) {
        res.write(Buffer.from(Array.from({ length: size }, () => next++ % 256)));
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs - 1));
      }
      res.end();
    });
    const size = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 40_000 }));
    const pieces = fc.array(fc.tuple(size, fc.constantFrom(0, 0, 1, 3)), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(pieces, async (some) => {
        plan = some;
        const total = some.reduce((sum, [bytes]) => sum + bytes, 0);
        const reply = await post(gateway.port, CHAT, chatBody({ stream: true }));
        expect([reply.cut, reply.bytes.equals(Buffer.from(Array.from({ length: total }, (_unused, index) => index % 256)))]).toEqual([
          false,
          true,
        ]);
      }),
      { numRuns: 60 },
    );
  });

  test('is reported once', async () => {
    await open();
    await post(gateway.port, CHAT, chatBody({ stream: true, stream_options: { include_usage: true } }));
    await post(gateway.port, CHAT, chatBody());
    await until(() => gateway.finished.length === 2);
    for (const one of gateway.finished) {
      expect(one).toMatchObject({ slot: 'primary', route: CHAT, status: 200, tokens: { input: 3, output: 5 } });
      expect(one.parkedSeconds).toBeUndefined();
    }
    const [streamed, whole] = gateway.finished;
    expect(streamed?.seconds).toBeGreaterThanOrEqual(streamed?.ttftSeconds ?? Number.POSITIVE_INFINITY);
    // The whole answer at once says nothing about its first token.
    expect(whole?.ttftSeconds).toBeUndefined();
  });

  test.each([
    ['its slot', () => void publish(gateway.board, { name: 'primary', admission: PARK })],
    ['the first board', () => undefined],
  ])('is reported with the time for which it waited for %s, and not with that of its answer', async (_what, prepare) => {
    let answer: () => void = () => undefined;
    await answering((_request, res) => void (answer = () => sendJson(res, 200, {})));
    await gateway.close();
    gateway = await startGateway();
    prepare();
    const began = performance.now();
    const reply = post(gateway.port, CHAT, chatBody());
    const { parking } = gateway.traffic;
    await until(() => parking.waiting(undefined) + parking.waiting(slotName('primary')) === 1);
    const parked = performance.now();
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'a', port: upstream.port }] });
    await until(() => upstream.seen.length === 1);
    const arrived = performance.now();
    answer();
    await reply;
    await until(() => gateway.finished.length === 1);
    const waitedMs = (gateway.finished[0]?.parkedSeconds ?? 0) * 1000;
    expect(waitedMs).toBeGreaterThan(0);
    expect(waitedMs).toBeLessThanOrEqual(arrived - began);
    expect(parked).toBeLessThan(arrived);
  });

  test('is sent to the target with the fewest requests, and as part of a conversation to one with room', async () => {
    await answering(() => undefined);
    const other = await startUpstream({ answer: () => undefined });
    publish(gateway.board, {
      name: 'primary',
      targets: [
        { workload: 'a', port: upstream.port },
        { workload: 'b', port: other.port },
      ],
    });
    const send = (path: string): readonly ClientRequest[] =>
      Array.from({ length: 10 }, () => {
        const req = begin(gateway.port, path, { 'content-length': chatBody().length });
        req.end(chatBody());
        return req;
      });
    const seenBy = (): readonly number[] => [upstream, other].map(({ seen }) => seen.filter(({ url }) => url === CHAT).length);
    const requests = [...send('/v1/embeddings')];
    await until(() => upstream.seen.length + other.seen.length === 10);
    expect([upstream.seen.length, other.seen.length]).toEqual([5, 5]);
    // All of one conversation: its replica takes 1.25 of the mean.
    requests.push(...send(CHAT));
    await until(() => upstream.seen.length + other.seen.length === 20);
    expect(seenBy().toSorted((one, other) => one - other)).toEqual([2, 8]);
    for (const req of requests) req.destroy();
    await other.kill();
  });
});

describe('an upstream’s error', () => {
  test.each([
    [
      400,
      { error: { message: 'bad', type: 'invalid_request_error', code: 400 } },
      { message: 'bad', type: 'invalid_request_error', code: null },
    ],
    [
      400,
      { error: { message: 'long', type: 'exceed_context_size_error', code: 400, n_ctx: 1 } },
      { type: 'exceed_context_size_error', code: 'context_length_exceeded' },
    ],
    [501, { error: { message: 'no', type: 'not_supported_error', code: 501 } }, { message: 'no', type: 'not_supported_error' }],
    [429, { error: 'slow down' }, { message: 'slow down', type: 'rate_limit_error' }],
    [422, { detail: 'wrong', param: 'n' }, { message: 'wrong', param: 'n', type: 'invalid_request_error' }],
    [500, 'plain text', { message: 'plain text', type: 'upstream_error' }],
    [500, '<html>', { type: 'upstream_error' }],
    [503, '', { type: 'upstream_error' }],
    [500, { error: { message: { deep: 1 }, type: 7, code: 'kept', param: [] } }, { code: 'kept', param: null, type: 'upstream_error' }],
  ])('keeps its status %s and is normalised', async (status, body, want) => {
    await answering((_request, res) => {
      res.setHeader('retry-after', '7');
      if (typeof body === 'string') res.writeHead(status).end(body);
      else sendJson(res, status, body);
    });
    const reply = await post(gateway.port, CHAT, chatBody());
    expect(reply.status).toBe(status);
    expect(errorOf(reply.text)).toMatchObject({ ...want, origin: 'upstream' });
    expect(reply.headers).toMatchObject({ 'retry-after': '7', 'x-request-id': expect.any(String) });
  });

  test('is shortened if it is long', async () => {
    await answering((_request, res) => void res.writeHead(500).end(Buffer.alloc(5_000_000, 'x')));
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).message.length < 3000]).toEqual([500, true]);
  });

  test('is replaced by ours when the upstream redirects or does not speak HTTP', async () => {
    await answering((_request, res, socket) => {
      if (upstream.seen.length === 1) res.writeHead(302, { location: 'http://evil.example/' }).end();
      else socket.end('SSH-2.0-OpenSSH\r\n\r\n');
    });
    for (let round = 0; round < 2; round += 1) {
      const reply = await post(gateway.port, CHAT, chatBody());
      expect([reply.status, errorOf(reply.text)]).toMatchObject([502, { code: 'upstream.failed', origin: 'gateway' }]);
    }
  });
});
