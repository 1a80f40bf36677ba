/** The shapes of other APIs than OpenAI's, as the SDKs of those APIs see them. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { APIError, Anthropic } from '@anthropic-ai/sdk';
import { CohereClientV2, CohereError } from 'cohere-ai';
import { DISABLED, PARK, publish } from './support/board-fixture.ts';
import { post } from './support/client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

let gateway: GatewayFixture;
const upstreams: FakeUpstream[] = [];

beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  for (const upstream of upstreams.splice(0)) await upstream.kill();
});

async function answering(answer: Answer): Promise<FakeUpstream> {
  const upstream = await startUpstream({ answer });
  upstreams.push(upstream);
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  return upstream;
}

async function failureOf<T>(promise: Promise<T>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('the Messages API', () => {
  const HEADERS = { 'x-request-id': 'req_mine' };
  const client = (): Anthropic => new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0, defaultHeaders: HEADERS });
  const ASK: Anthropic.MessageCreateParamsNonStreaming = { model: 'primary', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] };
  const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'Hello' }] };

  async function errorOf(): Promise<{ readonly status: unknown; readonly type: unknown; readonly body: unknown; readonly id: unknown }> {
    const error = await failureOf(client().messages.create(ASK));
    if (!(error instanceof APIError)) throw new Error(`Not an error of the API: ${String(error)}`);
    return { status: error.status, type: error.type, body: error.error, id: error.requestID };
  }

  test('answers pass unchanged, with the request id where the SDK reads it', async () => {
    await answering((_request, res) => sendJson(res, 200, MESSAGE));
    const message = await client().messages.create(ASK);
    expect(message).toMatchObject(MESSAGE);
    expect(message._request_id).toBe('req_mine');
  });

  test('errors of the gateway have the shape and the types of the API', async () => {
    publish(gateway.board, { name: 'other', admission: PARK });
    expect(await errorOf()).toEqual({
      status: 404,
      type: 'not_found_error',
      id: 'req_mine',
      body: {
        type: 'error',
        error: expect.objectContaining({
          type: 'not_found_error',
          message: expect.any(String),
          code: 'model.not_found',
          origin: 'gateway',
        }),
        request_id: 'req_mine',
      },
    });
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    expect(await errorOf()).toMatchObject({ status: 503, type: 'overloaded_error' });
  });

  test('errors of the HTTP layer do too', async () => {
    const reply = await post(gateway.port, '/v1/messages', 'x', { headers: { 'content-type': 'text/plain' } });
    expect([reply.status, JSON.parse(reply.text), reply.headers['request-id']]).toEqual([
      415,
      expect.objectContaining({ type: 'error', request_id: reply.headers['x-request-id'] }),
      reply.headers['x-request-id'],
    ]);
  });

  test.each([
    [400, { error: { code: 400, message: 'too long', type: 'exceed_context_size_error', n_ctx: 1 } }, 'invalid_request_error', 'too long'],
    [400, { type: 'error', error: { type: 'invalid_request_error', message: 'no' } }, 'invalid_request_error', 'no'],
    [529, { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }, 'overloaded_error', 'busy'],
    [401, { error: { message: 'key', type: 'whatever', param: null, code: 'invalid_api_key' } }, 'authentication_error', 'key'],
    [429, { error: 'slow down' }, 'rate_limit_error', 'slow down'],
    [500, { error: { code: 500, message: 'broken', type: 'server_error' } }, 'api_error', 'broken'],
    [501, { error: { code: 501, message: 'cannot', type: 'not_supported_error' } }, 'api_error', 'cannot'],
  ])('errors of the server with status %s and body %j have them as well', async (status, body, type, message) => {
    await answering((_request, res) => sendJson(res, status, body));
    expect(await errorOf()).toMatchObject({
      status,
      type,
      id: 'req_mine',
      body: { type: 'error', error: { type, message }, request_id: 'req_mine' },
    });
  });

  test('an error inside a stream reaches the SDK', async () => {
    const upstream = await answering((_request, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(`event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: { ...MESSAGE, content: [] } })}\n\n`);
    });
    const stream = await client().messages.create({ ...ASK, stream: true });
    const types: string[] = [];
    const end = failureOf(
      (async () => {
        for await (const event of stream) types.push(event.type);
      })(),
    );
    await until(() => types.length === 1);
    await upstream.kill();
    const error = await end;
    expect(error instanceof APIError && error.error).toMatchObject({
      type: 'error',
      error: { type: 'api_error', code: 'upstream.failed' },
      request_id: 'req_mine',
    });
  });
});

test('an error that a server writes into a stream of the Messages API reaches the SDK in the shape of that API', async () => {
  await answering((_request, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('event: ping\ndata: {"type":"ping"}\n\n');
    setImmediate(() => void res.end('data: {"error":{"code":500,"message":"out of memory","type":"server_error"}}\n\n'));
  });
  const client = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
  const ask: Anthropic.MessageCreateParamsStreaming = {
    model: 'primary',
    max_tokens: 5,
    messages: [{ role: 'user', content: 'Hi' }],
    stream: true,
  };
  const stream = await client.messages.create(ask);
  const error = await failureOf(
    (async () => {
      for await (const event of stream) void event;
    })(),
  );
  expect(error instanceof APIError && error.error).toMatchObject({ type: 'error', error: { type: 'api_error', message: 'out of memory' } });
});

describe('/v2/rerank', () => {
  const client = (): CohereClientV2 => new CohereClientV2({ environment: gateway.url, token: 'none' });
  const ASK = { model: 'primary', query: 'a', documents: ['b', 'c', 'd'], topN: 2 };
  const LLAMA = {
    model: 'm',
    object: 'list',
    usage: { prompt_tokens: 9, total_tokens: 9 },
    results: [
      { index: 0, relevance_score: -1.5 },
      { index: 2, relevance_score: 3.25, document: 'd' },
    ],
  };

  test('gives the answer of a server in the shape of Cohere, best document first', async () => {
    const upstream = await answering((_request, res) => sendJson(res, 200, LLAMA));
    const answer = await client().rerank(ASK, { headers: { 'x-request-id': 'req_mine' } });
    expect(answer).toMatchObject({
      id: 'req_mine',
      results: [
        { index: 2, relevanceScore: 3.25 },
        { index: 0, relevanceScore: -1.5 },
      ],
      meta: { tokens: { inputTokens: 9 } },
    });
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/v1/rerank']);
    expect(JSON.parse(String(upstream.seen[0]?.body))).toMatchObject({
      model: 'primary',
      query: 'a',
      documents: ['b', 'c', 'd'],
      top_n: 2,
    });
  });

  test('gives errors of gateway and server a message that the SDK shows', async () => {
    await answering((_request, res) =>
      sendJson(res, 400, { error: { code: 400, message: 'too many documents', type: 'invalid_request_error' } }),
    );
    const error = await failureOf(client().rerank(ASK, { maxRetries: 0 }));
    expect(error instanceof CohereError && [error.statusCode, error.body]).toEqual([
      400,
      expect.objectContaining({ message: 'too many documents', error: expect.objectContaining({ origin: 'upstream' }) }),
    ]);
  });

  test.each([
    ['that is no JSON', 'text'],
    ['without results', '{"data":[]}'],
    ['with other results', '{"results":[{"index":0}]}'],
  ])('answers 502 to an answer %s', async (_what, text) => {
    await answering((_request, res) => void res.end(text));
    const reply = await post(gateway.port, '/v2/rerank', '{"model":"primary"}');
    expect([reply.status, JSON.parse(reply.text).error.code]).toEqual([502, 'upstream.failed']);
  });

  test('counts tokens and status like the other paths', async () => {
    await answering((_request, res) => sendJson(res, 200, LLAMA));
    await post(gateway.port, '/v2/rerank', '{"model":"primary"}');
    await until(() => gateway.finished.length > 0);
    expect(gateway.finished).toEqual([expect.objectContaining({ route: '/v2/rerank', status: 200, tokens: { input: 9, output: 0 } })]);
  });
});
