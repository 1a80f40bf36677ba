/** Everything that the gateway expects of a server. The suite runs against the real llama-server and the embedded engine. */
import { mkdtemp, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { DEMO_MODEL_IDS, DEMO_SENTENCES, writeDemoModels } from '../../../toolboxes/demo/demo-models.ts';
import { encodeEmbedder } from '../../../toolboxes/demo/demo-embedder.ts';
import { OPENAI } from '../../../src/gateway/route/decide/dialects.ts';
import { judgeAnswer } from '../../../src/gateway/upstream/decide/judge-answer.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { startServer, type RunningServer, type ServerKind } from './running-server.ts';

const SETUP_MS = 180_000;

export async function post(
  server: RunningServer,
  route: string,
  body: object | string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await fetch(server.url + route, { method: 'POST', body: text, headers: { 'content-type': 'application/json' } });
  const read: Record<string, unknown> = JSON.parse(await answer.text());
  return { status: answer.status, body: read };
}

const hello = { messages: [{ role: 'user' as const, content: 'Hello' }] };
async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const clientOf = (server: RunningServer): OpenAI => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });

export function serverContract(kind: ServerKind): void {
  let modelsDir = '';
  const servers: RunningServer[] = [];
  const start = async (name: string, model: string): Promise<RunningServer> => {
    const server = await startServer(kind, modelsDir, { name, model });
    servers.push(server);
    return server;
  };
  let fox: RunningServer;
  let clock: RunningServer;
  let embed: RunningServer;

  beforeAll(async () => {
    modelsDir = await mkdtemp(path.join(tmpdir(), 'svc-gguf-'));
    await writeDemoModels(modelsDir, DEMO_MODEL_IDS);
    await mkdir(path.join(modelsDir, 'test'));
    await writeFile(path.join(modelsDir, 'test', 'rerank.gguf'), encodeEmbedder({ name: 'rerank', head: 'rank' }));
    await kind.prepare();
    fox = await start('primary', 'demo-fox');
    clock = await start('primary', 'demo-clock');
    embed = await start('embed', 'demo-embed');
  }, SETUP_MS);
  afterAll(async () => {
    for (const server of servers) await server.stop();
    await rm(modelsDir, { recursive: true, force: true });
  }, SETUP_MS);

  test.each([0, 1, 2])('answers with the sentence of its model at temperature %s', async (temperature) => {
    const answer = await clientOf(fox).chat.completions.create({ model: 'x', ...hello, temperature });
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'stop', message: { role: 'assistant', content: DEMO_SENTENCES['demo-fox'] } });
    expect(answer.model).toBe('demo-fox');
    expect(answer.usage).toMatchObject({ completion_tokens: 11, total_tokens: 11 + (answer.usage?.prompt_tokens ?? 0) });
  });

  test('streams the sentence in chunks, with the usage in the last one if requested', async () => {
    const stream = await clientOf(fox).chat.completions.create({
      model: 'x',
      ...hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await collect(stream);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(DEMO_SENTENCES['demo-fox']);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    expect(chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 11 } });
  });

  test('another model answers with another sentence', async () => {
    const owl = await start('primary', 'demo-owl');
    const answer = await clientOf(owl).chat.completions.create({ model: 'x', ...hello });
    expect(answer.choices[0]?.message.content).toBe(DEMO_SENTENCES['demo-owl']);
  });

  test('never mixes up the responses of concurrent requests', async () => {
    const client = clientOf(fox);
    const texts = new Set<string | null | undefined>();
    const one = async (): Promise<void> => {
      for (let index = 0; index < 40; index += 1) {
        const answer = await client.chat.completions.create({ model: 'x', ...hello });
        texts.add(answer.choices[0]?.message.content);
      }
    };
    await Promise.all(Array.from({ length: 12 }, one));
    expect([...texts]).toEqual([DEMO_SENTENCES['demo-fox']]);
  });

  test('continues a plain prompt', async () => {
    const answer = await clientOf(fox).completions.create({ model: 'x', prompt: 'The', max_tokens: 3 });
    expect(answer.choices[0]).toMatchObject({ text: ' quick brown fox', finish_reason: 'length' });
  });

  test('stops at max_tokens and before a stop string, with and without streaming', async () => {
    const client = clientOf(clock);
    const cut = await client.chat.completions.create({ model: 'x', ...hello, max_tokens: 4 });
    expect(cut.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'tick tock tick tock' } });
    const request = { model: 'x', ...hello, max_tokens: 50, stop: ['k tock'] };
    const stopped = await client.chat.completions.create(request);
    expect(stopped.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'tic' } });
    const streamed = await collect(await client.chat.completions.create({ ...request, stream: true }));
    expect(streamed.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('tic');
  });

  test('a client that disconnects frees its sequence', async () => {
    const abort = new AbortController();
    const endless = fillSequences(clock.url, abort.signal);
    await endless[0];
    abort.abort();
    await Promise.all(endless);
    const answer = await post(clock, '/v1/chat/completions', { ...hello, max_tokens: 1 });
    expect(answer.status).toBe(200);
  });

  test('embeddings of equal texts are equal, and those of different texts differ', async () => {
    const input = ['the dog runs home', 'the dog runs home', 'a wise old owl', 'home runs the dog', '日本', '日本語'];
    const { data } = await clientOf(embed).embeddings.create({ model: 'x', input });
    const vectors = data.map((entry) => entry.embedding);
    const likeness = (a: number, b: number): number =>
      (vectors[a] ?? []).reduce((sum, value, at) => sum + value * (vectors[b]?.[at] ?? 0), 0);
    expect(vectors.every((vector) => vector.length === 64)).toBe(true);
    expect(likeness(0, 1)).toBeCloseTo(1, 5);
    expect(likeness(0, 3)).toBeGreaterThan(0.9);
    expect(likeness(0, 3)).toBeLessThan(0.9999);
    expect(likeness(0, 2)).toBeLessThan(0.8);
    expect(likeness(4, 5)).toBeLessThan(0.999);
  });

  test('returns the same embeddings as floats and as base64', async () => {
    const floats = await clientOf(embed).embeddings.create({ model: 'x', input: 'Hello', encoding_format: 'float' });
    const { body } = await post(embed, '/v1/embeddings', { input: 'Hello', encoding_format: 'base64' });
    expect(JSON.stringify(body)).toContain('"embedding":"');
    const decoded = await clientOf(embed).embeddings.create({ model: 'x', input: 'Hello' });
    decoded.data[0]?.embedding.forEach((value, at) => expect(value).toBeCloseTo(floats.data[0]?.embedding[at] ?? Number.NaN, 6));
    expect(decoded.data[0]?.embedding).toHaveLength(64);
  });

  test('makes embeddings of arrays of tokens', async () => {
    const { status, body } = await post(embed, '/v1/embeddings', { input: [[300, 301], [302]] });
    expect(status).toBe(200);
    expect(body['data']).toHaveLength(2);
  });

  test('a chat model in the slot "embed" makes embeddings, even of long inputs', async () => {
    const causal = await start('embed', 'demo-owl');
    const { status, body } = await post(causal, '/v1/embeddings', { input: ['a word '.repeat(400), 'A wise old owl'] });
    expect(status).toBe(200);
    expect(body['data']).toHaveLength(2);
  });

  test('ranks documents', async () => {
    const rerank = await start('primary', 'test/rerank.gguf');
    const request = { query: 'dog', documents: ['a blue car', 'the dog runs', 'my cat'] };
    const { status, body } = await post(rerank, '/v1/rerank', request);
    expect(status).toBe(200);
    const again = await post(rerank, '/v1/rerank', request);
    expect(again.body['results']).toEqual(body['results']);
    expect((await post(rerank, '/v1/rerank', { ...request, top_n: 1 })).body['results']).toHaveLength(1);
  });

  test('returns all errors in the same format', async () => {
    const answers = {
      malformed: await post(fox, '/v1/chat/completions', '{"messages":'),
      empty: await post(fox, '/v1/chat/completions', {}),
      tooLong: await post(fox, '/v1/completions', { prompt: 'x'.repeat(9000) }),
      lacking: await post(fox, '/v1/embeddings', { input: 'x' }),
      unknown: await post(fox, '/v1/rerankings', { query: 'x', documents: ['y'] }),
    };
    const seen = Object.fromEntries(
      Object.entries(answers).map(([name, { status, body }]) => [name, [status, Object(body['error']).type]]),
    );
    expect(seen).toMatchObject({
      malformed: [expect.any(Number), expect.any(String)],
      empty: [400, 'invalid_request_error'],
      tooLong: [400, 'exceed_context_size_error'],
      // llama-server answers 501, which SDKs send again.
      lacking: [expect.any(Number), 'not_supported_error'],
      unknown: [404, 'not_found_error'],
    });
    expect([422, 501]).toContain(answers.lacking.status);
    for (const { status, body } of Object.values(answers))
      expect(body).toMatchObject({ error: { code: status, message: expect.any(String) } });
  });

  test('answers mistakes of clients with errors that the gateway knows as such', async () => {
    const text = { type: 'text', text: 'Hi' };
    const chat = (part: object) => ({ messages: [{ role: 'user', content: [text, part] }] });
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const image = chat({ type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } });
    const sound = chat({ type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } });
    const long = 'word '.repeat(20_000);
    const cases: readonly (readonly [string, RunningServer, string, object, RegExp])[] = [
      ['an image', fox, '/v1/chat/completions', image, /^model\.(?:no_vision|unsupported)$/],
      ['a recording', fox, '/v1/chat/completions', sound, /^model\.(?:no_audio|unsupported)$/],
      ['a video', fox, '/v1/chat/completions', chat({ type: 'video_url', video_url: { url: 'data:,' } }), /^model\.unsupported$/],
      ['a long chat', fox, '/v1/chat/completions', { messages: [{ role: 'user', content: long }] }, /^context_length_exceeded$/],
      ['a long prompt', fox, '/v1/completions', { prompt: long }, /^context_length_exceeded$/],
      ['a long text', embed, '/v1/embeddings', { input: long }, /^context_length_exceeded$/],
      ['no messages', fox, '/v1/chat/completions', {}, /^(?:null|request\.invalid)$/],
      ['no messages of the Messages API', fox, '/v1/messages', {}, /^(?:model\.unsupported|request\.invalid)$/],
      ['wrong messages', fox, '/v1/chat/completions', { messages: 'Hi' }, /^null$/],
      ['a message without a role', fox, '/v1/chat/completions', { messages: [{ content: 'Hi' }] }, /^(?:null|request\.invalid)$/],
      ['a tool that is none', fox, '/v1/chat/completions', { ...chat(text), tools: [{}] }, /^(?:model\.unsupported|request\.invalid)$/],
      ['no prompt', fox, '/v1/completions', {}, /^null$/],
      ['no input', embed, '/v1/embeddings', {}, /^null$/],
      ['embeddings', fox, '/v1/embeddings', { input: 'x' }, /^model\.unsupported$/],
    ];
    for (const [name, server, route, body, code] of cases) {
      const plan = gguf.infer({ method: 'POST', path: route, capability: 'chat' }, ['chat']);
      const answer = await post(server, route, body);
      const mistakes = plan.kind === 'forward' ? plan.mistakes : [];
      const verdict = judgeAnswer({ status: answer.status, text: JSON.stringify(answer.body), mistakes }, OPENAI, 'req');
      expect({ name, ...verdict }).toMatchObject({ name, kind: 'error', status: 400 });
      expect(String(verdict.kind === 'error' ? verdict.body.error.code : verdict.kind)).toMatch(code);
    }
  });

  test('returns the name of its model but no path of the host', async () => {
    const answer = await fetch(`${fox.url}/v1/models`);
    const text = await answer.text();
    expect(text).toContain('"demo-fox"');
    expect(text).not.toContain(modelsDir);
  });

  test('answers "/health" at once while all its sequences are busy', async () => {
    const abort = new AbortController();
    const busy = fillSequences(clock.url, abort.signal);
    await busy[0];
    for (let index = 0; index < 5; index += 1) {
      const answer = await fetch(`${clock.url}${gguf.readyPath}`, { signal: AbortSignal.timeout(3000) });
      expect(answer.status).toBe(200);
    }
    abort.abort();
    await Promise.all(busy);
  }, 60_000);

  test('is silent while its process is frozen, and passes again afterwards', async () => {
    await embed.freeze();
    expect((await embed.health()).kind).toBe('silent');
    await embed.thaw();
    expect(await embed.health()).toEqual({ kind: 'passing' });
    // A probe waits for an answer; whoever asks also watches whether the server is alive.
  }, 60_000);

  test('exits cleanly while it computes answers, if their connections were closed before', async () => {
    const busyServer = await start('primary', 'demo-clock');
    const abort = new AbortController();
    const busy = [...fillSequences(busyServer.url, abort.signal), ...fillSequences(busyServer.url, abort.signal, false)];
    await busy[0];
    abort.abort();
    await Promise.all(busy);
    expect(await busyServer.stop()).toBe(0);
  }, 60_000);

  test('passes its health probe while it runs, and exits cleanly when it is stopped', async () => {
    expect(await fox.health()).toEqual({ kind: 'passing' });
    expect(await fox.stop()).toBe(0);
    expect((await fox.health()).kind).toBe('silent');
  });
}

/** Sends more long answers at once than a server has sequences. */
function fillSequences(url: string, signal: AbortSignal, stream = true): readonly Promise<Response | undefined>[] {
  return Array.from({ length: 8 }, () =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...hello, stream, max_tokens: 4000 }),
      signal,
    }).catch(() => undefined),
  );
}
