/** A request is lost only after the first byte of its answer, or of a body that is too large to keep: every moment at which a server can die before that. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Socket } from 'node:net';
import { OPEN, PARK, publish, slotName, workloadId } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf, type Reply } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';
import { startRawUpstream, type RawOptions, type RawUpstream } from './support/raw-upstream.ts';

const PRIMARY = slotName('primary');
const LOADING = JSON.stringify({ error: { message: 'Loading model', type: 'unavailable_error', code: 503 } });
let gateway: GatewayFixture;
const open: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  expect.hasAssertions();
  gateway = await startGateway();
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  for (const one of open.splice(0)) await one.close();
  expect(gateway.traffic.ofSlot(PRIMARY)).toEqual({ inFlight: 0, parked: 0 });
});

async function dyingOf(options: RawOptions): Promise<RawUpstream> {
  const upstream = await startRawUpstream(options);
  open.push(upstream);
  return upstream;
}

async function healedOf(text = 'healed'): Promise<FakeUpstream> {
  const upstream = await startUpstream({ text });
  open.push({ close: () => upstream.kill() });
  return upstream;
}

function serve(workload: string, ...ports: readonly number[]): void {
  publish(gateway.board, { name: 'primary', targets: ports.map((port) => ({ workload, port })) });
}

const textOf = (reply: Reply): string => JSON.parse(reply.text).choices[0].message.content;
const reset = (socket: Socket): void => void socket.resetAndDestroy();
const sayThen =
  (text: string, end: (socket: Socket) => void) =>
  (socket: Socket): void =>
    void socket.write(text, () => setImmediate(() => end(socket)));
const close = (socket: Socket): void => void socket.end();
const JSON_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const ERROR_HEAD = 'HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n';

/** What a dying server, or the proxy in front of a dead one, does with each connection. */
const DEATHS: Readonly<Record<string, RawOptions>> = {
  'resets each connection as it accepts it': { onConnection: reset },
  'closes each connection as it accepts it': { onConnection: close },
  'resets after the request': { onRequest: reset },
  'closes after the request': { onRequest: close },
  'resets while the head arrives': { onRequest: sayThen('HTTP/1.1 200 OK\r\nconten', reset) },
  'closes while the head arrives': { onRequest: sayThen('HTTP/1.1 200 OK\r\nconten', close) },
  'resets after an interim head': { onRequest: sayThen('HTTP/1.1 100 Continue\r\n\r\n', reset) },
  'resets between the head and the body': { onRequest: sayThen(`${JSON_HEAD}content-length: 9\r\n\r\n`, reset) },
  'closes between the head and the body': { onRequest: sayThen(`${JSON_HEAD}content-length: 9\r\n\r\n`, close) },
  'resets between the head and the first chunk': { onRequest: sayThen(`${JSON_HEAD}transfer-encoding: chunked\r\n\r\n`, reset) },
  'resets in the first size line': { onRequest: sayThen(`${JSON_HEAD}transfer-encoding: chunked\r\n\r\n5`, reset) },
  'resets in the body of an error': { onRequest: sayThen(`${ERROR_HEAD}content-length: 99\r\n\r\n{"error":`, reset) },
  'answers that its model is loading': {
    onRequest: sayThen(`HTTP/1.1 503 Service Unavailable\r\ncontent-length: ${LOADING.length}\r\n\r\n${LOADING}`, () => undefined),
  },
};

