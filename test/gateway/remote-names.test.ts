/** Requests for slots on other machines: the name of the model, hops, and answers that are not for clients. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseSlot } from '../../src/schema/slot/slot-spec.ts';
import { remote } from '../../src/providers/remote/remote.ts';
import { boardView, PARK, slotName, workloadId, type SlotSketch } from './support/board-fixture.ts';
import { begin, CHAT, errorOf, post, responseOf } from './support/client.ts';
import { startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const HOP = '00000000-0000-4000-8000-000000000000';
let gateway: GatewayFixture;
let upstream: FakeUpstream;

beforeEach(async () => {
  expect.hasAssertions();
  upstream = await startUpstream();
  gateway = await startGateway({ provider: { infer: remote.infer } });
  publishRemote('their/model');
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  await upstream.kill();
  await until(() => gateway.gateway.load().connections === 0);
  expect(gateway.gateway.load()).toEqual({ requests: 0, bufferedBytes: 0, spooledBytes: 0, connections: 0 });
});

/** As the loop publishes it. The provider of the fixture has the name "gguf". */
function publishRemote(model: string, isOpen = true): void {
  const sketch: SlotSketch = {
    name: 'big',
    model,
    presets: { calm: { set: { temperature: 0.1 } } },
    capabilities: ['chat', 'transcription', 'rerank'],
  };
  const view = boardView(gateway.board.current().version + 1, [sketch]);
  const url = `http://127.0.0.1:${upstream.port}`;
  const slots = [...view.slots].map(([name, slot]) => {
    const parsed = parseSlot(name, {
      provider: 'remote',
      model: { default: model, presets: sketch.presets },
      remote: { url, private: true },
    });
    if (!parsed.ok || parsed.spec.remote === undefined) throw new Error(JSON.stringify(parsed));
    const endpoint = { host: '127.0.0.1', port: upstream.port, link: { ...parsed.spec.remote, key: 'big', hop: HOP } };
    const targets = isOpen ? [{ workload: workloadId('w'), endpoint }] : [];
    const admission = isOpen ? ({ kind: 'open' } as const) : PARK;
    return [name, { ...slot, spec: { ...parsed.spec, provider: 'gguf' }, targets, admission }] as const;
  });
  gateway.board.publish({ ...view, slots: new Map(slots) });
}

const REST = '"messages" : [{"role":"user","content":"\\u0048i  é"}]';
const lastBody = (): string => upstream.seen.at(-1)?.body.toString() ?? '';

test.each([
  ['the name of the slot', ` {"model":"big",${REST} }`, ` {"model":"their/model",${REST} }`],
  ['its own name already: not one byte is changed', `{ "model":"their/model",${REST}}\n`, `{ "model":"their/model",${REST}}\n`],
  ['a preset as well', `{"model":"big:calm",${REST}}`, `{"model":"their/model",${REST},"temperature":0.1}`],
])('the remote gets its own name for %s', async (_what, sent, expected) => {
  const reply = await post(gateway.port, CHAT, sent);
  expect(reply.status).toBe(200);
  expect(lastBody()).toBe(expected);
  expect(upstream.seen.at(-1)?.url).toBe('/v1/chat/completions');
});

test.each([
  ['https://a', '/v1/chat/completions', '/v1/chat/completions'],
  ['https://a/', '/v1/embeddings', '/v1/embeddings'],
  ['https://a/api/v1/', '/v1/chat/completions', '/api/v1/chat/completions'],
  ['https://a/v1', '/v1/rerankings', '/v1/rerank'],
])('paths are below the URL: "%s" and "%s"', (url, path, expected) => {
  const parsed = parseSlot(slotName('a'), { provider: 'remote', model: { default: 'm' }, remote: { url } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  const served = { spec: parsed.spec, model: undefined };
  expect(remote.infer({ method: 'POST', path, capability: 'chat' }, ['chat'], served)).toEqual({ kind: 'forward', path: expected });
  expect(remote.infer({ method: 'POST', path, capability: 'speech' }, ['chat'], served).kind).toBe('refuse');
  expect(remote.infer({ method: 'POST', path: '/infill', capability: 'chat' }, ['chat'], served).kind).toBe('refuse');
});

test('a body of several megabytes is read as a whole for its name', async () => {
  const start = `{"model":"big","messages":[{"role":"user","content":"${'é'.repeat(1_500_000)}"}]`;
  const req = begin(gateway.port, CHAT, { 'transfer-encoding': 'chunked' });
  req.write(start);
  await until(() => gateway.gateway.load().bufferedBytes > 2_000_000);
  expect(upstream.seen).toEqual([]);
  req.end('}');
  const res = await responseOf(req);
  res.resume();
  expect(res.statusCode).toBe(200);
  expect(lastBody().slice(0, 30)).toBe(`{"model":"their/model","messag`);
});

test('a request that waits during an edit gets the name of then', async () => {
  publishRemote('before', false);
  const reply = post(gateway.port, CHAT, `{"model":"big",${REST}}`);
  await until(() => gateway.gateway.load().requests === 1);
  publishRemote('after');
  expect((await reply).status).toBe(200);
  expect(lastBody()).toBe(`{"model":"after",${REST}}`);
});

test('a form must have the name of the remote', async () => {
  await upstream.kill();
  upstream = await startUpstream({ answer: (_request, res) => void res.end('{"text":"x"}') });
  publishRemote('their/model');
  const form = (model: string): string => `--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--b--\r\n`;
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const reply = await post(gateway.port, '/v1/audio/transcriptions', form('big'), { headers });
  expect([reply.status, errorOf(reply.text).message]).toEqual([400, expect.stringContaining('send "their/model", as the remote calls it')]);
  expect(upstream.seen).toEqual([]);
  await post(gateway.port, '/v1/audio/transcriptions', form('their/model'), { headers });
  expect(lastBody()).toBe(form('their/model'));
});

test('a request that was here before is refused, and others carry one hop more', async () => {
  const body = `{"model":"big",${REST}}`;
  const again = await post(gateway.port, CHAT, body, { headers: { 'x-svc-hop': `other, ${HOP}` } });
  expect([again.status, errorOf(again.text).code]).toEqual([508, 'request.loop']);
  const far = await post(gateway.port, CHAT, body, { headers: { 'x-svc-hop': '1, 2, 3, 4' } });
  expect([far.status, errorOf(far.text).code]).toEqual([508, 'request.loop']);
  expect(upstream.seen).toEqual([]);
  await post(gateway.port, CHAT, body, { headers: { 'x-svc-hop': 'other', authorization: 'Bearer of-the-client' } });
  expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-svc-hop': `other, ${HOP}` });
  expect(upstream.seen.at(-1)?.headers['authorization']).toBeUndefined();
});
