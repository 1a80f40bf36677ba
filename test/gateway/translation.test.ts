/** Requests that a provider translates: they have the holds, limits, cancellation, resending and errors of all others. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Translate } from '../../src/providers/translation.ts';
import { ask, askBriefly, begin as beginAnswer, onLeave, wait, write } from '../../src/providers/translation-steps.ts';
import { PARK, publish, workloadId } from './support/board-fixture.ts';
import { begin, errorOf, post, responseOf } from './support/client.ts';
import { sendJson, type Answer, type SeenRequest } from './support/fake-upstream.ts';
import { FORM_TYPE, formOf } from './support/forms.ts';
import { until } from './support/gateway-fixture.ts';
import { startRawUpstream } from './support/raw-upstream.ts';
import { draw, json, sayOnce, textOf, transcribe } from './support/toy-translations.ts';
import {
  failedWith,
  NOTHING_LEFT,
  says,
  IMAGES,
  startTranslation,
  TOY,
  TOY_CAPABILITIES,
  type TranslationFixture,
} from './support/translation-fixture.ts';

const MIB = 1024 * 1024;
let world: TranslationFixture | undefined;

afterEach(async () => {
  expect(await world?.close()).toEqual(NOTHING_LEFT);
});

async function start(...options: Parameters<typeof startTranslation>): Promise<TranslationFixture> {
  world = await startTranslation(...options);
  return world;
}

const pathsOf = (seen: readonly SeenRequest[]): string[] => seen.map(({ method, url }) => `${method} ${url}`);

describe('a translation of one request', () => {
  test('sends its own request, and answers in its own words', async () => {
    const { gateway, upstream, speak } = await start(sayOnce, says);
    const reply = await speak();
    expect([reply.status, JSON.parse(reply.text).output]).toEqual([200, 'You said Hi']);
    expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'x-request-id': expect.any(String) });
    const [seen] = upstream.seen;
    expect(seen).toMatchObject({ method: 'POST', url: '/say', headers: { 'content-type': 'application/json' } });
    expect(seen?.headers['x-request-id']).toBe(reply.headers['x-request-id']);
    expect(seen?.headers).not.toHaveProperty('authorization');
    expect(gateway.finished).toMatchObject([{ slot: 'toy', route: IMAGES, status: 200, tokens: { input: 7, output: 2 } }]);
  });

  test('reuses its connection', async () => {
    const { upstream, speak } = await start(sayOnce, says);
    for (let count = 0; count < 3; count += 1) expect((await speak()).status).toBe(200);
    expect(upstream.accepted()).toBe(1);
  });

  test('gives errors of the server the shape of OpenAI’s', async () => {
    const { speak } = await start(sayOnce, (_request, res) => sendJson(res, 422, { detail: 'No such voice' }));
    const reply = await speak();
    expect([reply.status, errorOf(reply.text)]).toEqual([
      422,
      { message: 'No such voice', type: 'invalid_request_error', param: null, code: null, origin: 'upstream' },
    ]);
  });

  test('waits while the server loads its model', async () => {
    let count = 0;
    const { speak } = await start(sayOnce, (request, res, socket) => {
      count += 1;
      if (count > 2) void says(request, res, socket);
      else sendJson(res, 503, { error: { message: 'Loading model', type: 'unavailable_error', code: 503 } });
    });
    expect((await speak()).status).toBe(200);
    expect(count).toBe(3);
  });

  test('parks while its slot is loading', async () => {
    const { gateway, upstream, serve, speak } = await start(sayOnce, says);
    publish(gateway.board, { name: 'toy', capabilities: TOY_CAPABILITIES, admission: PARK });
    const reply = speak();
    await until(() => gateway.traffic.ofSlot(TOY).parked === 1);
    serve(upstream.port);
    expect((await reply).status).toBe(200);
  });

  test('gets the exact text of its JSON, and none that is invalid or too large', async () => {
    const echo: Translate = function* run({ body }) {
      yield* wait(1);
      return json({ text: body.kind === 'json' ? body.text : '' });
    };
    const { gateway, speak } = await start(echo, says);
    const body = '\uFEFF{"model":"toy","seed":18446744073709551615}';
    expect(JSON.parse((await post(gateway.port, IMAGES, body)).text).text).toBe(body.slice(1));
    expect(failedWith(await post(gateway.port, IMAGES, '{"model":"toy","input":[1,}'))).toEqual([400, 'request.invalid', 'gateway']);
    expect(failedWith(await speak({ pad: 'x'.repeat(2 * MIB) }))).toEqual([413, 'request.too_large', 'gateway']);
    expect((await speak({ pad: 'x'.repeat(MIB - 1000) })).status).toBe(200);
  });
});

test('a translation may ask again and again for what it does not keep', async () => {
  const rounds = 40;
  const poll: Translate = function* run() {
    for (let round = 0; round < rounds; round += 1) yield* askBriefly({ method: 'GET', path: '/state' }, MIB);
    return json({ rounds });
  };
  const state = Buffer.alloc(100 * 1024, 'x');
  const { speak, gateway } = await start(poll, (_request, res) => void res.end(state), { SVC_BUFFER_LIMIT: '256Ki' });
  expect((await speak()).status).toBe(200);
  expect(gateway.gateway.load().bufferedBytes).toBe(0);
});

describe('a translation of a form', () => {
  const heard: Answer = ({ body, headers, url }, res) => {
    const boundary = /boundary=(.+)$/.exec(headers['content-type'] ?? '')?.[1] ?? '?';
    const [, language, file] = body.toString('latin1').split(`--${boundary}`);
    const content = file?.slice(file.indexOf('\r\n\r\n') + 4, -2) ?? '';
    const hash = createHash('sha256').update(Buffer.from(content, 'latin1')).digest('hex');
    res.end(` ${url} ${language?.trim().split('\r\n').at(-1)} ${content.length} ${hash}\n`);
  };

  test.each([
    ['in memory', 2000, true],
    ['on disk', 5 * MIB, true],
    ['on disk, whose model comes last', 5 * MIB, false],
  ])('passes on a file that is %s', async (_where, bytes, first) => {
    const { gateway, upstream } = await start(transcribe, heard);
    const content = Buffer.concat([Buffer.from('RIFF'), randomBytes(bytes)]);
    const file = { name: 'file', fileName: 'a.wav', content };
    const fields = [
      { name: 'model', content: 'toy' },
      { name: 'language', content: 'dé' },
    ];
    const body = formOf(first ? [...fields, file] : [file, ...fields]);
    const reply = await post(gateway.port, '/v1/audio/transcriptions', body, { headers: { 'content-type': FORM_TYPE } });
    const hash = createHash('sha256').update(content).digest('hex');
    const language = Buffer.from('dé').toString('latin1');
    expect(JSON.parse(reply.text)).toEqual({ text: `/inference ${language} ${content.length} ${hash}` });
    expect(upstream.seen[0]?.headers['content-length']).toBe(String(upstream.seen[0]?.body.length));
  });

  test('refuses what it finds in a file', async () => {
    const { gateway } = await start(transcribe, heard);
    const body = formOf([
      { name: 'model', content: 'toy' },
      { name: 'file', fileName: 'a', content: 'PK\u0003\u0004 and so on' },
    ]);
    const reply = await post(gateway.port, '/v1/audio/transcriptions', body, { headers: { 'content-type': FORM_TYPE } });
    expect([reply.status, errorOf(reply.text)]).toMatchObject([
      400,
      { code: 'request.invalid', param: 'file', message: 'Send a WAV file, not "PK\u0003\u0004"' },
    ]);
  });

  test('gets no fields of more than 1 MiB', async () => {
    const { gateway } = await start(transcribe, heard);
    const body = formOf([
      { name: 'model', content: 'toy' },
      { name: 'prompt', content: 'x'.repeat(MIB) },
    ]);
    const reply = await post(gateway.port, '/v1/audio/transcriptions', body, { headers: { 'content-type': FORM_TYPE } });
    expect(failedWith(reply)).toEqual([413, 'request.too_large', 'gateway']);
  });
});

/** A server with a queue. Its jobs are done once `finish` is called. */
function queueServer(image = Buffer.alloc(0)) {
  const interrupted: string[] = [];
  let isDone = false;
  let jobs = 0;
  const answer: Answer = ({ url, body }, res) => {
    if (url === '/prompt') sendJson(res, 200, { id: `job-${(jobs += 1)}` });
    else if (url.startsWith('/history/')) sendJson(res, 200, isDone ? { file: 'a.png' } : {});
    else if (url.startsWith('/view')) res.end(image);
    else {
      interrupted.push(JSON.parse(body.toString()).id);
      res.end();
    }
  };
  return { answer, interrupted, finish: () => void (isDone = true) };
}

