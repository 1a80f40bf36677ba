import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI, {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
} from 'openai';
import { ApiError } from '../../../src/api/server/answer.ts';
import type { Authorize } from '../../../src/auth/check-token.ts';
import type { Admission } from '../../../src/reconciler/board.ts';
import type { Route } from '../../../src/api/server/define-route.ts';
import { DISABLED, PARK, publish, type SlotSketch } from '../../gateway/support/board-fixture.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const STALLED: Admission = { kind: 'refuse', code: 'slot.stalled', message: 'Correct it' };
const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];
const CONFLICT: Route = {
  method: 'POST',
  path: '/v1/conflict',
  access: 'open',
  summary: '',
  tag: '',
  handler() {
    throw new ApiError('slot.conflict', 'Read the slot again');
  },
};

let decide: Authorize = () => ({ ok: true });
let gateway: GatewayFixture;
let upstream: FakeUpstream;
let odd: FakeUpstream;
let oddAnswer: Answer = (_request, res) => void res.end();
let attempts = 0;
let client: OpenAI;
let patient: OpenAI;

const served = (): SlotSketch[] => [
  { name: 'primary', model: 'dir/a.gguf', aliases: ['gpt-4o'], capabilities: ['chat'], targets: [{ workload: 'a', port: upstream.port }] },
  { name: 'embed', capabilities: ['embedding'], targets: [{ workload: 'b', port: upstream.port }] },
  { name: 'odd', targets: [{ workload: 'c', port: odd.port }] },
  { name: 'loading', admission: PARK },
  { name: 'off', admission: DISABLED },
];

beforeAll(async () => {
  upstream = await startUpstream({ text: 'The quick brown fox' });
  odd = await startUpstream({ answer: (request, res, socket) => oddAnswer(request, res, socket) });
  gateway = await startGateway({
    authorize: (access, req) => decide(access, req),
    routes: [CONFLICT],
    settings: { SVC_PARK_TIMEOUT: '500ms', SVC_PARK_LIMIT: '1', SVC_BODY_LIMIT: '1Mi' },
  });
  publish(gateway.board, ...served());
  const options = { apiKey: 'none', baseURL: `${gateway.url}/v1` };
  client = new OpenAI({ ...options, maxRetries: 0 });
  patient = new OpenAI({
    ...options,
    maxRetries: 2,
    fetch: (url, init) => {
      attempts += 1;
      return fetch(url, init);
    },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
  await odd.kill();
});
afterEach(() => {
  decide = () => ({ ok: true });
  attempts = 0;
});

const ask = (model: string, by = client): Promise<OpenAI.ChatCompletion> => by.chat.completions.create({ model, messages: MESSAGES });

async function failure(promise: Promise<unknown>): Promise<APIError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof APIError) return error;
    throw error;
  }
  throw new Error('The request did not fail');
}

describe('the official client', () => {
  test('chats and reads the request id', async () => {
    const { data, request_id: id } = await client.chat.completions.create({ model: 'gpt-4o', messages: MESSAGES }).withResponse();
    expect(data.choices[0]?.message.content).toBe('The quick brown fox');
    expect(id).toMatch(/^req_/);
  });

  test('streams, with usage at the end', async () => {
    const stream = await client.chat.completions.create({
      model: 'dir/a.gguf',
      messages: MESSAGES,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: unknown;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    expect([text, usage]).toEqual(['The quick brown fox ', { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }]);
  });

  test('creates embeddings in its default encoding, which is base64', async () => {
    const answer = await client.embeddings.create({ model: 'embed', input: 'Hi' });
    expect(answer.data[0]?.embedding).toEqual([0.5, -0.25, 1]);
    expect(upstream.seen.at(-1)?.body.toString()).toContain('"encoding_format":"base64"');
    const floats = await client.embeddings.create({ model: 'embed', input: 'Hi', encoding_format: 'float' });
    expect(floats.data[0]?.embedding).toEqual([0.5, -0.25, 1]);
  });

  test('lists models by id and alias, including those that are loading, without disabled ones', async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toEqual(['dir/a.gguf', 'gpt-4o', 'embed-model', 'odd-model', 'loading-model']);
    expect(await client.models.retrieve('dir/a.gguf')).toMatchObject({
      id: 'dir/a.gguf',
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'svc',
      slot: 'primary',
    });
    expect(await client.models.retrieve('primary')).toMatchObject({ id: 'primary', slot: 'primary' });
  });

  test('tells of a model that several slots share what a request would meet, and lists all of them', async () => {
    const port = upstream.port;
    const shared: readonly SlotSketch[] = [
      { name: 'first', model: 'shared', capabilities: ['chat'], admission: PARK },
      { name: 'lost', model: 'shared', capabilities: ['rerank'], admission: STALLED, state: 'offline' },
      { name: 'off', model: 'shared', admission: DISABLED, state: 'offline' },
      { name: 'second', model: 'shared', capabilities: ['embedding'], targets: [{ workload: 'd', port }] },
    ];
    publish(gateway.board, ...shared);
    const entry = {
      id: 'shared',
      slot: 'second',
      state: 'ready',
      slots: [
        { name: 'second', state: 'ready' },
        { name: 'first', state: 'starting' },
        { name: 'lost', state: 'offline' },
      ],
      capabilities: ['embedding', 'chat', 'rerank'],
    };
    expect(await client.models.retrieve('shared')).toMatchObject(entry);
    const { data } = await client.models.list();
    expect(data).toEqual([expect.objectContaining(entry)]);
    // Nothing answers: the slot that a request waits for comes before the one that refuses it.
    publish(gateway.board, ...shared.slice(0, 2).toReversed());
    expect(await client.models.retrieve('shared')).toMatchObject({ slot: 'first', state: 'starting' });
    // The name of a slot means that slot alone.
    expect(await client.models.retrieve('lost')).toMatchObject({ slot: 'lost', state: 'offline', slots: [{ name: 'lost' }] });
    publish(gateway.board, ...served());
  });

  test('stops the upstream when it stops reading', async () => {
    oddAnswer = (_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
    };
    const before = odd.left();
    const stream = await client.chat.completions.create({ model: 'odd', messages: MESSAGES, stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices[0]?.delta.content).toBe('a');
      break;
    }
    await until(() => odd.left() === before + 1);
    const abort = new AbortController();
    const pending = failure(client.chat.completions.create({ model: 'odd', messages: MESSAGES }, { signal: abort.signal }));
    await until(() => odd.busy() === 1);
    abort.abort();
    await pending;
    await until(() => odd.left() === before + 2);
  });

  test('throws if the upstream dies in the middle of a stream', async () => {
    oddAnswer = (_request, res, socket) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
      setTimeout(() => socket.resetAndDestroy(), 10);
    };
    const stream = await client.chat.completions.create({ model: 'odd', messages: MESSAGES, stream: true });
    const read = async (): Promise<void> => {
      for await (const chunk of stream) void chunk;
    };
    expect((await failure(read())).message).toContain('The upstream closed the connection before its answer was complete');
  });
});

