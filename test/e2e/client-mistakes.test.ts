/** Official SDKs, as their users set them up, make mistakes with the real service: each is told once, and no SDK sends the request again. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled } from '@openai/agents';
import { CohereClientV2 } from 'cohere-ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import OpenAI5 from 'openai-5';
import OpenAI6 from 'openai-6';
import { isAnswering, startService, type Service } from '../support/service.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const IMAGE = { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } } as const;
const SOUND = { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } } as const;
const TEXT = { type: 'text', text: 'What is this?' } as const;
/** The context of the demo model is shorter. */
const LONG = 'word '.repeat(20_000);

let service: Service;
let base = '';

beforeAll(async () => {
  service = await startService({ runtime: 'process' });
  base = `${service.url}/v1`;
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\naliases = ["gpt-4o"]\n');
  await service.save('embed', 'backend = "cpu"\n[model]\ndefault = "demo-embed"\n');
  for (const name of ['primary', 'embed']) await service.until(name, 'ready', isAnswering);
}, 180_000);
afterAll(async () => await service.dispose(), 60_000);

/** Requests on the API of models that the service has counted, whatever their end. */
async function requests(): Promise<number> {
  const text = await (await fetch(`${service.url}/api/metrics`)).text();
  const rows = text.matchAll(/^svc_requests_total\{[^}]*route="(?:\/v1\/|\/v2\/|none)[^}]*\} (\d+)/gm);
  return [...rows].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Sends a request that fails. Returns its error, and how many requests arrived. */
async function mistake(send: () => Promise<unknown>) {
  const before = await requests();
  const error: unknown = await send().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, status: statusOf(error), count: (await requests()) - before };
}

/** Each SDK has another name for the status. */
function statusOf(error: unknown): unknown {
  const of = (key: string): unknown => Reflect.get(Object(error), key);
  return of('status') ?? of('statusCode') ?? of('status_code');
}

const key = { apiKey: 'none' };
const openai = () => new OpenAI({ baseURL: base, ...key });
const userOf = (content: unknown) => ({ model: 'gpt-4o', messages: [{ role: 'user', content }] });
type Ask = (content: unknown) => Promise<unknown>;

/** Each sends a chat with its default number of retries. */
const CHATS: Readonly<Record<string, () => Ask>> = {
  'openai 7': () => (content) => openai().post('/chat/completions', { body: userOf(content) }),
  'openai 6': () => (content) => new OpenAI6({ baseURL: base, ...key }).post('/chat/completions', { body: userOf(content) }),
  'openai 5': () => (content) => new OpenAI5({ baseURL: base, ...key }).post('/chat/completions', { body: userOf(content) }),
  '@langchain/openai': () => {
    const model = new ChatOpenAI({ model: 'gpt-4o', ...key, configuration: { baseURL: base } });
    return (content) => model.invoke([new HumanMessage({ content: Array.isArray(content) ? content : String(content) })]);
  },
};

describe.each(Object.entries(CHATS))('%s', (_name, create) => {
  test.each([
    ['an image for a model that takes none', [TEXT, IMAGE], 'model.no_vision'],
    ['a recording for a model that takes none', [TEXT, SOUND], 'model.no_audio'],
    ['a conversation that is too long', LONG, 'context_length_exceeded'],
  ])('is told of %s once', async (_what, content, code) => {
    const { error, status, count } = await mistake(() => create()(content));
    expect({ status, count }).toEqual({ status: 400, count: 1 });
    expect(Reflect.get(Object(error), 'code')).toBe(code);
  });
});

test('missing messages are 400, in each version of the openai package', async () => {
  for (const client of [openai(), new OpenAI6({ baseURL: base, ...key }), new OpenAI5({ baseURL: base, ...key })]) {
    expect(await mistake(() => client.post('/chat/completions', { body: { model: 'gpt-4o' } }))).toMatchObject({ status: 400, count: 1 });
  }
});

test('@ai-sdk/openai takes each mistake for final', async () => {
  const model = createOpenAI({ baseURL: base, ...key }).chat('gpt-4o');
  const ask = (part: Parameters<typeof model.doGenerate>[0]['prompt']) => mistake(async () => await model.doGenerate({ prompt: part }));
  const image = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: PIXEL } } as const;
  for (const seen of [
    await ask([{ role: 'user', content: [TEXT, image] }]),
    await ask([{ role: 'user', content: [{ type: 'text', text: LONG }] }]),
    await ask([]),
  ]) {
    expect(seen).toMatchObject({ status: 400, count: 1, error: { isRetryable: false } });
  }
});

