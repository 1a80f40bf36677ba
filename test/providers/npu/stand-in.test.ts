/** The stand-in for FastFlowLM speaks its dialect with its traps. Tests of the provider prove nothing without that, so each trap is sprung here once, without the gateway. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { startFlm, type Flm, type FlmOptions } from '../../support/flm/flm-server.ts';
import { CHAT_MODELS, modelList } from '../../support/flm/model-list.ts';

let flm: Flm;
let crashes = 0;
afterEach(() => flm.close());

async function start(more: Partial<FlmOptions> = {}): Promise<void> {
  crashes = 0;
  flm = await startFlm({ host: '127.0.0.1', port: 0, model: 'llama3.2:1b', asr: true, embed: true, crash: () => (crashes += 1), ...more });
}

async function ask(path: string, options: RequestInit = {}): Promise<readonly [number, unknown]> {
  const answer = await fetch(`http://127.0.0.1:${flm.port}${path}`, options);
  return [answer.status, JSON.parse(await answer.text())];
}
const post = async (path: string, body: object, signal?: AbortSignal) =>
  ask(path, { method: 'POST', body: JSON.stringify(body), ...(signal === undefined ? {} : { signal }) });
const chat = async (content: string, more: object = {}) => post('/v1/chat/completions', { messages: [{ role: 'user', content }], ...more });
const transcribe = async (fields: Readonly<Record<string, string>>, header = 'Content-Disposition') => {
  const part = (name: string, value: string): string => `--b\r\n${header}: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const body = `${Object.entries({ file: 'RIFFxxxx', ...fields })
    .map(([name, value]) => part(name, value))
    .join('')}--b--\r\n`;
  return ask('/v1/audio/transcriptions', { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=b' }, body });
};

describe('errors', () => {
  test('have the status 200, as a text or as an object', async () => {
    await start();
    expect(await chat('single')).toEqual([200, { error: expect.any(String) }]);
    expect(await chat('throw')).toEqual([200, { error: { message: 'bad_alloc', type: 'server_error', code: 500 } }]);
  });

  test('have the status 400 if their code is 400', async () => {
    await start();
    expect(await chat('too long')).toEqual([400, { error: expect.objectContaining({ code: 400 }) }]);
  });

  test('are "Not Found" for a path that it does not know, and a query is part of the path', async () => {
    await start();
    for (const path of ['/health', '/v1/models?limit=1']) expect(await ask(path)).toEqual([404, { error: 'Not Found' }]);
    expect(await post('/v1/chat/completions?x=1', { messages: [] })).toEqual([404, { error: 'Not Found' }]);
  });

  test('are a body "null" with status 200 for what was not loaded', async () => {
    await start({ asr: false, embed: false });
    expect(await post('/v1/embeddings', { model: 'embed-gemma:300m', input: 'a' })).toEqual([200, null]);
    expect(await transcribe({ model: 'whisper-v3:turbo' })).toEqual([200, null]);
  });
});

describe('one request computes at a time', () => {
  test('the others wait, and beyond the queue they get 503', async () => {
    await start({ queueLength: 1 });
    const first = chat('wait 300');
    await until(() => flm.most() === 1);
    expect(await ask('/api/npu/status')).toEqual([200, expect.objectContaining({ npu_available: false, active_requests: 1 })]);
    const others = await Promise.all([chat('b'), chat('c'), chat('d')]);
    const refused = [503, { error: expect.stringContaining('request queue is full (limit: 1)') }];
    expect(others.filter(([status]) => status !== 200)).toEqual([refused, refused]);
    expect([(await first)[0], flm.most()]).toEqual([200, 1]);
  });

  test('a connection beyond the limit is closed without a word', async () => {
    await start({ connections: 1 });
    const first = chat('wait 80');
    await until(() => flm.most() === 1);
    await expect(ask('/v1/models')).rejects.toThrow();
    expect((await first)[0]).toBe(200);
  });
});

describe('it crashes', () => {
  test.each([['while its request computes'], ['while its request waits']])('if a client leaves %s', async (when) => {
    await start();
    const first = when.includes('waits') ? chat('wait 200').catch(() => undefined) : undefined;
    if (first !== undefined) await until(() => flm.most() === 1);
    const leaving = new AbortController();
    const body = { messages: [{ role: 'user', content: 'wait 200' }] };
    const left = post('/v1/chat/completions', body, leaving.signal).catch(() => undefined);
    await until(() => flm.most() === 1);
    setTimeout(() => leaving.abort(), 30);
    await left;
    await until(() => crashes > 0);
    await first;
    expect(flm.mishaps[0]).toMatch(/^The client of POST \/v1\/chat\/completions left/);
  });

  test.each([
    ['a preflight of a browser', '/v1/chat/completions', 'OPTIONS'],
    ['cancelling', '/api/cancel', 'POST'],
  ])('by %s', async (_what, path, method) => {
    await start();
    await expect(ask(path, { method })).rejects.toThrow();
    expect(crashes).toBeGreaterThan(0);
  });
});

test('another model in a chat unloads the present one, and downloads', async () => {
  await start();
  expect(await chat('hi', { model: 'qwen3:4b' })).toEqual([200, expect.objectContaining({ model: 'qwen3:4b' })]);
  expect(flm.mishaps).toEqual(['Downloads "qwen3:4b"']);
});

test('a "request_id" that is no text ends a thread: the NPU is never free again', async () => {
  await start();
  const body = { messages: [{ role: 'user', content: 'hi' }], request_id: 5 };
  void post('/v1/chat/completions', body).catch(() => undefined);
  await until(() => flm.mishaps.includes('A thread ended'));
  expect(await ask('/api/npu/status')).toEqual([200, expect.objectContaining({ npu_available: false })]);
});

test('the list of models names all that it could fetch, and not what is loaded', async () => {
  await start();
  const [, listed] = await ask('/v1/models');
  expect(listed).toMatchObject({ data: CHAT_MODELS.map((id) => ({ id })) });
  expect(CHAT_MODELS.length).toBeGreaterThan(1);
});

test('embeddings count no tokens, and want a model and texts', async () => {
  await start();
  expect(await post('/v1/embeddings', { model: 'm', input: ['a'] })).toEqual([
    200,
    expect.objectContaining({ usage: { prompt_tokens: 0, total_tokens: 0 } }),
  ]);
  expect(await post('/v1/embeddings', { input: 'a' })).toEqual([200, { error: expect.stringContaining('null') }]);
  expect(await post('/v1/embeddings', { model: 'm', input: [1, 2] })).toEqual([200, { error: expect.stringContaining('number') }]);
});

test('a transcription has one format, and names of headers have one spelling', async () => {
  await start();
  const text = [200, { model: 'm', text: ' Heard 8 bytes.' }];
  for (const format of ['json', 'text', 'srt']) expect(await transcribe({ model: 'm', response_format: format })).toEqual(text);
  expect(await transcribe({ model: 'm' }, 'content-disposition')).toEqual([200, { error: expect.objectContaining({ code: 500 }) }]);
});

test('the list on the command line has warnings before it, and no field for what a model is for', () => {
  const [warning = '', ...rest] = modelList().split('\n');
  expect(warning).toMatch(/^\[WARNING\]/);
  const { models }: { models: Readonly<Record<string, unknown>>[] } = JSON.parse(rest.join('\n'));
  for (const each of models) expect(Object.keys(each)).not.toContain('task');
});