describe('the official client’s error', () => {
  const upstreamAnswers = (status: number): void => {
    oddAnswer = (_request, res) => sendJson(res, status, { error: { message: 'the message', type: 'x_error', code: status } });
  };

  test.each([
    [400, BadRequestError],
    [401, AuthenticationError],
    [403, PermissionDeniedError],
    [404, NotFoundError],
    [409, ConflictError],
    [422, UnprocessableEntityError],
    [429, RateLimitError],
    [500, InternalServerError],
    [503, InternalServerError],
  ])('of an upstream’s %s has its class and message', async (status, kind) => {
    upstreamAnswers(status);
    const error = await failure(ask('odd'));
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ status, type: 'x_error', code: null, param: null, requestID: expect.stringMatching(/^req_/) });
    expect(error.message).toContain('the message');
  });

  test.each([
    ['auth.required', AuthenticationError],
    ['auth.invalid', AuthenticationError],
    ['auth.scope', PermissionDeniedError],
  ] as const)('of %s has its class', async (code, kind) => {
    decide = () => ({ ok: false, code, message: 'Send a token' });
    const error = await failure(ask('primary'));
    expect(error).toBeInstanceOf(kind);
    expect(error.code).toBe(code);
  });

  test.each([
    ['request.invalid', BadRequestError, () => client.post('/chat/completions', { body: [] })],
    ['model.not_found', NotFoundError, () => ask('zzz')],
    ['route.not_found', NotFoundError, () => client.post('/nothing', { body: {} })],
    ['slot.conflict', ConflictError, () => client.post('/conflict', { body: {} })],
    ['request.too_large', APIError, () => client.post('/chat/completions', { body: { pad: 'x'.repeat(2_000_000) } })],
    ['model.unsupported', BadRequestError, () => ask('embed')],
    ['slot.disabled', InternalServerError, () => ask('off')],
    ['slot.loading', InternalServerError, () => ask('loading')],
  ])('of %s has its class and code', async (code, kind, send) => {
    const error = await failure(send());
    expect(error).toBeInstanceOf(kind);
    expect(error).not.toBeInstanceOf(APIConnectionError);
    expect(error.code).toBe(code);
  });

  test('for a full queue is a rate limit error with a time to retry', async () => {
    const first = failure(ask('loading'));
    await until(() => gateway.traffic.read().demand.get(gateway.board.current().names.get('loading')?.[0] ?? neverSlot())?.waiting === 1);
    const error = await failure(ask('loading'));
    expect([error.code, error.headers?.get('retry-after')]).toEqual(['slot.queue_full', expect.stringMatching(/^([5-9]|10)$/)]);
    expect(error).toBeInstanceOf(RateLimitError);
    await first;
  });

  test('for a loading slot says when to retry, within the limit of the SDKs', async () => {
    const error = await failure(ask('loading'));
    const after = Number(error.headers?.get('retry-after'));
    expect(after).toBeGreaterThan(0);
    expect(after).toBeLessThanOrEqual(60);
    expect(error.headers?.get('x-should-retry')).toBeNull();
  });

  test.each([
    ['off', 1],
    ['zzz', 1],
    ['embed', 1],
  ])('on "%s" is not retried, because that cannot help', async (model, count) => {
    const error = await failure(ask(model, patient));
    expect(error.headers?.get('retry-after')).toBeNull();
    expect(attempts).toBe(count);
  });

  test('for a dead upstream is 502 and is retried', async () => {
    oddAnswer = (_request, _res, socket) => void socket.end('nonsense\r\n\r\n');
    const error = await failure(ask('odd', patient));
    expect([error.status, error.code, attempts]).toEqual([502, 'upstream.failed', 3]);
  });
});

function neverSlot(): never {
  throw new Error('The board has no such slot');
}
