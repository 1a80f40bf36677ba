/** What the client of a stream sees while its request waits, and what follows (`SVC_WAIT_PROGRESS`). */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { BoardSlot } from '../../src/reconciler/board.ts';
import { boardView, DISABLED, PARK, publish, slotName, type SlotSketch } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, raw, responseOf } from './support/client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const MESSAGES = '/v1/messages';
const EVENTS = 'data: {"choices":[]}\n\ndata: [DONE]\n\n';
const COMMENTS = /^(?:: svc starting, position 1 of 1\n\n)+/;
const STREAM = chatBody({ stream: true });

let gateway: GatewayFixture;
const upstreams: FakeUpstream[] = [];

/** JSON, the end of which comes after the client has got its error. */
const sendInPieces: Answer = (_request, res) => {
  res.writeHead(200, { 'content-type': 'application/json' });
  for (const piece of ['{"choices"', ':[', ']']) res.write(piece.padEnd(20_000));
  setTimeout(() => {
    res.write(' ');
    res.end('}');
  }, 20);
};

/** With the default of the suite, and without `src/turbo/`. */
describe.each([
  ['as ever', {}],
  ['without the fast path', { SVC_FAST_PATH: '0' }],
])('A stream that waits, %s,', (_way, settings) => {
  beforeEach(async () => {
    gateway = await startGateway({ processes: 1, settings: { SVC_WAIT_PROGRESS: '100ms', ...settings } });
  });
  afterEach(ended);

  test('gets the state of its slot, and then the bytes of its server', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const stream = await streamOf(CHAT, STREAM);
    expect(stream.head).toEqual([200, 'text/event-stream', 'no-cache', 'no', stream.id]);
    await until(() => stream.text().split('\n\n').length > 2);
    show(await server(sendEvents()));
    await stream.end;
    expect(stream.text()).toMatch(COMMENTS);
    expect(stream.text().replace(COMMENTS, '')).toBe(EVENTS);
    expect(gateway.finished).toEqual([expect.objectContaining({ status: 200, ttftSeconds: expect.any(Number) })]);
  });

  test('gets percent, seconds and place of a download', async () => {
    const { slots, ...view } = boardView(1, [{ name: 'primary', admission: PARK, state: 'pulling' }]);
    const progress = { what: 'model.gguf', doneBytes: 43, totalBytes: 100, bytesPerSecond: 5 };
    const pulled = ([name, slot]: readonly [BoardSlot['name'], BoardSlot]) =>
      [name, { ...slot, status: { ...slot.status, progress } }] as const;
    gateway.board.publish({ ...view, slots: new Map([...slots].map(pulled)) });
    const other = post(gateway.port, CHAT, chatBody());
    await until(() => waiting() === 1);
    const stream = await streamOf(CHAT, STREAM);
    await until(() => stream.text() !== '');
    expect(stream.text()).toMatch(/^: svc pulling 43 %, about 12 s left, position 2 of 2\n\n/);
    show(await server(sendEvents()));
    await Promise.all([other, stream.end]);
  });

  test('keeps its connection for the next request', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const request = (close: boolean): string =>
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\n${close ? 'connection: close\r\n' : ''}content-type: application/json\r\ncontent-length: ${STREAM.length}\r\n\r\n${STREAM}`;
    const replies = raw(gateway.port, request(false), request(true));
    await until(() => gateway.gateway.load().requests > 0);
    await passed();
    show(await server(sendEvents()));
    const texts = await replies;
    expect(texts.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(texts.match(/data: \[DONE\]\n\n\r\n0\r\n\r\n/g)).toHaveLength(2);
  });

  test('is sent again after its server died, and has one head', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const stream = await streamOf(CHAT, STREAM);
    const dead = await server((_request, _res, socket) => void socket.destroy());
    show(dead);
    await until(() => dead.seen.length === 1);
    show(await server(sendEvents()));
    await stream.end;
    // Until the other server is shown, the slot is ready and nobody answers.
    expect(stream.text().replace(/^(?:: svc (?:starting|ready), position 1 of 1\n\n)+/, '')).toBe(EVENTS);
    expect(upstreams.map(({ seen }) => seen.length)).toEqual([1, 1]);
  });

  test('goes to another slot, which it names', async () => {
    const fallback = { to: ['b'], when: ['loading > 200ms'] };
    publish(gateway.board, { name: 'primary', admission: PARK, fallback }, sketchOf(await server(sendEvents()), 'b'));
    const stream = await streamOf(CHAT, STREAM);
    await stream.end;
    expect(stream.headers['x-svc-slot']).toBeUndefined();
    expect(stream.text().replace(COMMENTS, '')).toBe(`: x-svc-slot: b\n: x-svc-fallback: loading; from=primary\n\n${EVENTS}`);
    expect(gateway.finished).toEqual([expect.objectContaining({ slot: 'b', status: 200 })]);
    await until(() => waiting() === 1);
    show(upstreams[0]);
  });

  test('gets an error of the service as an event', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const stream = await streamOf(CHAT, STREAM);
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    await stream.end;
    const event = stream.text().replace(COMMENTS, '');
    expect(event).toMatch(/^data: \{.*\}\n\n$/);
    expect(errorOf(event.slice('data: '.length))).toMatchObject({ code: 'slot.disabled', origin: 'gateway' });
    expect(gateway.finished).toEqual([expect.objectContaining({ status: 503, ttftSeconds: undefined })]);
  });

  test.each<[string, Answer, object]>([
    [
      'an error',
      (_request, res) => sendJson(res, 400, { error: { message: 'No', type: 'invalid_request_error' } }),
      { message: 'No', origin: 'upstream' },
    ],
    ['an answer that is no stream', sendInPieces, { code: 'upstream.failed', origin: 'gateway' }],
  ])('gets %s of its server as an event', async (_what, answer, error) => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const stream = await streamOf(CHAT, STREAM);
    show(await server(answer));
    await stream.end;
    const event = stream.text().replace(COMMENTS, '');
    expect(event).toMatch(/^data: \{.*\}\n\n$/);
    expect(errorOf(event.slice('data: '.length))).toMatchObject(error);
    await until(() => gateway.finished.length === 1);
    const status = errorOf(event.slice('data: '.length)).origin === 'upstream' ? 400 : 502;
    expect(gateway.finished).toEqual([expect.objectContaining({ status, ttftSeconds: undefined })]);
  });

  test('is not begun for a client that gets one answer, or speaks HTTP/1.0', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const plain = post(gateway.port, CHAT, chatBody({ stream: false, metadata: { stream: true } }));
    const counted = post(gateway.port, '/v1/messages/count_tokens', STREAM);
    const passedOn = post(gateway.port, CHAT, STREAM, { headers: { 'x-svc-hop': 'other' } });
    const old = raw(
      gateway.port,
      `POST ${CHAT} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: ${STREAM.length}\r\n\r\n${STREAM}`,
    );
    await until(() => waiting() === 4);
    await passed();
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    for (const reply of [plain, counted, passedOn]) expect((await reply).status).toBe(503);
    expect(await old).toMatch(/^HTTP\/1\.1 503 .*\{"error":\{[^\n]*\}$/s);
  });

  test('ends when its client leaves', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const stream = await streamOf(CHAT, STREAM);
    stream.leave();
    await until(() => gateway.finished.length === 1);
    expect(gateway.finished).toEqual([expect.objectContaining({ status: 499 })]);
  });
});

test('The Messages API gets its head and its errors', async () => {
  gateway = await startGateway({ processes: 1, settings: { SVC_WAIT_PROGRESS: '100ms' } });
  publish(gateway.board, { name: 'primary', admission: PARK });
  const reply = await streamOf(MESSAGES, STREAM);
  expect(reply.headers['request-id']).toBe(reply.id);
  publish(gateway.board, { name: 'primary', admission: DISABLED });
  await reply.end;
  expect(reply.text()).toMatch(/\n\nevent: error\ndata: \{"type":"error"[^\n]*\}\n\n$/);
  await ended();
});

test('The Ollama dialect gets lines, and no comment', async () => {
  gateway = await startGateway({ dialects: true, settings: { SVC_WAIT_PROGRESS: '100ms' } });
  publish(gateway.board, { name: 'primary', admission: PARK });
  const reply = post(gateway.port, '/ollama/api/chat', chatBody());
  await until(() => waiting() === 1);
  await passed();
  show(await server(undefined));
  const { status, text } = await reply;
  expect(status).toBe(200);
  const said = text
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(said.at(-1)).toMatchObject({ done: true });
  await ended();
});

test('Each of several processes tells the state', async () => {
  gateway = await startGateway({ processes: 3, settings: { SVC_WAIT_PROGRESS: '100ms' } });
  publish(gateway.board, { name: 'primary', admission: PARK });
  const streams = await Promise.all(Array.from({ length: 8 }, () => streamOf(CHAT, STREAM)));
  await until(() => streams.every(({ text }) => text() !== ''));
  show(await server(sendEvents()));
  for (const { end, text } of streams) {
    await end;
    expect(text()).toMatch(/^: svc starting, position \d of \d\n\n/);
    expect(text().endsWith(`\n\n${EVENTS}`)).toBe(true);
  }
  await ended();
});

test('Without the setting, a client gets nothing before the answer', async () => {
  gateway = await startGateway({ processes: 1 });
  publish(gateway.board, { name: 'primary', admission: PARK });
  const reply = post(gateway.port, CHAT, STREAM);
  await until(() => waiting() === 1);
  await passed();
  publish(gateway.board, { name: 'primary', admission: DISABLED });
  expect((await reply).status).toBe(503);
  await ended();
});

const waiting = (): number => gateway.traffic.parking.waiting(slotName('primary'));

async function ended(): Promise<void> {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  for (const upstream of upstreams.splice(0)) await upstream.kill();
}

/** Longer than `SVC_WAIT_PROGRESS`. */
const passed = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 250));

async function server(answer: Answer | undefined): Promise<FakeUpstream> {
  const upstream = await startUpstream(answer === undefined ? {} : { answer });
  upstreams.push(upstream);
  return upstream;
}

function sendEvents(events = EVENTS): Answer {
  return (_request, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.end(events);
  };
}

const sketchOf = ({ port }: FakeUpstream, name = 'primary'): SlotSketch => ({ name, targets: [{ workload: `w${port}`, port }] });

function show(upstream: FakeUpstream | undefined): void {
  if (upstream !== undefined) publish(gateway.board, sketchOf(upstream));
}

/** Resolves with the head of the answer. */
async function streamOf(path: string, body: string) {
  const req = begin(gateway.port, path, { 'content-length': Buffer.byteLength(body) });
  req.end(body);
  const res = await responseOf(req);
  let text = '';
  res.setEncoding('utf8');
  res.on('data', (piece: string) => (text += piece));
  const end = new Promise<void>((resolve, reject) => {
    res.on('end', resolve);
    res.on('error', reject);
  });
  end.catch(() => undefined);
  const { headers } = res;
  const id = headers['x-request-id'];
  const head = [res.statusCode, headers['content-type'], headers['cache-control'], headers['x-accel-buffering'], id];
  return { head, headers, id, end, text: () => text, leave: () => req.destroy() };
}
