/** The official packages as clients of streams that wait (`SVC_WAIT_PROGRESS`). */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Anthropic, { APIError as AnthropicError } from '@anthropic-ai/sdk';
import OpenAI, { APIError } from 'openai';
import { DISABLED, PARK, publish } from './support/board-fixture.ts';
import { startUpstream, type Answer, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from './support/gateway-fixture.ts';

let gateway: GatewayFixture;
const upstreams: FakeUpstream[] = [];

describe('The official packages', () => {
  beforeEach(async () => {
    gateway = await startGateway({ processes: 1, settings: { SVC_WAIT_PROGRESS: '100ms' } });
    publish(gateway.board, { name: 'primary', admission: PARK });
  });
  afterEach(ended);

  const openai = (): OpenAI => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const anthropic = (): Anthropic => new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
  const messages: { role: 'user'; content: string }[] = [{ role: 'user', content: 'Hi' }];
  const ask = { model: 'primary', stream: true, messages } as const;

  test('of OpenAI reads over comments, and raises a later error', async () => {
    // `create` resolves with the head, which comes while the request waits.
    const stream = await openai().chat.completions.create(ask);
    show(await server(undefined));
    let text = '';
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
    expect(text).toBe('The quick brown fox ');

    publish(gateway.board, { name: 'primary', admission: PARK });
    const failing = await openai().chat.completions.create(ask);
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    const error = await failureOf(failing);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: 'slot.disabled', message: expect.stringContaining('Enable slot') });
  });

  test('of OpenAI raises an error of the Responses API', async () => {
    const failing = await openai().responses.create({ model: 'primary', stream: true, input: 'Hi' });
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    const error = await failureOf(failing);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: 'slot.disabled' });
  });

  test('of Anthropic reads over comments, and raises a later error', async () => {
    const stream = await anthropic().messages.create({ ...ask, max_tokens: 5 });
    show(
      await server(
        sendEvents(
          'event: message_start\ndata: {"type":"message_start","message":{}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
        ),
      ),
    );
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect(types).toEqual(['message_start', 'message_stop']);

    publish(gateway.board, { name: 'primary', admission: PARK });
    const failing = await anthropic().messages.create({ ...ask, max_tokens: 5 });
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    const error = await failureOf(failing);
    expect(error).toBeInstanceOf(AnthropicError);
    expect(error).toMatchObject({ error: { type: 'error', error: { type: 'overloaded_error', code: 'slot.disabled' } } });
  });
});

async function ended(): Promise<void> {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  for (const upstream of upstreams.splice(0)) await upstream.kill();
}

async function server(answer: Answer | undefined): Promise<FakeUpstream> {
  const upstream = await startUpstream(answer === undefined ? {} : { answer });
  upstreams.push(upstream);
  return upstream;
}

function sendEvents(events: string): Answer {
  return (_request, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.end(events);
  };
}

const show = ({ port }: FakeUpstream): void => void publish(gateway.board, { name: 'primary', targets: [{ workload: `w${port}`, port }] });

async function failureOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  try {
    for await (const _event of stream);
  } catch (error) {
    return error;
  }
  return undefined;
}
