/** Official SDKs hold a conversation over `/v1/responses` with real engines, of which one has no such path and the other an incomplete one. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createOpenAI } from '@ai-sdk/openai';
import { Agent, OpenAIResponsesModel, run, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';
import * as openai6 from 'openai-6';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const SENTENCE = DEMO_SENTENCES['demo-fox'];
const key = { apiKey: 'none' };
/** Its types differ from those of the newest version in what is not used here. */
const OpenAI6: typeof OpenAI = Reflect.get(Object(openai6), 'default');

function suite(environment: () => Promise<Readonly<Record<string, string>>>): void {
  let service: Service;
  let baseURL = '';
  beforeAll(async () => {
    service = await startService({ runtime: 'process', environment: await environment() });
    baseURL = `${service.url}/v1`;
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await service.until('primary', 'ready', isAnswering);
  }, 180_000);
  afterAll(async () => await service.dispose(), 60_000);

  describe.each([
    ['openai 7', () => new OpenAI({ baseURL, ...key })],
    ['openai 6', () => new OpenAI6({ baseURL, ...key })],
  ] as const)('%s', (_name, create) => {
    test('streams two turns', async () => {
      const client = create();
      const first = await client.responses.stream({ model: 'primary', input: 'Hi', instructions: 'Be brief' }).finalResponse();
      expect(first).toMatchObject({ status: 'completed', output_text: SENTENCE, usage: { output_tokens: expect.any(Number) } });
      expect(first.usage?.output_tokens).toBeGreaterThan(0);
      const input = [{ role: 'user' as const, content: 'Hi' }, ...first.output.flatMap((item) => (item.type === 'message' ? [item] : []))];
      const second = client.responses.stream({ model: 'primary', input: [...input, { role: 'user' as const, content: 'Again' }] });
      expect((await second.finalResponse()).output_text).toBe(SENTENCE);
    });

    test('is told of a conversation that is too long, once', async () => {
      const ask = create().responses.create({ model: 'primary', input: 'word '.repeat(20_000) });
      await expect(ask).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' });
    });
  });

  test('@ai-sdk/openai streams', async () => {
    const model = createOpenAI({ baseURL, ...key }).responses('primary');
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }];
    const { stream } = await model.doStream({ prompt, providerOptions: { openai: { store: false } } });
    let text = '';
    for await (const part of stream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta') text += part.delta;
    }
    expect(text).toBe(SENTENCE);
  });

  test('@openai/agents goes on with its history', async () => {
    setTracingDisabled(true);
    const agent = new Agent({
      name: 'a',
      instructions: 'Answer',
      model: new OpenAIResponsesModel(new OpenAI({ baseURL, ...key }), 'primary'),
    });
    const first = await run(agent, 'Hi', { stream: true });
    await first.completed;
    expect(first.finalOutput).toBe(SENTENCE);
    const second = await run(agent, [...first.history, { role: 'user', content: 'Again' }]);
    expect(second.finalOutput).toBe(SENTENCE);
  });

  test('an answer to a request without a model names that of the server', async () => {
    const answer = await fetch(`${baseURL}/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ input: 'Hi' }),
    });
    expect(await answer.json()).toMatchObject({ object: 'response', model: expect.stringContaining('demo-fox') });
  });
}

describe('with the embedded engine', () => suite(async () => ({})));
// Podman has the image with llama-server.
describeWithPodman('with llama-server', () =>
  suite(async () => ({ PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` })),
);
