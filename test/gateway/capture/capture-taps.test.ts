/** A capture beside a real gateway: it notes what passes, and clients do not notice. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Authorize } from '../../../src/auth/check-token.ts';
import { createCaptureTaps, type CaptureRule } from '../../../src/gateway/capture/capture-taps.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { publish } from '../support/board-fixture.ts';
import { begin, CHAT, chatBody, post, responseOf } from '../support/client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from '../support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../support/gateway-fixture.ts';

const PRIMARY = SlotName.parse('primary');
const OF_SLOT: CaptureRule = { id: 'a', slot: PRIMARY };

let gateway: GatewayFixture | undefined;
let upstream: FakeUpstream | undefined;
afterEach(async () => await Promise.all([gateway?.close(), upstream?.kill()]));

/** The header "x-who" is the key of the caller. */
const authorize: Authorize = (_access, { rawHeaders }) => ({
  ok: true,
  caller: { key: `token:${rawHeaders[rawHeaders.indexOf('x-who') + 1]}`, identity: 'anna', scope: 'v1-only' },
});

async function opened(rules: readonly CaptureRule[], fastPath = '1', answer?: Answer) {
  const taken: { readonly ids: readonly string[]; readonly [key: string]: unknown }[] = [];
  const taps = createCaptureTaps((ids, line) => taken.push({ ids, ...JSON.parse(line) }), Date.now);
  taps.set(rules);
  upstream = await startUpstream({ text: 'Yes', ...(answer === undefined ? {} : { answer }) });
  gateway = await startGateway({ taps, authorize, settings: { SVC_FAST_PATH: fastPath } });
  const { port, board } = gateway;
  const target = { workload: 'w', port: upstream.port };
  publish(board, { name: 'primary', targets: [target] }, { name: 'fast', targets: [target] });
  return { taps, taken, port };
}

const EVENTS = ['data: {"n":1}\n\n', 'data: {"n":2}\n\n', 'data: [DONE]\n\n'];

