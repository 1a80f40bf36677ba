/** Clients of Ollama with the real service and real engines: the official client, and the requests of Open WebUI's connection to Ollama. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ollama } from 'ollama';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const SENTENCE = DEMO_SENTENCES['demo-fox'];
const SLOT = 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n[model.presets.short]\nset = { max_tokens = 2 }\n';

function suite(environment: () => Promise<Readonly<Record<string, string>>>): void {
  let service: Service;
  let client: Ollama;
  beforeAll(async () => {
    service = await startService({ runtime: 'process', environment: { SVC_OLLAMA: 'on', ...(await environment()) } });
    client = new Ollama({ host: `${service.url}/ollama` });
    await service.save('primary', SLOT);
    await service.save('embed', 'backend = "cpu"\n[model]\ndefault = "demo-embed"\n');
    for (const name of ['primary', 'embed']) await service.until(name, 'ready', isAnswering);
  }, 180_000);
  afterAll(async () => await service.dispose(), 60_000);

  test('the official client lists, describes, chats, streams, generates and embeds', async () => {
    const { models } = await client.list();
    expect(models.map(({ name }) => name).toSorted()).toEqual(['demo-embed', 'demo-fox', 'primary:short']);
    expect(await client.show({ model: 'primary' })).toMatchObject({ capabilities: expect.arrayContaining(['completion']) });
    expect((await client.ps()).models.length).toBe(2);
    const messages = [{ role: 'user', content: 'Hi' }];
    const whole = await client.chat({ model: 'demo-fox', messages });
    expect([whole.message.content.trim(), whole.done_reason, whole.eval_count]).toEqual([SENTENCE, 'stop', expect.any(Number)]);
    let text = '';
    let last: object = {};
    for await (const part of await client.chat({ model: 'demo-fox:latest', messages, stream: true })) {
      text += part.message.content;
      last = part;
    }
    expect([text.trim(), last]).toEqual([SENTENCE, expect.objectContaining({ done: true, prompt_eval_count: expect.any(Number) })]);
    expect((await client.generate({ model: 'primary', prompt: 'Hi' })).response?.trim()).toBe(SENTENCE);
    expect(await client.chat({ model: 'primary:short', messages })).toMatchObject({ done_reason: 'length', eval_count: 2 });
    expect(await client.chat({ model: 'primary', messages, options: { num_predict: 1 } })).toMatchObject({ done_reason: 'length' });
    await service.until('primary', 'no longer just ready', (slot) => ['serving', 'idle'].includes(slot?.status.state ?? ''));
    expect((await client.ps()).models.length).toBe(2);
    const { embeddings } = await client.embed({ model: 'embed', input: ['a red fox', 'a blue owl'] });
    expect(embeddings.map((each) => each.length)).toEqual([64, 64]);
    await expect(client.chat({ model: 'none', messages })).rejects.toMatchObject({ status_code: 404 });
  }, 60_000);

  test("the commands of Ollama's documentation work, whose bodies curl sends as a form", async () => {
    const send = async (path: string, body: string, more = {}): Promise<readonly unknown[]> => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', ...more };
      const answer = await fetch(`${service.url}/ollama/api/${path}`, { method: 'POST', headers, body });
      const read: Record<string, unknown> = JSON.parse(await answer.text());
      return [answer.status, 'error' in read ? typeof read['error'] : 'answer'];
    };
    const messages = [{ role: 'user', content: 'Hi' }];
    expect(await send('chat', JSON.stringify({ model: 'primary', messages, stream: false }))).toEqual([200, 'answer']);
    expect(await send('show', '{"model": "primary"}')).toEqual([200, 'answer']);
    expect(await send('chat', 'model=primary')).toEqual([400, 'string']);
    // A page of another site can send such a request without asking first.
    expect(await send('show', '{"model": "primary"}', { origin: 'https://elsewhere.example' })).toEqual([403, 'string']);
  }, 60_000);

  test('a stream that is aborted frees the slot', async () => {
    const parts = await client.chat({ model: 'primary', messages: [{ role: 'user', content: 'Hi' }], stream: true });
    const read = async (): Promise<void> => {
      for await (const part of parts) if (!part.done) parts.abort();
    };
    // A short answer may have arrived as a whole before.
    await read().catch((error: unknown) => expect(String(error)).toMatch(/abort/i));
    await eventually('no request is in flight', async () => (await metrics()).includes('svc_inflight{slot="primary"} 0'), 20_000);
  }, 60_000);
  const metrics = async (): Promise<string> => (await fetch(`${service.url}/api/metrics`)).text();

  test("Open WebUI's connection checks, lists, titles and chats", async () => {
    const ask = async (path: string, body?: object): Promise<Response> =>
      fetch(`${service.url}/ollama${path}`, {
        headers: { 'content-type': 'application/json', authorization: 'Bearer none', 'x-openwebui-user-name': 'Anna' },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      });
    expect(await (await ask('/api/version')).json()).toEqual({ version: expect.stringMatching(/^\d/) });
    expect(await (await ask('/api/tags')).json()).toMatchObject({
      models: expect.arrayContaining([expect.objectContaining({ model: 'demo-fox' })]),
    });
    expect((await ask('/api/ps')).status).toBe(200);
    expect((await ask('/api/show', { name: 'demo-fox' })).status).toBe(200);
    const chat = { model: 'demo-fox', messages: [{ role: 'user', content: 'Hi' }], options: { temperature: 0 }, keep_alive: '5m' };
    const title = await ask('/api/chat', { ...chat, stream: false });
    expect([title.headers.get('x-svc-note'), await title.json()]).toMatchObject([
      expect.stringContaining('keep_alive'),
      { message: { role: 'assistant' } },
    ]);
    const stream = await ask('/api/chat', chat);
    const lines = (await stream.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(stream.headers.get('content-type')).toBe('application/x-ndjson');
    expect(
      lines
        .map(({ message }) => message.content)
        .join('')
        .trim(),
    ).toBe(SENTENCE);
    expect(lines.at(-1)).toMatchObject({ done: true, total_duration: expect.any(Number), eval_duration: expect.any(Number) });
    expect((await ask('/api/embed', { model: 'embed', input: ['a'], truncate: true })).status).toBe(200);
    expect((await ask('/api/pull', { name: 'x' })).status).toBe(404);
  }, 60_000);
}

describe('with the embedded engine', () => suite(async () => ({})));
describeWithPodman('with the real llama-server', () =>
  suite(async () => ({ PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` })),
);
