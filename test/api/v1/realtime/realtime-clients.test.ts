/** Clients that expect a conversation learn at once that sessions transcribe, and go on: `openai`, `@openai/agents` and a plain WebSocket. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession } from '@openai/agents/realtime';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { publish } from '../../../gateway/support/board-fixture.ts';
import { startGateway, type GatewayFixture } from '../../../gateway/support/gateway-fixture.ts';
import { connectRealtime } from '../../../support/realtime-client.ts';

const ADVICE = /answers no conversations here; use "transcription", or "\/v1\/chat\/completions" and "\/v1\/audio\/speech"/;
let gateway: GatewayFixture;

beforeAll(async () => {
  gateway = await startGateway();
  publish(gateway.board, { name: 'stt', model: 'whisper', capabilities: ['transcription'] });
});
afterAll(async () => {
  await gateway.close();
  expect(gateway.faults).toEqual([]);
});

test('@openai/agents', async () => {
  const transport = new OpenAIRealtimeWebSocket({ url: `ws://127.0.0.1:${gateway.port}/v1/realtime` });
  const session = new RealtimeSession(new RealtimeAgent({ name: 'Assistant', instructions: 'Be brief.' }), { transport });
  const failed = new Promise((resolve) => session.on('error', resolve));
  await session.connect({ apiKey: 'none' });
  expect(JSON.stringify(await failed)).toMatch(/answers no conversations here/);
  session.close();
});

test('the openai package', async () => {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none' });
  const realtime = new OpenAIRealtimeWS({ model: 'stt', options: { createConnection: () => connect(gateway.port, '127.0.0.1') } }, client);
  const failed = new Promise<Error>((resolve) => realtime.on('error', resolve));
  realtime.on('session.created', () => realtime.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.' } }));
  expect((await failed).message).toMatch(ADVICE);
  realtime.close();
});

test('a plain WebSocket, which can transcribe afterwards', async () => {
  const client = await connectRealtime(`ws://127.0.0.1:${gateway.port}/v1/realtime`);
  expect(await client.errorOf({ type: 'session.update', session: { type: 'realtime' } })).toMatchObject({
    message: expect.stringMatching(ADVICE),
    param: 'session.type',
  });
  expect(await client.errorOf({ type: 'response.create' })).toMatchObject({ message: expect.stringContaining('/v1/audio/speech') });
  client.send({ type: 'session.update', session: { type: 'transcription' } });
  await client.waitFor('session.updated');
  await client.close();
});
