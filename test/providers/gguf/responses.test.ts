/** The official SDKs on `/v1/responses` before a server that chats as llama-server b11669 does: streams, tools and several turns. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createOpenAI } from '@ai-sdk/openai';
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import * as openai6 from 'openai-6';
import { z } from 'zod';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { answerChat, CALL, type Chat } from './chatting-server.ts';
import { publish } from '../../gateway/support/board-fixture.ts';
import { post } from '../../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const WEATHER = {
  type: 'function',
  name: 'weather',
  description: 'Weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
  strict: true,
} as const;
let gateway: GatewayFixture;
let upstream: FakeUpstream;
let base = '';
beforeAll(async () => {
  upstream = await startUpstream({ answer: answerChat });
  gateway = await startGateway({ provider: { infer: gguf.infer } });
  publish(gateway.board, { name: 'toy', capabilities: ['chat'], targets: [{ workload: 'w', port: upstream.port }] });
  base = `http://127.0.0.1:${gateway.port}/v1`;
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

const lastChat = (): Chat => JSON.parse(upstream.seen.at(-1)?.body.toString() ?? '{}');
const respond = (body: object) => post(gateway.port, '/v1/responses', JSON.stringify({ model: 'toy', ...body }));
/** Its types differ from those of the newest version in what is not used here. */
const OpenAI6: typeof OpenAI = Reflect.get(Object(openai6), 'default');
const SDKS = {
  'openai 7': () => new OpenAI({ baseURL: base, apiKey: 'none', maxRetries: 0 }),
  'openai 6': () => new OpenAI6({ baseURL: base, apiKey: 'none', maxRetries: 0 }),
};

function itemsOf(output: readonly OpenAI.Responses.ResponseOutputItem[]): OpenAI.Responses.ResponseInput {
  return output.flatMap((item) => (item.type === 'message' || item.type === 'function_call' || item.type === 'reasoning' ? [item] : []));
}

describe.each(Object.entries(SDKS))('%s', (_name, create) => {
  test('streams each event that its types have, in order', async () => {
    const stream = create().responses.stream({ model: 'toy', input: 'Hi', instructions: 'Be brief' });
    const types: string[] = [];
    const numbers: number[] = [];
    for await (const event of stream) {
      types.push(event.type);
      numbers.push(event.sequence_number);
    }
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect([...new Set(types)]).toEqual(
      'created in_progress output_item.added content_part.added reasoning_text.delta reasoning_text.done content_part.done output_item.done output_text.delta output_text.done completed'
        .split(' ')
        .map((type) => `response.${type}`),
    );
    const { output_text: text, usage, output, status } = await stream.finalResponse();
    expect(text).toBe('Turn 2: "ü🙂"');
    expect(status).toBe('completed');
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
    expect(usage).toMatchObject({ input_tokens: 12, input_tokens_details: { cached_tokens: 3 }, output_tokens: 5, total_tokens: 17 });
    expect(lastChat().messages).toEqual([
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: 'Hi' },
    ]);
  });

  test.each([true, false])('goes on over several turns and calls functions, with "stream" %j', async (isStream) => {
    const client = create();
    const ask = async (input: OpenAI.Responses.ResponseInput, tools: OpenAI.Responses.Tool[]) => {
      const body = { model: 'toy', input, tools, store: false };
      return isStream ? client.responses.stream(body).finalResponse() : client.responses.create(body);
    };
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: [{ type: 'input_text', text: 'How is the weather?' }] }];
    const first = await ask(input, [WEATHER]);
    const [asked] = first.output.filter((item) => item.type === 'function_call');
    expect(asked).toMatchObject({ call_id: 'call_1', name: 'weather', arguments: '{"city":"Bern"}', status: 'completed' });
    input.push(...itemsOf(first.output), { type: 'function_call_output', call_id: 'call_1', output: '20 °C' });
    const second = await ask(input, [WEATHER]);
    expect(second.output_text).toBe('It is 20 °C');
    input.push(...itemsOf(second.output), { role: 'user', content: 'Thanks' });
    const third = await ask(input, []);
    expect(third.output_text).toBe('Turn 5: "ü🙂"');
    expect(lastChat().messages).toEqual([
      { role: 'user', content: 'How is the weather?' },
      { role: 'assistant', content: '', tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: '20 °C' },
      { role: 'assistant', content: 'It is 20 °C' },
      { role: 'user', content: 'Thanks' },
    ]);
  });

  test('parses structured output', async () => {
    const format = { type: 'json_schema', name: 'city', schema: { type: 'object' }, strict: true } as const;
    await create().responses.create({ model: 'toy', input: 'Hi', text: { format }, max_output_tokens: 2, temperature: 0.5 });
    const { name, schema, strict } = format;
    const expected = { response_format: { type: 'json_schema', json_schema: { name, schema, strict } }, max_tokens: 2, temperature: 0.5 };
    expect(lastChat()).toMatchObject(expected);
  });
});