describe('a request without a byte of its answer', () => {
  test.each(Object.keys(DEATHS))('is not lost when a server %s, also while the board still offers that server', async (how) => {
    const dying = await dyingOf(DEATHS[how] ?? {});
    serve('dying', dying.port);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => dying.accepted() >= 2 || dying.requests() >= 2);
    publish(gateway.board, { name: 'primary', admission: PARK });
    const healed = await healedOf();
    serve('healed', healed.port);
    expect(textOf(await reply)).toBe('healed');
    expect([healed.seen.length, gateway.finished.map(({ status }) => status)]).toEqual([1, [200]]);
  });

  test.each(Object.keys(DEATHS))('is not lost when a server %s on a connection that has served before', async (how) => {
    const { onConnection, onRequest } = DEATHS[how] ?? {};
    const dying = await dyingOf({
      onRequest: (socket, text, nth) => {
        if (nth === 1 && dying.requests() === 1) socket.write(`${JSON_HEAD}content-length: 2\r\n\r\n{}`);
        else if (onRequest !== undefined) onRequest(socket, text, nth);
        else onConnection?.(socket);
      },
    });
    serve('dying', dying.port);
    expect((await post(gateway.port, CHAT, chatBody())).text).toBe('{}');
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => dying.requests() >= 3);
    publish(gateway.board, { name: 'primary', admission: PARK });
    serve('healed', (await healedOf()).port);
    expect(textOf(await reply)).toBe('healed');
  });

  test('is not lost when the reconciler ends its workload', async () => {
    const silent = await dyingOf({});
    serve('silent', silent.port);
    const replies = [1, 2, 3].map(() => post(gateway.port, CHAT, chatBody()));
    await until(() => silent.requests() === 3);
    publish(gateway.board, { name: 'primary', admission: PARK });
    gateway.traffic.abort(workloadId('silent'));
    await until(() => gateway.traffic.ofSlot(PRIMARY).parked === 3);
    serve('healed', (await healedOf()).port);
    expect((await Promise.all(replies)).map(textOf)).toEqual(['healed', 'healed', 'healed']);
  });

  test('is answered at once by the restarted server at the same address', async () => {
    let alive = false;
    const server = await dyingOf({
      onRequest: (socket) => {
        if (alive) socket.write(`${JSON_HEAD}content-length: 2\r\n\r\n{}`);
        else socket.resetAndDestroy();
      },
    });
    serve('w', server.port);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => server.requests() >= 2);
    publish(gateway.board, { name: 'primary', admission: PARK });
    alive = true;
    const before = server.requests();
    serve('w', server.port);
    await new Promise((resolve) => setImmediate(resolve));
    expect([(await reply).text, server.requests()]).toEqual(['{}', before + 1]);
  });

  test('and with a large body is not lost to an idle connection that the dead server has left behind', async () => {
    const dying = await startUpstream();
    serve('w', dying.port);
    await Promise.all([1, 2, 3].map(() => post(gateway.port, CHAT, chatBody())));
    await dying.kill();
    const again = await startUpstream({ port: dying.port, text: 'again' });
    open.push({ close: () => again.kill() });
    expect(textOf(await post(gateway.port, CHAT, chatBody({ pad: 'x'.repeat(4 * 1024 * 1024) })))).toBe('again');
  });

  test('may wait as long after a late death as any other request', async () => {
    await gateway.close();
    gateway = await startGateway({ settings: { SVC_PARK_TIMEOUT: '2s' } });
    const slow = await dyingOf({});
    publish(gateway.board, { name: 'primary', admission: PARK });
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => gateway.traffic.ofSlot(PRIMARY).parked === 1);
    serve('slow', slow.port);
    await until(() => slow.requests() === 1);
    await new Promise((resolve) => setTimeout(resolve, 2100));
    publish(gateway.board, { name: 'primary', admission: PARK });
    gateway.traffic.abort(workloadId('slow'));
    await until(() => gateway.traffic.ofSlot(PRIMARY).parked === 1 || gateway.finished.length > 0);
    serve('healed', (await healedOf()).port);
    expect(textOf(await reply)).toBe('healed');
  });

  test('keeps its place when every other place in the queue is taken', async () => {
    await gateway.close();
    gateway = await startGateway({ settings: { SVC_PARK_LIMIT: '1' } });
    publish(gateway.board, { name: 'primary', admission: PARK });
    const first = post(gateway.port, CHAT, chatBody());
    await until(() => gateway.traffic.ofSlot(PRIMARY).parked === 1);
    publish(gateway.board, { name: 'primary', admission: OPEN, targets: [] });
    await until(() => gateway.traffic.ofSlot(PRIMARY).parked === 1);
    serve('healed', (await healedOf()).port);
    expect(textOf(await first)).toBe('healed');
  });
});