describe.each([
  ['the fast path', '1'],
  ['the plain path', '0'],
])('on %s', (_what, fastPath) => {
  test('what was sent and answered is noted as it was, and credentials are not', async () => {
    const { taken, port } = await opened([OF_SLOT], fastPath);
    const headers = { authorization: 'Bearer svc_1a2b3c4d_secret', 'x-request-id': 'mine', 'x-who': '1' };
    const body = chatBody({ note: 'Grüße' });
    const answer = await post(port, CHAT, body, { headers });
    expect(answer.status).toBe(200);
    await until(() => taken.length === 1);
    expect(taken).toEqual([
      {
        ids: ['a'],
        request_id: 'mine',
        started_at: expect.any(String),
        first_byte_seconds: expect.any(Number),
        seconds: expect.any(Number),
        caller: 'token:1',
        slot: 'primary',
        route: CHAT,
        status: 200,
        code: null,
        request: { headers: expect.arrayContaining([['authorization', '(hidden)']]), body, is_cut: false },
        answer: { status: 200, headers: expect.arrayContaining([['x-request-id', 'mine']]), body: answer.text, is_cut: false },
      },
    ]);
    expect(JSON.stringify(taken)).not.toContain('secret');
  });

  test('a stream passes at once, and is noted whole', async () => {
    const next = Array.from(EVENTS, () => Promise.withResolvers<void>());
    const { taken, port } = await opened([OF_SLOT], fastPath, async (_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const [index, event] of EVENTS.entries()) {
        res.write(event);
        await next[index]?.promise;
      }
      res.end();
    });
    const req = begin(port, CHAT, {});
    req.end(chatBody({ stream: true }));
    const answer: IncomingMessage = await responseOf(req);
    let got = '';
    answer.setEncoding('utf8').on('data', (piece: string) => (got += piece));
    for (const [index] of EVENTS.entries()) {
      await until(() => got === EVENTS.slice(0, index + 1).join(''));
      expect(taken).toEqual([]);
      next[index]?.resolve();
    }
    await until(() => taken.length === 1);
    expect(taken).toMatchObject([{ status: 200, answer: { body: EVENTS.join(''), is_cut: false } }]);
  });

  test('what is longer than 1 MiB is noted in part, and passes whole', async () => {
    const { taken, port } = await opened([OF_SLOT], fastPath, ({ body }, res) => sendJson(res, 200, { echo: body.toString() }));
    const body = chatBody({ note: 'x'.repeat(3 * 2 ** 20) });
    const answer = await post(port, CHAT, body);
    expect(JSON.parse(answer.text)).toEqual({ echo: body });
    await until(() => taken.length === 1);
    const asked = { body: body.slice(0, 2 ** 20), is_cut: true };
    expect(taken).toMatchObject([{ request: asked, answer: { body: answer.text.slice(0, 2 ** 20), is_cut: true } }]);
  });

  test('a client that leaves is noted with what it got', async () => {
    const { taken, port } = await opened([OF_SLOT], fastPath, (_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(EVENTS[0]);
    });
    const req = begin(port, CHAT, {});
    req.end(chatBody({ stream: true }));
    const answer = await responseOf(req);
    await new Promise((resolve) => answer.once('data', resolve));
    req.destroy();
    await until(() => taken.length === 1);
    expect(taken).toMatchObject([{ answer: { status: 200, body: EVENTS[0] } }]);
  });

  test('only requests of the caller and the slot are noted, also those that no slot gets', async () => {
    const { taken, taps, port } = await opened(
      [OF_SLOT, { id: 'b', caller: 'token:2' }, { id: 'c', caller: 'token:2', slot: PRIMARY }],
      fastPath,
    );
    const ask = async (who: string, model: string): Promise<unknown> => {
      const before = gateway?.finished.length ?? 0;
      taken.length = 0;
      await post(port, CHAT, chatBody({ model }), { headers: { 'x-who': who } });
      await until(() => gateway?.finished.length === before + 1);
      return taken.map(({ ids }) => ids);
    };
    expect(await ask('1', 'fast')).toEqual([]);
    expect(await ask('1', 'primary')).toEqual([['a']]);
    expect(await ask('2', 'fast')).toEqual([['b']]);
    expect(await ask('2', 'primary')).toEqual([['a', 'b', 'c']]);
    expect(await ask('2', 'nobody')).toEqual([['b']]);
    expect(taken).toMatchObject([{ code: 'model.not_found', answer: { status: 404, body: expect.stringContaining('nobody') } }]);
    taps.set([]);
    expect(await ask('2', 'primary')).toEqual([]);
  });
});

/** A request whose body the test sends. */
function bareRequest() {
  const req = new IncomingMessage(new Socket());
  return { req, res: new ServerResponse(req) };
}

const FINISHED = { slot: PRIMARY, route: CHAT, status: 200, seconds: 1 };

test('bodies in flight have 64 MiB together, which the next ones get when they have ended', () => {
  const cut: unknown[] = [];
  const taps = createCaptureTaps((_ids, line) => cut.push(JSON.parse(line).request.is_cut), Date.now);
  taps.set([OF_SLOT]);
  const all = Array.from({ length: 66 }, () => {
    const request = bareRequest();
    const report = taps.tap(request, () => undefined);
    request.req.on('data', () => undefined);
    return { report, send: (bytes: Buffer): unknown => request.req.emit('data', bytes) };
  });
  const mebibyte = Buffer.alloc(2 ** 20, 'x');
  for (const { send } of all.slice(0, 65)) send(mebibyte);
  for (const { report } of all.slice(0, 65)) report?.(FINISHED);
  expect(cut).toEqual([...Array.from({ length: 64 }, () => false), true]);
  all[65]?.send(mebibyte);
  all[65]?.report?.(FINISHED);
  expect(cut.at(-1)).toBe(false);
});

test('without a capture a request is left alone', () => {
  const taps = createCaptureTaps(() => undefined, Date.now);
  const request = bareRequest();
  const { on } = request.req;
  expect(taps.tap(request, () => undefined)).toBeUndefined();
  taps.set([{ id: 'a', caller: 'token:2' }]);
  expect(taps.tap(request, () => undefined)).toBeUndefined();
  expect(request.req.on).toBe(on);
});
