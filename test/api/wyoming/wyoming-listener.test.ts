/** Connections of Wyoming that do nothing or wait long, between a listener and the gateway, without a model. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createWyomingListener } from '../../../src/api/wyoming/wyoming-listener.ts';
import { publish } from '../../gateway/support/board-fixture.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';
import { connectWyoming, type WyomingClient } from '../../support/wyoming-client.ts';

const IDLE_MS = 150;
let gateway: GatewayFixture;
let listener: ReturnType<typeof createWyomingListener>;
let client: WyomingClient;

beforeEach(async () => {
  gateway = await startGateway();
  publish(gateway.board, { name: 'tts', model: 'kokoro', capabilities: ['speech'], voices: [{ id: 'bf_emma', language: 'en-gb' }] });
  const { gateway: inner, board } = gateway;
  const limits = { soundLimit: 1000, textLimit: 100, version: '1', idleMs: IDLE_MS };
  listener = createWyomingListener({ gateway: inner, board, budget: inner.budget, ...limits });
  const address = await listener.listen({ host: '127.0.0.1', port: 0 });
  client = await connectWyoming(typeof address === 'object' && address !== null ? address.port : 0);
});
afterEach(async () => {
  client.socket.destroy();
  await listener.close(0);
  await gateway.close();
  expect(gateway.faults).toEqual([]);
});

test('a connection on which nothing happens ends, also in the middle of an event', async () => {
  client.socket.write('{"type":"audio-chunk","payload_length":');
  expect((await client.waitFor('error')).data).toEqual({ code: 'request.timeout', text: 'Nothing came for 0.15 s: connect again' });
  await client.closed();
});

test('a connection that waits for a slot does not end, and its request does when the client leaves', async () => {
  client.send('synthesize', { text: 'Hello' });
  await until(() => gateway.gateway.load().requests === 1);
  await new Promise((resolve) => setTimeout(resolve, 3 * IDLE_MS));
  expect(client.events).toEqual([]);
  expect(gateway.gateway.load().requests).toBe(1);
  client.socket.destroy();
  await until(() => gateway.gateway.load().requests === 0);
});

test('a service that stops ends what nobody waits for', async () => {
  await listener.close(1000);
  await client.closed();
});

test('voices have the tags of languages that Home Assistant has, and their memory is released', async () => {
  client.send('describe');
  expect((await client.waitFor('info')).data).toMatchObject({ asr: [], tts: [{ voices: [{ name: 'bf_emma', languages: ['en-GB'] }] }] });
  client.send('audio-chunk', { rate: 16_000, width: 2, channels: 1 }, Buffer.alloc(800));
  await until(() => gateway.gateway.load().bufferedBytes === 800);
  client.socket.destroy();
  await until(() => gateway.gateway.load().bufferedBytes === 0);
});
