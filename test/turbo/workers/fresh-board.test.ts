import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client } from 'undici';
import { publish } from '../../gateway/support/board-fixture.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const CLIENTS = 24;
/** Clients that keep all processes busy meanwhile. */
const OTHERS = 32;
const SLOTS = 30;
let upstream: FakeUpstream;
let gateway: GatewayFixture;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ processes: 4 });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

test('a slot that has just been published is known to all processes', async () => {
  const clients = Array.from({ length: CLIENTS }, () => new Client(gateway.url));
  const ask = async (client: Client, model: string): Promise<number> => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
    const answer = await client.request({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json' },
      body,
    });
    await answer.body.dump();
    return answer.statusCode;
  };
  const target = { workload: 'w', port: upstream.port };
  const seen = new Set<number>();
  publish(gateway.board, { name: 'steady', targets: [target] });
  let goesOn = true;
  const others = Array.from({ length: OTHERS }, async () => {
    const client = new Client(gateway.url);
    while (goesOn) seen.add(await ask(client, 'steady'));
    await client.close();
  });
  for (let index = 0; index < SLOTS; index += 1) {
    publish(gateway.board, { name: 'steady', targets: [target] }, { name: `slot-${index}`, targets: [target] });
    for (const status of await Promise.all(clients.map(async (client) => await ask(client, `slot-${index}`)))) seen.add(status);
  }
  goesOn = false;
  await Promise.all(others);
  expect([...seen]).toEqual([200]);
  await Promise.all(clients.map(async (client) => await client.close()));
}, 60_000);