describe('a request that kills its server', () => {
  test('is given up after three deaths that the board has shown', async () => {
    let deaths = 0;
    let restarted = Promise.resolve();
    const poisoned = await dyingOf({
      onRequest: (socket) => {
        deaths += 1;
        socket.resetAndDestroy();
        publish(gateway.board, { name: 'primary', admission: PARK });
        if (deaths < 4) restarted = new Promise((resolve) => setTimeout(() => resolve(serve('w', poisoned.port)), 20));
      },
    });
    serve('w', poisoned.port);
    const reply = await post(gateway.port, CHAT, chatBody());
    await restarted;
    expect([reply.status, errorOf(reply.text).code, deaths]).toEqual([502, 'upstream.failed', 3]);
  });

  test('is given up after it has killed three replicas', async () => {
    const replicas = await Promise.all([1, 2, 3, 4].map(() => dyingOf({ onRequest: reset })));
    serve('w', ...replicas.map(({ port }) => port));
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).code]).toEqual([502, 'upstream.failed']);
    expect(replicas.reduce((sum, { requests }) => sum + requests(), 0)).toBe(3);
  });

  test('ends after three tries with the error of a server that stays on the board and closes every connection', async () => {
    const closing = await dyingOf({ onRequest: reset });
    serve('w', closing.port);
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).code]).toEqual([502, 'upstream.failed']);
    expect(closing.requests()).toBe(3);
  });
});

describe('a request whose answer has begun', () => {
  test('is not sent again', async () => {
    const dying = await dyingOf({ onRequest: sayThen(`${JSON_HEAD}content-length: 9\r\n\r\n{"a"`, reset) });
    serve('w', dying.port);
    const req = begin(gateway.port, CHAT, { 'content-length': chatBody().length });
    req.end(chatBody());
    const res = await responseOf(req);
    const cut = await new Promise<boolean>((resolve) => {
      res.on('error', () => undefined);
      res.on('close', () => resolve(!res.complete));
      res.resume();
    });
    expect([res.statusCode, cut, dying.requests()]).toEqual([200, true, 1]);
  });
});

describe('an upstream that breaks HTTP in its first segment', () => {
  const CHUNKED = `${JSON_HEAD}transfer-encoding: chunked\r\n\r\n`;
  test.each([
    ['a size line without a size', `${CHUNKED}zz\r\n`],
    ['a chunk that is longer than its size', `${CHUNKED}2\r\n{}}\r\n0\r\n\r\n`],
    ['a second size line without a size', `${CHUNKED}2\r\n{}\r\nzz\r\n0\r\n\r\n`],
  ])('%s is answered with 502 and not with a reset', async (_what, text) => {
    const broken = await dyingOf({ onRequest: (socket) => void socket.write(text) });
    serve('w', broken.port);
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).code, broken.requests()]).toEqual([502, 'upstream.failed', 1]);
  });
});

describe('a connection with unexpected bytes', () => {
  const ANSWER = `${JSON_HEAD}content-length: 2\r\n\r\n{}`;
  test.each<[string, (socket: Socket) => void]>([
    ['in the segment of the answer', (socket) => void socket.write(`${ANSWER}X`)],
    ['that form another answer', (socket) => void socket.write(`${ANSWER}${JSON_HEAD}content-length: 3\r\n\r\nbad`)],
    ['just after the answer', sayThen(ANSWER, (socket) => void socket.write('X'))],
    ['after an empty answer', (socket) => void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nX`)],
    ['after the last chunk', (socket) => void socket.write(`${JSON_HEAD}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nX`)],
  ])('%s is not used again', async (_where, answer) => {
    const noisy = await dyingOf({ onRequest: (socket) => answer(socket) });
    serve('w', noisy.port);
    const statuses: number[] = [];
    for (let round = 1; round <= 5; round += 1) {
      statuses.push((await post(gateway.port, CHAT, chatBody())).status);
      await until(() => gateway.gateway.load().connections === 0);
    }
    expect([statuses, noisy.accepted()]).toEqual([[200, 200, 200, 200, 200], 5]);
  });

  test('never gives them to the next request, even if that is sent at the same moment', async () => {
    let count = 0;
    const noisy = await dyingOf({
      onRequest: (socket) => {
        count += 1;
        const body = `{"n":${count}}`;
        socket.write(`${JSON_HEAD}content-length: ${body.length}\r\n\r\n${body}`, () => void socket.write('HTTP/1.1 200 OK\r\n'));
      },
    });
    serve('w', noisy.port);
    for (let round = 0; round < 30; round += 1) {
      const reply = await post(gateway.port, CHAT, chatBody());
      expect([reply.status, /^\{"n":\d+\}$/.test(reply.text)]).toEqual([200, true]);
    }
  });
});

test('answers that arrive whole are passed on with their head', async () => {
  const upstream = await startUpstream({ answer: (_request, res) => sendJson(res, 201, { ok: true }) });
  open.push({ close: () => upstream.kill() });
  serve('w', upstream.port);
  const reply = await post(gateway.port, CHAT, chatBody());
  expect([reply.status, reply.text]).toEqual([201, '{"ok":true}']);
});
