/** Refusals keep the client's connection open, so that a crowd of refused clients does not have to connect again. */
import { afterEach, expect, test } from '@jest/globals';
import { Agent, request } from 'node:http';
import { DISABLED, PARK, publish, slotName } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, responseOf } from './support/client.ts';
import { startGateway, until, type FixtureOptions, type GatewayFixture } from './support/gateway-fixture.ts';

let gateway: GatewayFixture;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

afterEach(async () => {
  await gateway.close();
});

async function start(options: FixtureOptions = {}): Promise<void> {
  gateway = await startGateway(options);
}

interface Answered {
  readonly status: number | undefined;
  readonly clientPort: number | undefined;
}

function ask(body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const all = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers };
    const req = request({ host: '127.0.0.1', port: gateway.port, path: CHAT, method: 'POST', headers: all, agent }, (res) => {
      const clientPort = req.socket?.localPort;
      res.resume();
      res.on('end', () => resolve({ status: res.statusCode, clientPort }));
    });
    req.on('error', reject);
    req.end(body);
  });
}

const CASES: Readonly<Record<string, readonly [number, () => Promise<void>, () => Promise<Answered>]>> = {
  'a full queue': [
    429,
    async () => {
      await start({ settings: { SVC_PARK_LIMIT: '1' } });
      publish(gateway.board, { name: 'primary', admission: PARK });
      const waiting = begin(gateway.port, CHAT, { 'content-length': chatBody().length });
      waiting.end(chatBody());
      await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 1);
    },
    () => ask(chatBody()),
  ],
  'a slot that is not enabled': [
    503,
    async () => {
      await start();
      publish(gateway.board, { name: 'primary', admission: DISABLED });
    },
    () => ask(chatBody()),
  ],
  'an unknown model': [404, () => startOpen(), () => ask(chatBody({ model: 'nobody' }))],
  'a body that is not JSON': [400, () => startOpen(), () => ask('[')],
  'a body of 900 KB in another media type': [415, () => startOpen(), () => ask('x'.repeat(900_000), { 'content-type': 'text/plain' })],
  'missing credentials': [
    401,
    () => start({ authorize: () => ({ ok: false, code: 'auth.required', message: 'Send a token' }) }),
    () => ask(chatBody({ pad: 'x'.repeat(300_000) })),
  ],
};

async function startOpen(): Promise<void> {
  await start();
  publish(gateway.board, { name: 'primary', admission: PARK });
}

test.each(Object.keys(CASES))('%s leaves the connection open for the next request', async (name) => {
  const [status, prepare, send] = CASES[name] ?? [0, startOpen, () => ask('')];
  await prepare();
  const answers: Answered[] = [];
  for (let round = 0; round < 50; round += 1) answers.push(await send());
  expect(answers.map((answer) => answer.status)).toEqual(Array.from({ length: 50 }, () => status));
  expect(new Set(answers.map(({ clientPort }) => clientPort)).size).toBe(1);
});

test('the connection of a refused client that has not said how much of its body is to come is closed', async () => {
  await startOpen();
  const refused = begin(gateway.port, CHAT, {
    'content-type': 'application/json',
    'transfer-encoding': 'chunked',
    connection: 'keep-alive',
  });
  refused.on('error', () => undefined);
  refused.write('[');
  const answer = await responseOf(refused);
  expect([answer.statusCode, answer.headers.connection]).toEqual([400, 'close']);
  refused.destroy();
});
