/** Requests of callers with limits, through the whole gateway: what is refused, what the client learns, and what it sees. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccessDecision } from '../../src/auth/decide/decide-access.ts';
import type { CallerLimits } from '../../src/schema/words/caller-limits.ts';
import { DISABLED, PARK, publish, slotName } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post } from './support/client.ts';
import { startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

let limits: CallerLimits | undefined;
let gateway: GatewayFixture;
let upstream: FakeUpstream;

const authorize = (): AccessDecision => ({ ok: true, caller: { key: 'token:1a2b3c4d', identity: 'guest', scope: 'v1-only', limits } });

beforeEach(async () => {
  expect.hasAssertions();
  limits = undefined;
  upstream = await startUpstream();
  gateway = await startGateway({ authorize, dialects: true });
  const targets = [{ workload: 'w', port: upstream.port }];
  publish(
    gateway.board,
    { name: 'primary', aliases: ['gpt'], presets: { think: { set: { temperature: 1 }, aliases: ['gpt-think'] } }, targets },
    { name: 'second', model: 'primary-model', targets },
    { name: 'embed', capabilities: ['embedding'], targets },
  );
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  await upstream.kill();
});

const chat = async (model?: string, more: object = {}) => await post(gateway.port, CHAT, chatBody({ model, ...more }));
const ratelimits = (headers: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^(?:x-ratelimit|retry)/.test(name)));

describe('Requests in a minute', () => {
  test('are answered up to the limit, with what remains; then 429 says when there is room again', async () => {
    limits = { requests_per_minute: 2 };
    const first = await chat();
    expect(ratelimits(first.headers)).toEqual({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': expect.stringMatching(/^6[01]s$/),
    });
    expect((await chat()).status).toBe(200);
    const refused = await chat();
    expect([refused.status, errorOf(refused.text)]).toMatchObject([
      429,
      { code: 'limit.requests', type: 'rate_limit_error', origin: 'gateway' },
    ]);
    expect(errorOf(refused.text).message).toContain('"requests_per_minute"');
    const ms = Number(refused.headers['retry-after-ms']);
    expect(ms).toBeGreaterThan(58_000);
    expect(ms).toBeLessThanOrEqual(61_000);
    expect(refused.headers['retry-after']).toBe(String(Math.ceil(ms / 1000)));
    expect(upstream.seen).toHaveLength(2);
  });

  test('count for each caller, and an answer without limits has no such headers', async () => {
    const reply = await chat();
    expect([reply.status, ratelimits(reply.headers)]).toEqual([200, {}]);
    expect(gateway.finished.at(-1)).toMatchObject({ caller: 'token:1a2b3c4d' });
  });

  test('count in the dialect of each path', async () => {
    limits = { requests_per_minute: 1 };
    await chat();
    const body = JSON.stringify({ model: 'primary', max_tokens: 1, messages: [] });
    const reply = await post(gateway.port, '/v1/messages', body);
    expect([reply.status, JSON.parse(reply.text)]).toMatchObject([429, { type: 'error', error: { type: 'rate_limit_error' } }]);
    const ollama = await post(gateway.port, '/ollama/api/chat', chatBody());
    expect([ollama.status, JSON.parse(ollama.text)]).toEqual([429, { error: expect.stringContaining('requests_per_minute') }]);
  });
});

describe('Requests in flight', () => {
  test('include those that wait for a model, and one that leaves makes room', async () => {
    limits = { max_in_flight: 1 };
    publish(gateway.board, { name: 'primary', admission: PARK });
    const waiting = begin(gateway.port, CHAT, {});
    waiting.end(chatBody());
    await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 1);
    const refused = await chat('primary');
    expect([refused.status, errorOf(refused.text).code, refused.headers['retry-after']]).toEqual([429, 'limit.in_flight', '1']);
    waiting.destroy();
    await until(() => gateway.gateway.load().requests === 0);
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    expect((await chat('primary')).status).toBe(200);
    expect((await chat('primary')).status).toBe(200);
  });

  test('do not count a request that was refused for another reason', async () => {
    limits = { max_in_flight: 1 };
    expect((await chat('unknown')).status).toBe(404);
    expect((await post(gateway.port, CHAT, '{')).status).toBe(400);
    expect((await chat()).status).toBe(200);
  });
});

describe('Tokens', () => {
  test('of a stream whose server reports none are counted as its events', async () => {
    limits = { tokens_per_minute: 2000 };
    const remaining = async (): Promise<number> =>
      Number((await chat(undefined, { stream: true })).headers['x-ratelimit-remaining-tokens']);
    const [first, second, third] = [await remaining(), await remaining(), await remaining()];
    const events = 7;
    const prompt = Math.ceil(Buffer.byteLength(chatBody({ model: undefined, stream: true })) / 4);
    // The second one expects as much of its answer as the first one had.
    expect([2000 - first, first - second, second - third]).toEqual([prompt, prompt + 2 * events, prompt + events]);
  });

  test('that the server reports count, not those that were estimated', async () => {
    const { usage }: { usage: { prompt_tokens: number; completion_tokens: number } } = JSON.parse((await chat()).text);
    const each = usage.prompt_tokens + usage.completion_tokens;
    limits = { tokens_per_minute: 2000 };
    const remaining = async (): Promise<number> => Number((await chat()).headers['x-ratelimit-remaining-tokens']);
    const [first, second, third] = [await remaining(), await remaining(), await remaining()];
    expect(second - third).toBe(each);
    expect(first).toBeLessThan(2000);
    limits = { tokens_per_minute: 3 * each };
    const refused = await chat();
    expect([refused.status, errorOf(refused.text).code]).toEqual([429, 'limit.tokens']);
    expect(errorOf(refused.text).message).toContain(`has used ${3 * each} tokens within a minute; its limit is ${3 * each}`);
  });
});

describe('Models', () => {
  const list = async (): Promise<readonly string[]> => {
    const body: { data: { id: string }[] } = JSON.parse(await (await fetch(`${gateway.url}/v1/models`)).text());
    return body.data.map(({ id }) => id);
  };

  test('a slot stands for all of its names, an alias or id for itself', async () => {
    limits = { models: ['primary'] };
    for (const model of ['primary', 'primary-model', 'gpt', 'gpt-think', undefined])
      expect([model, (await chat(model)).status]).toEqual([model, 200]);
    expect(await list()).toEqual(['primary-model', 'gpt', 'primary:think', 'gpt-think']);
    limits = { models: ['gpt', 'embed'] };
    expect((await chat('gpt')).status).toBe(200);
    for (const model of ['primary', 'gpt-think', 'primary-model', 'second', undefined])
      expect([model, (await chat(model)).status]).toEqual([model, 403]);
    expect(await list()).toEqual(['gpt', 'embed-model']);
  });

  test('others do not exist: a refusal is the same whether there is such a model or not', async () => {
    limits = { models: ['gpt'] };
    const messages = ['second', 'nothing'].map(async (model) => {
      const reply = await chat(model);
      return [reply.status, errorOf(reply.text).code, errorOf(reply.text).message.replace(model, 'X')];
    });
    const [one, other] = await Promise.all(messages);
    expect(one).toEqual(other);
    expect(one).toEqual([
      403,
      'limit.model',
      'The caller may not use "X", because its limits name others ("models"); models for chat: "gpt"',
    ]);
    expect((await fetch(`${gateway.url}/v1/models/second`)).status).toBe(404);
    expect((await fetch(`${gateway.url}/v1/models/gpt`)).status).toBe(200);
    const tags: { models: { name: string }[] } = JSON.parse(await (await fetch(`${gateway.url}/ollama/api/tags`)).text());
    expect(tags.models.map(({ name }) => name)).toEqual(['gpt']);
  });

  test('a model of several slots goes to those that the caller may use', async () => {
    limits = { models: ['second'] };
    expect((await chat('primary-model')).status).toBe(200);
    expect(gateway.finished.at(-1)?.slot).toBe('second');
  });
});

test('a request leaves its slot only for one that its caller may use', async () => {
  const second = { name: 'second', targets: [{ workload: 'w', port: upstream.port }] };
  publish(gateway.board, { name: 'primary', admission: DISABLED, fallback: { to: ['second'] } }, second);
  limits = { models: ['primary'] };
  const refused = await chat('primary');
  expect([refused.status, errorOf(refused.text).code]).toEqual([503, 'slot.disabled']);
  limits = { models: ['primary', 'second'] };
  const moved = await chat('primary');
  expect([moved.status, moved.headers['x-svc-slot']]).toEqual([200, 'second']);
});

describe('Tokens of an answer', () => {
  const sent = (): Record<string, unknown> => JSON.parse(upstream.seen.at(-1)?.body.toString() ?? '');

  test.each([
    [{}, { max_tokens: 100 }],
    [{ max_tokens: 50 }, { max_tokens: 50 }],
    [{ max_tokens: 500 }, { max_tokens: 100 }],
    [{ max_tokens: null }, { max_tokens: 100 }],
    [{ max_tokens: -1 }, { max_tokens: 100 }],
    [{ max_tokens: '500' }, { max_tokens: 100 }],
    [{ max_completion_tokens: 20 }, { max_completion_tokens: 20 }],
    [
      { max_completion_tokens: 1e9, n_predict: 7 },
      { max_completion_tokens: 100, n_predict: 7 },
    ],
    // Only a field of the top level is a limit.
    [{ tools: [{ max_tokens: 5 }] }, { tools: [{ max_tokens: 5 }], max_tokens: 100 }],
    [{ stop: 'max_tokens' }, { stop: 'max_tokens', max_tokens: 100 }],
  ])('are limited in a body with %j', async (asked, wanted) => {
    limits = { max_output_tokens: 100 };
    expect((await chat('primary', asked)).status).toBe(200);
    const { model: _model, messages: _messages, ...rest } = sent();
    expect(rest).toEqual(wanted);
  });

  test('are limited also where the key of the body is written with escapes', async () => {
    limits = { max_output_tokens: 100 };
    await post(gateway.port, '/v1/chat/completions', String.raw`{"model":"primary","messages":[],"max\u005ftokens":5000}`);
    expect(sent()).toEqual({ model: 'primary', messages: [], max_tokens: 100 });
  });

  test.each([
    ['{}', {}],
    [' { \n} \n', {}],
    ['{"messages":[{"role":"user","content":"}"}]\n}\n', { messages: [{ role: 'user', content: '}' }] }],
    [`{"messages":[],"user":"${'u'.repeat(300_000)}" }`, { messages: [], user: 'u'.repeat(300_000) }],
  ])('are limited in the body %.40j, which stays valid', async (text, asked) => {
    limits = { max_output_tokens: 100 };
    expect((await post(gateway.port, '/v1/chat/completions', text)).status).toBe(200);
    expect(sent()).toEqual({ ...asked, max_tokens: 100 });
  });

  test('are limited on every path by its own key, and with a preset', async () => {
    limits = { max_output_tokens: 100 };
    await post(gateway.port, '/v1/responses', JSON.stringify({ model: 'primary', input: 'Hi' }));
    expect(sent()).toMatchObject({ max_output_tokens: 100 });
    await chat('primary:think', { max_tokens: 5000 });
    expect(sent()).toMatchObject({ temperature: 1, max_tokens: 100 });
    await post(gateway.port, '/v1/embeddings', JSON.stringify({ model: 'embed', input: 'Hi' }));
    expect(sent()).toEqual({ model: 'embed', input: 'Hi' });
  });
});