test('@anthropic-ai/sdk sends no mistake again', async () => {
  const client = new Anthropic({ baseURL: service.url, ...key });
  const source = { type: 'base64', media_type: 'image/png', data: PIXEL } as const;
  const ask = (content: Anthropic.MessageParam['content']) =>
    mistake(() => client.messages.create({ model: 'gpt-4o', max_tokens: 5, messages: [{ role: 'user', content }] }));
  expect(await ask([{ type: 'image', source }])).toMatchObject({ status: 400, count: 1, error: { type: 'invalid_request_error' } });
  // The embedded engine does not have this API.
  expect(await ask('Hello')).toMatchObject({ status: 400, count: 1 });
});

test('@openai/agents ends a run at the first mistake', async () => {
  setTracingDisabled(true);
  const model = new OpenAIChatCompletionsModel(openai(), 'gpt-4o');
  const agent = new Agent({ name: 'a', instructions: 'Answer', model });
  expect(await mistake(() => run(agent, LONG))).toMatchObject({ status: 400, count: 1 });
});

test('cohere-ai is told that no slot ranks', async () => {
  const client = new CohereClientV2({ environment: service.url, token: 'none' });
  const seen = await mistake(() => client.rerank({ model: 'gpt-4o', query: 'a', documents: ['b'] }));
  expect(seen).toMatchObject({ status: 400, count: 1 });
});

test('ollama shows what to use instead', async () => {
  const client = new Ollama({ host: service.url });
  const { error, status, count } = await mistake(() => client.list());
  expect({ status, count }).toEqual({ status: 404, count: 1 });
  expect(String(error)).toContain('There is no path "/api/tags": did you mean "/v1/models"?');
});

describe('a base URL without "/v1"', () => {
  test('is told at the first request', async () => {
    const client = new OpenAI({ baseURL: service.url, ...key });
    const { error, status, count } = await mistake(() => client.chat.completions.create({ model: 'gpt-4o', messages: [] }));
    expect({ status, count }).toEqual({ status: 404, count: 1 });
    expect(String(error)).toContain('did you mean "/v1/chat/completions": end the base URL with "/v1"?');
  });
});

describe('embeddings of another length', () => {
  test('are refused, and those of the length of the model are not', async () => {
    const ask = (dimensions: number) => () => openai().embeddings.create({ model: 'embed', input: 'a red fox', dimensions });
    expect(await mistake(ask(16))).toMatchObject({ status: 400, count: 1, error: { code: 'model.unsupported', param: 'dimensions' } });
    expect((await ask(64)()).data[0]?.embedding).toHaveLength(64);
    const chain = new OpenAIEmbeddings({ model: 'embed', dimensions: 16, ...key, configuration: { baseURL: base } });
    expect(await mistake(() => chain.embedQuery('a red fox'))).toMatchObject({ status: 400, count: 1 });
  });
});

test('an unknown model is told with the names and aliases for this kind of request', async () => {
  const { error, status, count } = await mistake(() => openai().embeddings.create({ model: 'text-embedding-3-small', input: 'a' }));
  expect({ status, count }).toEqual({ status: 404, count: 1 });
  expect(String(error)).toContain('models for embedding: "embed", "demo-embed"');
  const chat = await mistake(() => new ChatOpenAI({ model: 'gpt-9', ...key, configuration: { baseURL: base } }).invoke('Hello'));
  expect(chat).toMatchObject({ status: 404, count: 1 });
  expect(String(chat.error)).toContain('models for chat: "primary", "demo-fox", "gpt-4o"');
});

test('the list of models says what chats may use', async () => {
  const { data } = await openai().models.list();
  expect(data.find(({ id }) => id === 'demo-fox')).toMatchObject({ capabilities: ['chat', 'completion', 'structured_output'] });
  expect(data.find(({ id }) => id === 'demo-embed')).toMatchObject({ capabilities: ['embedding'] });
});
