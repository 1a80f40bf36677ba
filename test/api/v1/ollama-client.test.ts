/** Ollama's dialect with its official client, in front of a server that speaks OpenAI's. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Ollama } from 'ollama';
import type { ServerResponse } from 'node:http';
import { DISABLED, PARK, publish, slotName } from '../../gateway/support/board-fixture.ts';
import { post } from '../../gateway/support/client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const ASKED = { model: 'primary', messages: [{ role: 'user', content: 'Hi' }] };
const PNG = 'iVBORw0KGgo=';
let gateway: GatewayFixture;
let upstream: FakeUpstream;
let plain: FakeUpstream;
let answer: Answer;
let client: Ollama;

beforeAll(async () => {
  upstream = await startUpstream({ answer: (request, res, socket) => answer(request, res, socket) });
  plain = await startUpstream({ text: 'The quick brown fox' });
  gateway = await startGateway({ dialects: true });
  client = new Ollama({ host: `${gateway.url}/ollama` });
});
beforeEach(() => {
  expect.hasAssertions();
  publish(
    gateway.board,
    { name: 'primary', aliases: ['gpt'], presets: { think: { set: { seed: 7 } } }, targets: [{ workload: 'w', port: plain.port }] },
    { name: 'odd', targets: [{ workload: 'o', port: upstream.port }] },
    { name: 'off', admission: DISABLED },
    { name: 'tts', capabilities: ['speech'] },
  );
});
afterEach(() => expect(gateway.faults).toEqual([]));
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
  await plain.kill();
});

const lastBody = (server: FakeUpstream): unknown => JSON.parse(server.seen.at(-1)?.body.toString() ?? '');
const send = (path: string, body: object) => post(gateway.port, `/ollama/api/${path}`, JSON.stringify(body));
const chunk = (res: ServerResponse, body: object): void => void res.write(`data: ${JSON.stringify(body)}\n\n`);
const delta = (fields: object, finish_reason: string | null = null): object => ({ choices: [{ index: 0, delta: fields, finish_reason }] });

test('chats, with counts and times', async () => {
  const reply = await client.chat({ ...ASKED, model: 'primary:latest' });
  expect(reply).toMatchObject({
    model: 'primary:latest',
    message: { role: 'assistant', content: 'The quick brown fox' },
    done: true,
    done_reason: 'stop',
  });
  expect([reply.prompt_eval_count, reply.eval_count]).toEqual([3, 5]);
  for (const span of [reply.total_duration, reply.eval_duration, reply.prompt_eval_duration]) expect(span).toBeGreaterThan(0);
  expect(Date.parse(String(reply.created_at))).toBeGreaterThan(0);
  expect(lastBody(plain)).toEqual({ ...ASKED, stream: false });
});

test('streams a chat, one line for each chunk', async () => {
  const parts: string[] = [];
  let last: unknown;
  for await (const part of await client.chat({ ...ASKED, stream: true })) {
    parts.push(part.message.content);
    last = part;
  }
  expect(parts).toEqual(['The ', 'quick ', 'brown ', 'fox ', '']);
  expect(last).toMatchObject({ done: true, done_reason: 'stop', prompt_eval_count: 3, eval_count: 5 });
  const reply = await send('chat', ASKED);
  expect([reply.headers['content-type'], reply.text.trimEnd().split('\n').length]).toEqual(['application/x-ndjson', 5]);
});

test('passes on options, formats, thinking, images, presets and tools', async () => {
  const messages = [
    { role: 'user', content: 'See', images: [PNG, '/9j/4AAQ'] },
    {
      role: 'assistant',
      content: '',
      thinking: 'Hm',
      tool_calls: [{ function: { name: 'a', arguments: { x: 1 } } }, { function: { name: 'b', arguments: {} } }],
    },
    { role: 'tool', content: '2', tool_name: 'b' },
    { role: 'tool', content: '1' },
  ];
  const options = { temperature: 0.5, num_predict: 9, num_ctx: 4096, stop: ['x'] };
  await client.chat({
    model: 'gpt:think',
    messages,
    options,
    format: { type: 'object' },
    think: 'high',
    tools: [{ type: 'function', function: { name: 'a' } }],
  });
  const image = (type: string, data: string) => ({ type: 'image_url', image_url: { url: `data:image/${type};base64,${data}` } });
  const call = (id: string, name: string, text: string) => ({ id, type: 'function', function: { name, arguments: text } });
  expect(lastBody(plain)).toEqual({
    model: 'gpt:think',
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'See' }, image('png', PNG), image('jpeg', '/9j/4AAQ')] },
      { role: 'assistant', content: '', reasoning_content: 'Hm', tool_calls: [call('call_1', 'a', '{"x":1}'), call('call_2', 'b', '{}')] },
      { role: 'tool', tool_call_id: 'call_2', content: '2' },
      { role: 'tool', tool_call_id: 'call_1', content: '1' },
    ],
    tools: [{ type: 'function', function: { name: 'a' } }],
    temperature: 0.5,
    max_tokens: 9,
    stop: ['x'],
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } },
    reasoning_effort: 'high',
    chat_template_kwargs: { enable_thinking: true, reasoning_effort: 'high' },
    stream: false,
    seed: 7,
  });
  await client.chat({ ...ASKED, format: 'json', think: false, options: { num_predict: -1 } });
  expect(lastBody(plain)).toEqual({
    ...ASKED,
    response_format: { type: 'json_object' },
    chat_template_kwargs: { enable_thinking: false },
    stream: false,
  });
});

test('reports thinking and calls of tools, whole and as they come', async () => {
  const tool_calls = [{ index: 0, id: 'x', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }];
  answer = (_request, res) =>
    sendJson(res, 200, { choices: [{ message: { content: null, reasoning_content: 'Hm', tool_calls }, finish_reason: 'tool_calls' }] });
  const whole = await client.chat({ ...ASKED, model: 'odd' });
  const called = [{ function: { index: 0, name: 'add', arguments: { a: 1 } } }];
  expect(whole.message).toEqual({ role: 'assistant', content: '', thinking: 'Hm', tool_calls: called });
  answer = (_request, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    chunk(res, delta({ reasoning_content: 'Hm' }));
    chunk(res, delta({ tool_calls: [{ index: 0, id: 'x', function: { name: 'add', arguments: '{"a"' } }] }));
    chunk(res, delta({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }));
    chunk(res, delta({}, 'tool_calls'));
    chunk(res, { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 }, timings: { prompt_ms: 1.5, predicted_ms: 2 } });
    res.end('data: [DONE]\n\n');
  };
  const parts: object[] = [];
  for await (const part of await client.chat({ ...ASKED, model: 'odd', stream: true })) parts.push(part);
  expect(parts).toMatchObject([
    { message: { content: '', thinking: 'Hm' }, done: false },
    { message: { tool_calls: called }, done: false },
    { message: { content: '' }, done: true, done_reason: 'stop', prompt_eval_duration: 1_500_000, eval_duration: 2_000_000, eval_count: 2 },
  ]);
});

test('generates, with and without the template of chats', async () => {
  const reply = await client.generate({ model: 'primary', prompt: 'Hi', system: 'Be brief', images: [PNG] });
  expect(reply).toMatchObject({ response: 'The quick brown fox', done: true, eval_count: 5 });
  expect(lastBody(plain)).toMatchObject({
    messages: [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: [{ text: 'Hi' }, {}] },
    ],
  });
  answer = (_request, res) => sendJson(res, 200, { choices: [{ text: ' and', finish_reason: 'length' }] });
  expect(await client.generate({ model: 'odd', prompt: 'Hi', raw: true })).toMatchObject({ response: ' and', done_reason: 'length' });
  expect(upstream.seen.at(-1)?.url).toBe('/v1/completions');
  await expect(client.generate({ model: 'odd', prompt: 'Hi', suffix: 'x' })).rejects.toMatchObject({
    status_code: 400,
    error: expect.stringContaining('/infill'),
  });
});

test('embeds', async () => {
  expect(await client.embed({ model: 'primary', input: ['a', 'b'] })).toMatchObject({ model: 'primary', embeddings: [[0.5, -0.25, 1]] });
  expect(lastBody(plain)).toEqual({ model: 'primary', input: ['a', 'b'], encoding_format: 'float' });
});

test('lists and describes what serves texts', async () => {
  expect((await client.list()).models.map(({ name }) => name)).toEqual(['primary-model', 'gpt', 'primary:think', 'odd-model']);
  expect((await client.ps()).models).toMatchObject([
    { name: 'primary-model', expires_at: '2318-01-01T00:00:00Z', details: { quantization_level: 'Q4_K_M', parameter_size: '7.6B' } },
    { name: 'odd-model' },
  ]);
  expect(await client.show({ model: 'gpt:think' })).toMatchObject({
    parameters: 'seed 7',
    capabilities: ['completion', 'embedding'],
    details: { family: 'gguf' },
  });
  await expect(client.show({ model: 'none' })).rejects.toMatchObject({
    status_code: 404,
    error: expect.stringContaining('"none" not found'),
  });
  expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/);
});

test('says that "keep_alive" is ignored, also where it is all that is asked', async () => {
  const reply = await send('generate', { model: 'primary', keep_alive: 0 });
  expect([JSON.parse(reply.text), reply.headers['x-svc-note']]).toEqual([
    expect.objectContaining({ response: '', done: true, done_reason: 'unload' }),
    expect.stringContaining('"keep_alive" is ignored'),
  ]);
  expect(JSON.parse((await send('chat', { model: 'primary' })).text)).toMatchObject({ done: true, done_reason: 'load' });
  expect((await send('chat', { model: 'none' })).status).toBe(404);
});

test('answers errors as texts, before and inside of a stream', async () => {
  await expect(client.chat({ ...ASKED, model: 'none' })).rejects.toMatchObject({
    status_code: 404,
    error: expect.stringContaining('Model "none" does not exist'),
  });
  await expect(client.chat({ ...ASKED, model: 'off' })).rejects.toMatchObject({ status_code: 503 });
  for (const [body, status] of [
    ['{', 400],
    ['{"model":1}', 400],
    ['{"model":"primary","messages":[{"role":5}]}', 400],
  ] as const) {
    const reply = await post(gateway.port, '/ollama/api/chat', body);
    expect([reply.status, typeof JSON.parse(reply.text).error]).toEqual([status, 'string']);
  }
  const missing = await send('pull', { model: 'x' });
  expect([missing.status, JSON.parse(missing.text)]).toEqual([404, { error: expect.stringContaining('There is no path') }]);
  for (const text of ['data: {"error":{"message":"Boom"}}\n\n', '']) {
    answer = (_request, res, socket) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      chunk(res, delta({ content: 'Hello' }));
      res.write(text, () => void setTimeout(() => socket.destroy(), 50));
    };
    const reply = await send('chat', { ...ASKED, model: 'odd' });
    const lines = reply.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([expect.objectContaining({ done: false }), { error: text === '' ? expect.stringMatching(/./) : 'Boom' }]);
  }
});

test('a client that leaves while its request waits is no fault', async () => {
  publish(gateway.board, { name: 'primary', admission: PARK });
  const leaving = new AbortController();
  const asked = fetch(`${gateway.url}/ollama/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ASKED),
    signal: leaving.signal,
  });
  await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 1);
  leaving.abort();
  await expect(asked).rejects.toThrow(/abort/i);
  await until(() => gateway.gateway.load().requests === 0);
  expect((await send('show', { model: 'primary' })).status).toBe(200);
});

test('a client that leaves ends the request', async () => {
  answer = (_request, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    chunk(res, delta({ content: 'Hello' }));
  };
  const left = upstream.left();
  const parts = await client.chat({ ...ASKED, model: 'odd', stream: true });
  await expect(
    (async () => {
      for await (const part of parts) if (part.message.content === 'Hello') parts.abort();
    })(),
  ).rejects.toThrow(/abort/i);
  await until(() => upstream.left() === left + 1 && gateway.gateway.load().requests === 0);
});
