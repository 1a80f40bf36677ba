/** Requests that name a preset of a slot. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PARK, publish, slotName } from './support/board-fixture.ts';
import { begin, CHAT, errorOf, post, responseOf } from './support/client.ts';
import { startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const PRESETS = {
  think: { set: { temperature: 0.6 }, force: { reasoning_effort: 'high' }, aliases: ['gpt-think'] },
  long: { force: { seed: 7 } },
};
let gateway: GatewayFixture;
let upstream: FakeUpstream;

beforeEach(async () => {
  expect.hasAssertions();
  upstream = await startUpstream();
  gateway = await startGateway();
  publishSlot();
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  await upstream.kill();
  await until(() => gateway.gateway.load().connections === 0);
  expect(gateway.gateway.load()).toEqual({ requests: 0, bufferedBytes: 0, spooledBytes: 0, connections: 0 });
});

function publishSlot(isOpen = true): void {
  const state = isOpen ? { targets: [{ workload: 'w', port: upstream.port }] } : { admission: PARK };
  publish(gateway.board, {
    name: 'primary',
    aliases: ['gpt'],
    presets: PRESETS,
    capabilities: ['chat', 'completion', 'transcription'],
    ...state,
  });
}

const MESSAGES = '"messages" : [{"role":"user","content":"\\u0048i  é"}]';
const lastBody = (): string => upstream.seen.at(-1)?.body.toString() ?? '';

test.each(['primary:think', 'gpt:think', 'gpt-think'])(
  'get its parameters by the name "%s", and stay as they are otherwise',
  async (model) => {
    const reply = await post(gateway.port, CHAT, ` {"model":"${model}",${MESSAGES}, "reasoning_effort":"low" }`);
    expect(reply.status).toBe(200);
    expect(lastBody()).toBe(` {"model":"${model}",${MESSAGES}, "reasoning_effort":"high" ,"temperature":0.6}`);
    await post(gateway.port, CHAT, `{"temperature":0.1,"model":"${model}",${MESSAGES}}`);
    expect(lastBody()).toBe(`{"temperature":0.1,"model":"${model}",${MESSAGES},"reasoning_effort":"high"}`);
  },
);

test('names of the slot itself mean no preset, and one that does not exist is refused', async () => {
  for (const model of ['primary', 'gpt', 'primary-model']) {
    const body = `{"model":"${model}",${MESSAGES} }\n`;
    expect((await post(gateway.port, CHAT, body)).status).toBe(200);
    expect(lastBody()).toBe(body);
  }
  const reply = await post(gateway.port, CHAT, `{"model":"primary:none",${MESSAGES}}`);
  expect([reply.status, errorOf(reply.text).code]).toEqual([404, 'model.not_found']);
});

test('a body of several megabytes is read as a whole before it is changed', async () => {
  const start = `{"model":"primary:long","messages":[{"role":"user","content":"${'é'.repeat(1_500_000)}"}],"seed":`;
  const req = begin(gateway.port, CHAT, { 'transfer-encoding': 'chunked' });
  req.write(start);
  await until(() => gateway.gateway.load().bufferedBytes > 2_000_000);
  expect(upstream.seen).toEqual([]);
  req.end('12345} ');
  const res = await responseOf(req);
  res.resume();
  expect(res.statusCode).toBe(200);
  expect(lastBody() === `${start}7} `).toBe(true);
});

test('a completion that is cut is refused, however large it is', async () => {
  const req = begin(gateway.port, '/v1/completions', { 'transfer-encoding': 'chunked' });
  req.write(`{"model":"primary:long","prompt":"${'x'.repeat(2_000_000)}"`);
  await until(() => gateway.gateway.load().bufferedBytes > 1_500_000);
  req.end();
  const res = await responseOf(req);
  res.resume();
  expect(res.statusCode).toBe(400);
  expect(upstream.seen).toEqual([]);
});

test('a request that waits has the preset of its arrival, once', async () => {
  publishSlot(false);
  const waiting = post(gateway.port, CHAT, `{"model":"gpt-think",${MESSAGES}}`);
  await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 1);
  publish(gateway.board, {
    name: 'primary',
    presets: { think: { set: { temperature: 2 } } },
    targets: [{ workload: 'w', port: upstream.port }],
  });
  expect((await waiting).status).toBe(200);
  expect(lastBody()).toBe(`{"model":"gpt-think",${MESSAGES},"temperature":0.6,"reasoning_effort":"high"}`);
});

test('a form cannot have one', async () => {
  const form = '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nprimary:think\r\n--b--\r\n';
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const reply = await post(gateway.port, '/v1/audio/transcriptions', form, { headers });
  expect([reply.status, errorOf(reply.text).message]).toEqual([400, 'The preset "think" cannot change a form: send the name of the slot']);
});

test('are listed as models, with what they set', async () => {
  const list: { data: { id: string; preset?: unknown }[] } = JSON.parse(await (await fetch(`${gateway.url}/v1/models`)).text());
  expect(list.data.map(({ id }) => id)).toEqual(['primary-model', 'gpt', 'primary:think', 'gpt-think', 'primary:long']);
  const preset = { name: 'think', set: { temperature: 0.6 }, force: { reasoning_effort: 'high' } };
  expect(list.data.map((each) => each.preset)).toEqual([
    undefined,
    undefined,
    preset,
    preset,
    { name: 'long', set: {}, force: { seed: 7 } },
  ]);
  expect(await (await fetch(`${gateway.url}/v1/models/gpt:think`)).json()).toMatchObject({ id: 'gpt:think', slot: 'primary', preset });
});