describe('a translation of several requests', () => {
  test('asks until the job is done, and passes on the file as it arrives', async () => {
    const image = randomBytes(3 * MIB);
    const server = queueServer(image);
    const { upstream, speak } = await start(draw, server.answer);
    const reply = speak();
    await until(() => upstream.seen.length > 5);
    server.finish();
    const { status, text } = await reply;
    expect(status).toBe(200);
    expect(Buffer.from(JSON.parse(text).data[0].b64_json, 'hex').equals(image)).toBe(true);
    expect(server.interrupted).toEqual([]);
    expect(upstream.accepted()).toBe(1);
  });

  test('cancels the job when the client leaves, and holds its workload until then', async () => {
    const server = queueServer();
    const { gateway, upstream } = await start(draw, server.answer);
    const req = begin(gateway.port, IMAGES, {});
    req.end('{"model":"toy"}');
    await until(() => upstream.seen.length > 3);
    expect(gateway.traffic.ofSlot(TOY).inFlight).toBe(1);
    req.destroy();
    await until(() => server.interrupted.length > 0);
    await until(() => gateway.traffic.ofSlot(TOY).inFlight === 0);
    expect(server.interrupted).toEqual(['job-1']);
    const count = upstream.seen.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(upstream.seen.length).toBe(count);
    expect(gateway.finished).toMatchObject([{ status: 499 }]);
  });

  test('that never ends is ended by the time limit, and its job is cancelled', async () => {
    const server = queueServer();
    const { speak } = await start(draw, server.answer, { SVC_FIRST_BYTE_TIMEOUT: '200ms' });
    expect(failedWith(await speak())).toEqual([504, 'upstream.timeout', 'gateway']);
    await until(() => server.interrupted.length === 1);
  });

  test('is run again on another server if its own dies, and once more only as often as other requests', async () => {
    const server = queueServer(Buffer.from('a'));
    server.finish();
    const { upstream, serve, speak } = await start(draw, server.answer);
    const dying = await startRawUpstream({ onRequest: (socket) => void socket.resetAndDestroy() });
    serve(dying.port, 'dying');
    const reply = speak();
    await until(() => dying.requests() > 0);
    serve(upstream.port);
    expect((await reply).status).toBe(200);
    expect(pathsOf(upstream.seen)).toEqual(['POST /prompt', 'GET /history/job-1', 'GET /view?file=a.png']);
    await dying.close();
  });

  test('is run again if its workload is to be stopped', async () => {
    const server = queueServer(Buffer.from('a'));
    const { gateway, upstream, serve, speak } = await start(draw, server.answer);
    const reply = speak();
    await until(() => upstream.seen.length > 3);
    gateway.traffic.abort(workloadId('w'));
    server.finish();
    serve(upstream.port, 'w2');
    expect((await reply).status).toBe(200);
    expect(upstream.seen.filter(({ url }) => url === '/prompt').length).toBe(2);
  });

  test('does not grow with a client that reads nothing', async () => {
    const endless: Translate = function* run() {
      yield* beginAnswer({ status: 200, contentType: 'audio/pcm' });
      for (;;) yield* write(Buffer.alloc(64 * 1024));
    };
    const { gateway } = await start(endless, says, { SVC_STREAM_TIMEOUT: '300ms' });
    const req = begin(gateway.port, IMAGES, {});
    req.end('{"model":"toy"}');
    const res = await responseOf(req);
    res.pause();
    res.on('error', () => undefined);
    await until(() => gateway.finished.length === 1);
    expect(gateway.faults).toEqual([]);
    res.resume();
    await new Promise((resolve) => res.on('close', resolve));
    expect(res.complete).toBe(false);
  });
});

