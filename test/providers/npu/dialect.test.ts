/** The dialect of FastFlowLM in both directions, through the gateway, against a stand-in with all of its traps. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { begin, CHAT, errorOf, post, type Reply } from '../../gateway/support/client.ts';
import { startNpuGateway, type NpuFixture } from '../../support/flm/npu-gateway.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { probeForm, PROBE_FORM_TYPE } from '../../../src/providers/decide/judge-status.ts';

let npu: NpuFixture;
afterEach(async () => {
  await npu.close();
  expect(npu.gateway.faults).toEqual([]);
});

const EMBEDDINGS = '/v1/embeddings';
const TRANSCRIPTIONS = '/v1/audio/transcriptions';

const ask = async (path: string, body: object): Promise<Reply> =>
  post(npu.gateway.port, path, JSON.stringify({ model: 'npu', ...body }), { headers: { 'content-type': 'application/json' } });
const chat = async (content: string, more: object = {}): Promise<Reply> => ask(CHAT, { messages: [{ role: 'user', content }], ...more });
const json = ({ text }: Reply) => JSON.parse(text);

function form(fields: Readonly<Record<string, string>>, file: string | undefined = `RIFF${'x'.repeat(100)}`) {
  const part = (disposition: string, value: string): string => `--b\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`;
  const recording = file === undefined ? '' : part('name="file"; filename="../a.wav"', file);
  return `${recording}${Object.entries(fields)
    .map(([name, value]) => part(`name="${name}"`, value))
    .join('')}--b--\r\n`;
}
const transcribe = async (fields: Readonly<Record<string, string>> = {}, file?: string): Promise<Reply> =>
  post(npu.gateway.port, TRANSCRIPTIONS, form({ model: 'npu', ...fields }, file), {
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
  });

describe('three capabilities of one process', () => {
  test('are served at once, and computed one after the other', async () => {
    npu = await startNpuGateway({ queueLength: 128 });
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, index) => [
        chat(`hello ${index}`),
        ask(EMBEDDINGS, { input: 'x'.repeat(index + 1) }),
        transcribe(),
      ]).flat(),
    );
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
    for (let index = 0; index < 10; index += 1) {
      const [said, embedded, heard] = replies.slice(index * 3).map(json);
      expect(said.choices[0].message.content).toBe(`You said: hello ${index}`);
      expect(embedded.data).toEqual([{ object: 'embedding', index: 0, embedding: [index + 1, 0.5, -0.25] }]);
      expect(heard).toEqual({ text: 'Heard 104 bytes.' });
    }
    expect(npu.flm.most()).toBe(1);
    expect(npu.flm.computed).toHaveLength(30);
    expect(npu.flm.mishaps).toEqual([]);
  });

  test('wait for each other also where the queue of the server is full', async () => {
    npu = await startNpuGateway({ queueLength: 1 });
    const replies = await Promise.all([chat('wait 60'), chat('wait 1'), chat('wait 2'), ask(EMBEDDINGS, { input: 'a' })]);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(npu.flm.computed).toHaveLength(4);
  });
});

describe('a chat', () => {
  test('names the model that the server was started with, whatever the client calls it, so that nothing is downloaded', async () => {
    npu = await startNpuGateway();
    for (const model of ['npu', 'gpt-5', 'llama3.2:1b']) {
      expect(json(await chat('hi', { model }))).toMatchObject({
        model: 'llama3.2:1b',
        choices: [{ message: { content: 'You said: hi' } }],
      });
    }
    expect(npu.flm.mishaps).toEqual([]);
  });

  test('has no field that ends a thread of the server, or that other clients could cancel it by', async () => {
    npu = await startNpuGateway();
    expect((await chat('hi', { request_id: 5, options: { num_ctx: 1 }, keep_alive: 0 })).status).toBe(200);
    expect((await chat('hi again')).status).toBe(200);
    expect(npu.flm.mishaps).toEqual([]);
  });

  test('flows as a stream', async () => {
    npu = await startNpuGateway();
    const { text, headers, status } = await chat('hi', { stream: true });
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream']);
    const events = text.trim().split('\n\n');
    expect(events.at(-1)).toBe('data: [DONE]');
    const deltas = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)).choices[0].delta.content ?? '');
    expect(deltas.join('')).toBe('You said: hi');
  });

  test.each([
    ['too long', 400, 'context_length_exceeded', /longer than the context/],
    ['throw', 500, null, /bad_alloc/],
    ['single', 400, null, /single-turn/],
  ])('that the server answers with an error for "%s" gets the status %d, and never 200', async (content, status, code, message) => {
    npu = await startNpuGateway();
    for (const stream of [false, true]) {
      const reply = await chat(content, { stream });
      expect(reply.status).toBe(status);
      expect(errorOf(reply.text)).toMatchObject({ code, origin: 'upstream', message: expect.stringMatching(message) });
    }
  });

  test.each([
    [{ messages: 'hi' }, 'messages'],
    [{ messages: [], n: 2 }, 'n'],
  ])('of another shape is refused, and the server is not asked: %j', async (body, param) => {
    npu = await startNpuGateway();
    const reply = await ask(CHAT, body);
    expect([reply.status, errorOf(reply.text).code, errorOf(reply.text).param]).toEqual([400, 'request.invalid', param]);
    expect(npu.flm.computed).toEqual([]);
  });
});

describe('what the server must never see', () => {
  test('a query, which it would take for a part of the path', async () => {
    npu = await startNpuGateway();
    expect((await ask(`${CHAT}?api-version=1`, { messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200);
    expect((await ask(`${EMBEDDINGS}?x`, { input: 'a' })).status).toBe(200);
    expect(npu.flm.computed).toEqual(['chat', 'embedding']);
  });

  test('completions, which it does not take in turn', async () => {
    npu = await startNpuGateway();
    const reply = await ask('/v1/completions', { prompt: 'hi' });
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(errorOf(reply.text).origin).toBe('gateway');
    expect(npu.flm.computed).toEqual([]);
  });
});

describe('a client that leaves', () => {
  async function leaveDuring(path: string, body: string, contentType = 'application/json'): Promise<void> {
    const request = begin(npu.gateway.port, path, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
    request.on('error', () => undefined);
    request.end(body);
    await until(() => npu.flm.most() === 1);
    request.destroy();
  }

  test.each([
    ['a chat', CHAT, { messages: [{ role: 'user', content: 'wait 80' }] }],
    ['a stream', CHAT, { messages: [{ role: 'user', content: 'pace 40' }], stream: true }],
  ])('does not take %s from the server, which would crash', async (_what, path, body) => {
    npu = await startNpuGateway();
    await leaveDuring(path, JSON.stringify({ model: 'npu', ...body }));
    await npu.atRest();
    expect(npu.flm.mishaps).toEqual([]);
    expect((await chat('still there?')).status).toBe(200);
    expect(npu.flm.computed).toEqual(['chat', 'chat']);
  });

  test('while its request waits behind another one does no harm either', async () => {
    npu = await startNpuGateway();
    const first = chat('wait 80');
    await until(() => npu.flm.most() === 1);
    await leaveDuring(TRANSCRIPTIONS, Buffer.from(probeForm('npu')).toString('latin1'), PROBE_FORM_TYPE);
    expect((await first).status).toBe(200);
    await npu.atRest();
    expect((await ask(EMBEDDINGS, { input: 'a' })).status).toBe(200);
    expect(npu.flm.mishaps).toEqual([]);
  });
});

describe('embeddings', () => {
  test('come as base64 where a client asks for it, as those of OpenAI do', async () => {
    npu = await startNpuGateway();
    const { data } = json(await ask(EMBEDDINGS, { input: ['four', 'a'], encoding_format: 'base64' }));
    const vectors = data.map(({ embedding }: { embedding: string }) => {
      const bytes = Buffer.from(embedding, 'base64');
      return [0, 1, 2].map((index) => bytes.readFloatLE(index * 4));
    });
    expect(vectors).toEqual([
      [4, 0.5, -0.25],
      [1, 0.5, -0.25],
    ]);
  });

  test.each([
    [{ input: [1, 2] }, 'input'],
    [{ input: '' }, 'input'],
    [{}, 'input'],
    [{ input: 'a', dimensions: 64 }, 'dimensions'],
    [{ input: 'a', encoding_format: 'hex' }, 'encoding_format'],
  ])('that the server cannot compute are refused before it is asked: %j', async (body, param) => {
    npu = await startNpuGateway();
    const reply = await ask(EMBEDDINGS, body);
    expect([reply.status, errorOf(reply.text).param]).toEqual([400, param]);
    expect(npu.flm.computed).toEqual([]);
  });

  test('that were not loaded are answered with null and status 200 by the server, and with an error by the gateway', async () => {
    npu = await startNpuGateway({ embed: false, asr: false });
    for (const reply of [await ask(EMBEDDINGS, { input: 'a' }), await transcribe()]) {
      expect([reply.status, errorOf(reply.text).code]).toEqual([502, 'upstream.failed']);
      expect(errorOf(reply.text).message).toMatch(/^The NPU server runs without the model for this request; restart the slot/);
    }
  });
});

describe('a transcription', () => {
  test('has the format that was asked for, though the server knows one only', async () => {
    npu = await startNpuGateway();
    expect(json(await transcribe())).toEqual({ text: 'Heard 104 bytes.' });
    expect((await transcribe({ response_format: 'text' })).text).toBe('Heard 104 bytes.\n');
    const { text, headers } = await transcribe({ stream: 'true' });
    expect(headers['content-type']).toBe('text/event-stream');
    expect(
      text
        .trim()
        .split('\n\n')
        .map((event) => JSON.parse(event.slice(6)).type),
    ).toEqual(['transcript.text.delta', 'transcript.text.done']);
  });

  test('passes on the language and the prompt, which 1.0.10 takes, and nothing that would change the form of the answer', async () => {
    npu = await startNpuGateway();
    await transcribe({ language: 'de', prompt: 'Zahlen', response_format: 'text', temperature: '0.2' });
    expect(npu.flm.heard).toEqual([{ model: 'whisper-v3:turbo', language: 'de', prompt: 'Zahlen' }]);
  });

  test.each([[{ response_format: 'srt' }, undefined, 'response_format']])(
    'is refused if it needs times: %j',
    async (fields, file, param) => {
      npu = await startNpuGateway();
      const reply = await transcribe(fields, file);
      expect([reply.status, errorOf(reply.text).param]).toEqual([400, param]);
    },
  );

  test('of a file that is no recording is an error of the server', async () => {
    npu = await startNpuGateway();
    const reply = await transcribe({}, 'text');
    expect([reply.status, errorOf(reply.text).origin]).toEqual([500, 'upstream']);
  });
});
