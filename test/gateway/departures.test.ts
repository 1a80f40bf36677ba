/** Clients that leave while their request waits: each frees its place, its memory and its demand, however much of its body has been sent. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { PARK, publish, slotName } from './support/board-fixture.ts';
import { CHAT, chatBody } from './support/client.ts';
import { startUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const PRIMARY = slotName('primary');
const MIB = 1024 * 1024;
let gateway: GatewayFixture;
const sockets = new Set<Socket>();

beforeEach(async () => {
  gateway = await startGateway({ settings: { SVC_PARK_TIMEOUT: '300s' } });
  publish(gateway.board, { name: 'primary', admission: PARK });
});
afterEach(async () => {
  // After a failure, the connections would keep this process alive.
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await gateway.close();
  expect(gateway.faults).toEqual([]);
});

const parked = (): number => gateway.traffic.ofSlot(PRIMARY).parked;
const demand = (): number | undefined => gateway.traffic.read().demand.get(PRIMARY)?.waiting;

/** Sends a request with the first `sentBytes` of a body of `bodyBytes`. */
function send(bodyBytes: number, sentBytes: number): Socket {
  const body = chatBody({ pad: 'x'.repeat(bodyBytes) });
  const socket = connect(gateway.port, '127.0.0.1');
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.write(`POST ${CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(body.slice(0, sentBytes));
  return socket;
}

const WAYS: Readonly<Record<string, (socket: Socket) => void>> = {
  'closes its connection': (socket) => void socket.destroy(),
  'resets its connection': (socket) => void socket.resetAndDestroy(),
};

describe('a parked request', () => {
  const sizes: readonly (readonly [string, number, number])[] = [
    ['small body', 1000, Number.POSITIVE_INFINITY],
    ['body of 3 MiB', 3 * MIB, Number.POSITIVE_INFINITY],
    ['body of 3 MiB of which 2 have been sent', 3 * MIB, 2 * MIB],
    ['body of 40 MiB', 40 * MIB, Number.POSITIVE_INFINITY],
  ];
  const cases = sizes.flatMap(([size, total, sent]) =>
    Object.keys(WAYS).map((way): [string, string, number, number] => [size, way, total, sent]),
  );

  test.each(cases)('with a %s ends when its client %s', async (_size, way, total, sent) => {
    const socket = send(total, sent);
    await until(() => parked() === 1);
    expect(demand()).toBe(1);
    WAYS[way]?.(socket);
    await until(() => parked() === 0);
    expect([demand(), gateway.finished.map(({ status }) => status)]).toEqual([0, [499]]);
    await until(() => gateway.gateway.load().requests === 0);
    expect(gateway.gateway.load().bufferedBytes).toBe(0);
  });

  test('makes room in a full queue', async () => {
    const clients = Array.from({ length: 64 }, () => send(2 * MIB, Number.POSITIVE_INFINITY));
    await until(() => parked() === 64);
    for (const client of clients) client.destroy();
    await until(() => parked() === 0);
    const upstream = await startUpstream();
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    await new Promise((resolve) => setImmediate(resolve));
    expect([upstream.accepted(), demand()]).toEqual([0, 0]);
    await upstream.kill();
  });
});

test('a slot was last asked for when its last waiter left', async () => {
  const socket = send(1000, Number.POSITIVE_INFINITY);
  await until(() => parked() === 1);
  const askedAt = gateway.traffic.read().demand.get(PRIMARY)?.lastAskedAt ?? 0;
  await until(() => performance.now() > askedAt + 20);
  socket.destroy();
  await until(() => parked() === 0);
  expect(gateway.traffic.read().demand.get(PRIMARY)?.lastAskedAt ?? 0).toBeGreaterThan(askedAt + 20);
});