describe('a request that must finish', () => {
  test('keeps its connection and its hold after the client has left, until the server has answered', async () => {
    const waiting: ServerResponse[] = [];
    const fragile: Translate = function* run() {
      yield* onLeave([{ method: 'POST', path: '/after' }]);
      const answer = yield* ask({ method: 'POST', path: '/work', body: '{}', mustFinish: true });
      return json({ text: textOf(answer.body) });
    };
    const { gateway, upstream } = await start(fragile, ({ url }, res) => (url === '/work' ? void waiting.push(res) : void res.end()));
    const req = begin(gateway.port, IMAGES, {});
    req.end('{"model":"toy"}');
    await until(() => waiting.length === 1);
    req.destroy();
    await until(() => gateway.finished.length === 1);
    expect([upstream.left(), gateway.traffic.ofSlot(TOY).inFlight]).toEqual([0, 1]);
    waiting[0]?.end('done');
    await until(() => gateway.traffic.ofSlot(TOY).inFlight === 0);
    expect([upstream.left(), pathsOf(upstream.seen)]).toEqual([0, ['POST /work', 'POST /after']]);
  });

  test('is cut when its workload is to be stopped', async () => {
    const fragile: Translate = function* run() {
      return json((yield* ask({ method: 'POST', path: '/work', body: '{}', mustFinish: true })).status);
    };
    const { gateway, upstream } = await start(fragile, () => undefined);
    const req = begin(gateway.port, IMAGES, {});
    req.end('{"model":"toy"}');
    await until(() => upstream.seen.length === 1);
    req.destroy();
    await until(() => gateway.finished.length === 1);
    gateway.traffic.abort(workloadId('w'));
    await until(() => gateway.traffic.ofSlot(TOY).inFlight === 0);
  });
});
