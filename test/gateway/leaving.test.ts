/** A replica that leaves the board: its pod waits until no client is connected to it. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { publish } from './support/board-fixture.ts';
import { CHAT, chatBody, post, type Reply } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream, type UpstreamOptions } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

let gateway: GatewayFixture;
const upstreams: FakeUpstream[] = [];

async function upstreamOf(options: UpstreamOptions = {}): Promise<FakeUpstream> {
  const upstream = await startUpstream(options);
  upstreams.push(upstream);
  return upstream;
}

function serve(...pods: readonly { readonly port: number }[]): void {
  publish(gateway.board, { name: 'primary', targets: pods.map(({ port }) => ({ workload: 'w', port })) });
}

/** `session`: another conversation, which may have its cache elsewhere. */
const ask = async (session = ''): Promise<Reply> =>
  await post(gateway.port, CHAT, chatBody(), session === '' ? {} : { headers: { 'x-session-id': session } });
const textOf = (reply: Reply): string => JSON.parse(reply.text).choices[0].message.content;
const connections = (): number => gateway.gateway.load().connections;
/** A few turns of the event loop, far less time than an idle connection is kept. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  for (const upstream of upstreams.splice(0)) await upstream.kill();
});

describe('an endpoint that leaves the board while its workload stays', () => {
  test('keeps its requests in flight and loses its idle connections at once', async () => {
    const held: ServerResponse[] = [];
    const leaving = await upstreamOf({
      answer: (_request, res) => void (held.length < 1 ? held.push(res) : sendJson(res, 200, { quick: true })),
    });
    serve(leaving);
    const slow = ask();
    await until(() => held.length === 1);
    await ask();
    await until(() => connections() === 2);
    const staying = await upstreamOf({ text: 'staying' });
    serve(staying);
    await someTurns();
    expect(connections()).toBe(1);
    for (const res of held) sendJson(res, 200, { slow: true });
    expect((await slow).text).toBe('{"slow":true}');
    await someTurns();
    expect(connections()).toBe(0);
    expect(textOf(await ask())).toBe('staying');
  });

  test('gets no new connection, though it may still answer', async () => {
    const [leaving, staying] = [await upstreamOf({ text: 'leaving' }), await upstreamOf({ text: 'staying' })];
    serve(leaving, staying);
    const both = new Set<string>();
    for (let index = 0; index < 50 && both.size < 2; index += 1) both.add(textOf(await ask(`session ${index}`)));
    expect([...both].toSorted()).toEqual(['leaving', 'staying']);
    serve(staying);
    const accepted = leaving.accepted();
    for (let index = 0; index < 50; index += 1) expect(textOf(await ask(`session ${index}`))).toBe('staying');
    expect(leaving.accepted()).toBe(accepted);
  });
});

describe('a replica that dies before it leaves the board', () => {
  test('loses no request, because the other replica answers without a new publication', async () => {
    const [dead, alive] = [await startUpstream(), await upstreamOf({ text: 'alive' })];
    await dead.kill();
    serve(dead, alive);
    const replies = await Promise.all(Array.from({ length: 8 }, ask));
    expect(replies.map(textOf)).toEqual(Array.from({ length: 8 }, () => 'alive'));
  });
});