describe('@ai-sdk/openai', () => {
  const model = () => createOpenAI({ baseURL: base, apiKey: 'none' }).responses('toy');
  const providerOptions = { openai: { store: false } };

  test('streams, calls functions and goes on', async () => {
    const { type: _type, name, description, parameters: inputSchema } = WEATHER;
    const tools = [{ type: 'function' as const, name, description, inputSchema: { ...inputSchema, required: ['city'] } }];
    const user = { role: 'user' as const, content: [{ type: 'text' as const, text: 'How is the weather?' }] };
    const partsOf = async (options: Parameters<ReturnType<typeof model>['doStream']>[0]) => {
      const { stream } = await model().doStream({ ...options, providerOptions });
      const parts = [];
      for await (const part of stream) parts.push(part);
      expect(parts.filter(({ type }) => type === 'error')).toEqual([]);
      return parts;
    };
    const first = await partsOf({ prompt: [user], tools });
    const called = first.find((part) => part.type === 'tool-call');
    expect(called).toMatchObject({ toolCallId: 'call_1', toolName: 'weather', input: '{"city":"Bern"}' });
    const second = await partsOf({
      prompt: [
        user,
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'call_1', toolName: 'weather', input: { city: 'Bern' } }] },
        {
          role: 'tool',
          content: [{ type: 'tool-result', toolCallId: 'call_1', toolName: 'weather', output: { type: 'text', value: '20 °C' } }],
        },
      ],
      tools,
    });
    const text = second.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : [])).join('');
    expect(text).toBe('It is 20 °C');
    expect(second.at(-1)).toMatchObject({ type: 'finish', usage: { inputTokens: { total: 12 }, outputTokens: { total: 5 } } });
  });
});

describe('@openai/agents', () => {
  test('runs an agent with a tool over several turns', async () => {
    setTracingDisabled(true);
    const weather = tool({
      name: 'weather',
      description: 'Weather',
      parameters: z.object({ city: z.string() }),
      execute: ({ city }) => `20 °C in ${city}`,
    });
    const client = new OpenAI({ baseURL: base, apiKey: 'none' });
    const agent = new Agent({ name: 'a', instructions: 'Answer', model: new OpenAIResponsesModel(client, 'toy'), tools: [weather] });
    const streamed = await run(agent, 'How is the weather?', { stream: true });
    await streamed.completed;
    expect(streamed.finalOutput).toBe('It is 20 °C in Bern');
    const next = await run(agent, [...streamed.history, { role: 'system', content: 'Go on' }]);
    expect(next.finalOutput).toMatch(/^Turn \d: "ü🙂"$/);
  });
});

describe('what cannot be answered', () => {
  test.each([
    ['without "input"', {}, 'input', '"input" is no message'],
    [
      'an item of another kind',
      { input: [{ type: 'item_reference', id: 'msg_1' }] },
      'input[0]',
      'send whole items, with "store" set to false',
    ],
    [
      'a stored response',
      { input: 'Hi', previous_response_id: 'resp_1' },
      'previous_response_id',
      'send the whole conversation as "input"',
    ],
    ['a response in the background', { input: 'Hi', background: true }, 'background', 'leave it out'],
    ['a tool of OpenAI', { input: 'Hi', tools: [WEATHER, { type: 'web_search' }] }, 'tools[1]', 'the service has no others'],
    ['a number as temperature of reasoning', { input: 'Hi', reasoning: 3 }, 'reasoning', 'has another type'],
  ])('%s is 400 and names the field', async (_what, body, param, message) => {
    const asked = upstream.seen.length;
    const { status, text } = await respond(body);
    expect(status).toBe(400);
    expect(JSON.parse(text).error).toMatchObject({ code: 'request.invalid', param, message: expect.stringContaining(message) });
    expect(upstream.seen).toHaveLength(asked);
  });

  test.each([true, false])('a mistake that the server finds is 400, with "stream" %j', async (stream) => {
    const { status, text } = await respond({ input: 'fail', stream });
    expect([status, JSON.parse(text).error.code]).toEqual([400, 'context_length_exceeded']);
  });

  test('an error within a stream ends it with what failed', async () => {
    const { text } = await respond({ input: 'break', stream: true });
    expect(text).toContain('event: response.output_item.done');
    const last = text.trim().split('\n\n').at(-1) ?? '';
    expect(last).toMatch(/^event: response\.failed\n/);
    expect(JSON.parse(last.slice(last.indexOf('{')))).toMatchObject({
      response: { status: 'failed', error: { code: 'server_error', message: 'Compute error' } },
    });
  });

  test('an answer repeats what was asked, with the defaults of the rest', async () => {
    const { text } = await respond({ input: 'Hi', temperature: 0.5, metadata: { a: 'b' }, tools: null, instructions: null });
    expect(JSON.parse(text)).toMatchObject({
      object: 'response',
      model: 'toy',
      temperature: 0.5,
      metadata: { a: 'b' },
      tools: [],
      instructions: null,
      store: false,
    });
    expect(JSON.parse(text)).not.toHaveProperty('input');
    expect(lastChat()).not.toHaveProperty('metadata');
  });

  test('an answer that was cut says why', async () => {
    expect(JSON.parse((await respond({ input: 'Hi', max_output_tokens: 2 })).text)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });

  test('images, and one function by its name', async () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' };
    const other = { ...WEATHER, name: 'other' };
    const input = [
      { role: 'developer', content: 'Look' },
      { role: 'user', content: [{ type: 'input_text', text: 'What?' }, image] },
    ];
    await respond({ input, tools: [WEATHER, other], tool_choice: { type: 'function', name: 'weather' } });
    expect(lastChat()).toMatchObject({
      messages: [
        { role: 'system', content: 'Look' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'weather' } }],
      tool_choice: 'required',
    });
  });
});
