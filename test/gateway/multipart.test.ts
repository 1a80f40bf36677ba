/** Uploads: routed by a field wherever it stands, and passed on byte for byte. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import OpenAI, { toFile } from 'openai';
import { PARK, publish, slotName, type SlotSketch } from './support/board-fixture.ts';
import { begin, errorOf, post, raw, responseOf } from './support/client.ts';
import { startUpstream, sendJson, type FakeUpstream } from './support/fake-upstream.ts';
import { FORM_TYPE, formOf, type FormPart } from './support/forms.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';
import { startRawUpstream } from './support/raw-upstream.ts';

const PATH = '/v1/audio/transcriptions';
const STT = slotName('stt');
const MIB = 1024 * 1024;
const MODEL: FormPart = { name: 'model', content: 'stt' };
const file = (content: Buffer | string): FormPart => ({ name: 'file', fileName: 'a.wav', type: 'audio/wav', content });
const headers = { 'content-type': FORM_TYPE };

let gateway: GatewayFixture;
let upstream: FakeUpstream;
let state: string;

beforeEach(async () => {
  state = await mkdtemp(path.join(tmpdir(), 'svc-multipart-'));
  gateway = await startGateway({ settings: { SVC_STATE_DIR: state, SVC_SPOOL_LIMIT: '20Mi' } });
  upstream = await startUpstream({ answer: (_request, res) => sendJson(res, 200, { text: 'Hello' }) });
  serve();
});
afterEach(async () => {
  await gateway.close();
  await upstream.kill();
  expect(gateway.faults).toEqual([]);
  expect(gateway.traffic.ofSlot(STT)).toEqual({ inFlight: 0, parked: 0 });
  expect(gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0, spooledBytes: 0 });
  await rm(state, { recursive: true });
});

function serve(sketch: Partial<SlotSketch> = { targets: [{ workload: 'w', port: upstream.port }] }): void {
  publish(gateway.board, { name: 'stt', capabilities: ['transcription'], ...sketch }, { name: 'primary' });
}

describe('an upload', () => {
  test.each([
    ['before a small file', [MODEL, file('RIFF')]],
    ['after a small file', [file('RIFF'), MODEL]],
    ['before a file of 5 MB', [MODEL, file(randomBytes(5 * MIB))]],
    ['after a file of 5 MB', [file(randomBytes(5 * MIB)), MODEL]],
    ['nowhere, so that the default slot answers', [file(randomBytes(2 * MIB))]],
  ] satisfies readonly [string, FormPart[]][])('whose model stands %s is passed on byte for byte', async (_where, parts) => {
    const body = formOf(parts);
    const reply = await post(gateway.port, PATH, body, { headers });
    expect([reply.status, reply.text]).toEqual([200, '{"text":"Hello"}']);
    const [seen] = upstream.seen;
    expect(seen).toMatchObject({ url: PATH, headers: { 'content-type': FORM_TYPE, 'content-length': String(body.length) } });
    expect(seen?.body.equals(body)).toBe(true);
    expect(await readdir(state).then((names) => Promise.all(names.map((name) => readdir(path.join(state, name)))))).toEqual(
      parts[0]?.name === 'file' && body.length > MIB ? [[]] : [],
    );
  });

  test.each([
    ['before', [MODEL, file(randomBytes(3 * MIB))]],
    ['after', [file(randomBytes(3 * MIB)), MODEL]],
  ] satisfies readonly [string, FormPart[]][])(
    'in chunks, whose model stands %s the file, is passed on byte for byte',
    async (_where, parts) => {
      const body = formOf(parts);
      const req = begin(gateway.port, PATH, { ...headers, 'transfer-encoding': 'chunked' });
      for (let at = 0; at < body.length; at += 100_000) req.write(body.subarray(at, at + 100_000));
      req.end();
      expect((await responseOf(req)).statusCode).toBe(200);
      expect(upstream.seen[0]?.body.equals(body)).toBe(true);
    },
  );

  test('that waits for its slot is kept on disk, and sent when the slot is ready', async () => {
    serve({ admission: PARK });
    const body = formOf([MODEL, file(randomBytes(6 * MIB))]);
    const reply = post(gateway.port, PATH, body, { headers });
    await until(() => gateway.gateway.load().spooledBytes === body.length);
    await until(() => gateway.gateway.load().bufferedBytes === 0);
    serve();
    expect((await reply).status).toBe(200);
    expect(upstream.seen[0]?.body.equals(body)).toBe(true);
  });

  test('is sent again from disk when its server dies before the answer', async () => {
    const dying = await startRawUpstream({ onRequest: (socket) => void socket.resetAndDestroy() });
    serve({ targets: [{ workload: 'dying', port: dying.port }] });
    const body = formOf([file(randomBytes(3 * MIB)), MODEL]);
    const reply = post(gateway.port, PATH, body, { headers });
    await until(() => dying.requests() > 0);
    serve();
    expect((await reply).status).toBe(200);
    expect(upstream.seen[0]?.body.equals(body)).toBe(true);
    await dying.close();
  });

  test('of a client that leaves frees its disk space', async () => {
    const req = begin(gateway.port, PATH, { ...headers, 'content-length': 10 * MIB });
    req.write(formOf([file(randomBytes(4 * MIB))], false));
    await until(() => gateway.gateway.load().spooledBytes > 3 * MIB);
    req.destroy();
    await until(() => gateway.gateway.load().spooledBytes === 0);
  });

  test('over the limit of the disk space is refused, and smaller ones are still served', async () => {
    const body = formOf([file(randomBytes(21 * MIB)), MODEL]);
    const reply = await post(gateway.port, PATH, body, { headers });
    expect([reply.status, errorOf(reply.text)]).toMatchObject([
      503,
      { code: 'server.overloaded', message: expect.stringContaining('SVC_SPOOL_LIMIT') },
    ]);
    expect((await post(gateway.port, PATH, formOf([file('a'), MODEL]), { headers })).status).toBe(200);
  });

  test('that the disk cannot hold is refused, and the service goes on', async () => {
    await writeFile(path.join(state, 'uploads'), 'This is no directory');
    const reply = await post(gateway.port, PATH, formOf([file(randomBytes(3 * MIB)), MODEL]), { headers });
    expect([reply.status, errorOf(reply.text).message]).toEqual([503, 'The upload cannot be kept on disk (EEXIST): try again later']);
    expect((await post(gateway.port, PATH, formOf([file('a'), MODEL]), { headers })).status).toBe(200);
  });
});

describe('an upload that is not valid', () => {
  const big = randomBytes(3 * MIB);
  test.each([
    [
      'has another boundary',
      formOf([MODEL, file('a')])
        .toString()
        .replaceAll('----form', '----else'),
      'does not begin with the boundary',
    ],
    ['has no end', formOf([MODEL, file('a')], false), 'The multipart body ends without its last boundary'],
    ['is large and has no end', formOf([MODEL, file(big)], false), 'The multipart body ends without its last boundary'],
    ['names two models', formOf([MODEL, file('a'), MODEL]), 'The field "model" is repeated'],
    ['is large and names two models', formOf([MODEL, file(big), MODEL]), 'The field "model" is repeated'],
    ['is large, waits on disk and names two models', formOf([file(big), MODEL, MODEL]), 'The field "model" is repeated'],
    ['has 10,000 parts', formOf(Array.from({ length: 10_000 }, () => ({ name: 'a', content: '' }))), 'more than 1000 parts'],
    ['has a field name of 1 MB', formOf([{ name: 'x'.repeat(MIB), content: '' }]), 'more than 4096 bytes'],
    ['is JSON', '{"model":"stt"}', 'does not begin with the boundary'],
  ])('is refused if it %s', async (_what, body, message) => {
    const reply = await post(gateway.port, PATH, body, { headers });
    expect([reply.status, errorOf(reply.text)]).toEqual([
      400,
      expect.objectContaining({ code: 'request.invalid', message: expect.stringContaining(message), origin: 'gateway' }),
    ]);
    expect(upstream.seen.length).toBe(0);
  });

  test.each([
    ['multipart/form-data', 400, 'request.invalid', 'does not name one boundary'],
    ['multipart/form-data; boundary=a; boundary=b', 400, 'request.invalid', 'does not name one boundary'],
    ['application/json', 415, 'request.media_type', 'Unsupported media type: send the body as "multipart/form-data"'],
    ['multipart/mixed; boundary=a', 415, 'request.media_type', 'Unsupported media type: send the body as "multipart/form-data"'],
  ])('is refused with content type "%s"', async (type, status, code, message) => {
    const reply = await post(gateway.port, PATH, formOf([MODEL]), { headers: { 'content-type': type } });
    expect([reply.status, errorOf(reply.text)]).toEqual([
      status,
      expect.objectContaining({ code, param: 'Content-Type', message: expect.stringContaining(message) }),
    ]);
  });

  test('is refused if its content-length ends it too early, and what follows is no request', async () => {
    const body = formOf([MODEL, file('a')]).toString('latin1');
    const head = `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${FORM_TYPE}\r\ncontent-length: ${body.length - 20}\r\n\r\n`;
    const answer = await raw(gateway.port, head + body);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('The multipart body ends without its last boundary');
    expect(upstream.seen.length).toBe(0);
  });

  test('is refused over SVC_BODY_LIMIT', async () => {
    const req = begin(gateway.port, PATH, { ...headers, 'content-length': 65 * MIB });
    req.flushHeaders();
    expect((await responseOf(req)).statusCode).toBe(413);
    req.destroy();
  });
});

test.each(['/v1/audio/translations', '/v1/images/edits'])('%s is routed like other uploads', async (route) => {
  publish(gateway.board, { name: 'stt', capabilities: ['translation', 'image'], targets: [{ workload: 'w', port: upstream.port }] });
  const body = formOf([file('a'), MODEL]);
  expect((await post(gateway.port, route, body, { headers })).status).toBe(200);
  expect(upstream.seen[0]).toMatchObject({ url: route, body });
});

describe('the official SDK', () => {
  test.each([
    ['from memory', () => toFile(Buffer.from('RIFFé'), 'Ünï"語.wav')],
    ['of 4 MB, which it sends in chunks', () => toFile(randomBytes(4 * MIB), 'a.wav')],
  ])('transcribes a file %s', async (_what, open) => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const answer = await client.audio.transcriptions.create({
      file: await open(),
      model: 'stt',
      timestamp_granularities: ['word', 'segment'],
    });
    expect(answer.text).toBe('Hello');
    expect(upstream.seen[0]?.url).toBe(PATH);
  });

  test('gets typed errors', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const failed = client.audio.transcriptions.create({ file: await toFile(Buffer.from('a'), 'a.wav'), model: 'none' });
    await expect(failed).rejects.toMatchObject({ status: 404, code: 'model.not_found', param: 'model' });
  });
});
