/** A burst of connections while the event loop is busy: libuv takes one connection of each listener in a turn. */
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createHttpServer } from '../../../src/api/server/http-server.ts';
import { parseSettings } from '../../../src/schema/settings/settings.ts';
import { freePort } from '../../support/free-port.ts';

const CONNECTIONS = 128;
const BUSY_MS = 3;
const closes: (() => void)[] = [];

afterEach(() => {
  for (const close of closes.splice(0)) close();
});

function serverOf(environment: Readonly<Record<string, string>> = {}) {
  const parsed = parseSettings(environment);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const listener = (_req: unknown, res: { end(text: string): void }): void => res.end('ok');
  const upgrades = { serves: () => false, enter: () => undefined };
  const made = createHttpServer(parsed.settings, { listener, fastListener: listener, serves: () => false, upgrades });
  closes.push(() => {
    made.door.stop();
    made.server.closeAllConnections();
  });
  return made;
}

/** Returns how many turns the event loop takes until all connections are accepted, each as long as with many streams. */
async function turnsUntilAccepted(connections: { readonly size: number }, port: number): Promise<number> {
  const sockets: Socket[] = [];
  for (let count = 0; count < CONNECTIONS; count += 1) sockets.push(connect({ host: '127.0.0.1', port }).on('error', () => undefined));
  closes.push(() => sockets.forEach((socket) => socket.destroy()));
  let turns = 0;
  while (connections.size < CONNECTIONS) {
    const until = performance.now() + BUSY_MS;
    while (performance.now() < until);
    turns += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return turns;
}

test('takes several connections in a turn where a port can have several listeners', async () => {
  const { connections, door } = serverOf();
  const address = { host: '127.0.0.1', port: await freePort() };
  await door.open(address);
  expect(await turnsUntilAccepted(connections, address.port)).toBeLessThan(CONNECTIONS / 2);
});

test('takes one in a turn otherwise, which is why there are several', async () => {
  const { connections, server } = serverOf();
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  expect(await turnsUntilAccepted(connections, port)).toBeGreaterThanOrEqual(CONNECTIONS);
});

test('closes what comes when those that are refused have not left, whichever listener it came to', () => {
  const { connections, server } = serverOf({ SVC_MAX_CONNECTIONS: '4' });
  // Nothing that is written to them is ever sent.
  const sockets = Array.from({ length: 4 + 64 + 1 }, () => new Socket());
  for (const socket of sockets) server.emit('connection', socket);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([...sockets.slice(1).map(() => false), true]);
  expect(connections.size).toBeGreaterThan(4);
  closes.push(() => sockets.forEach((socket) => socket.destroy()));
});

test('listens no more once it has stopped, and again after that', async () => {
  const { door } = serverOf();
  const address = { host: '127.0.0.1', port: await freePort() };
  const answers = async (): Promise<boolean> => {
    const socket = connect(address);
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isOpen;
  };
  await door.open(address);
  expect(await answers()).toBe(true);
  door.stop();
  for (let count = 0; count < 32; count += 1) expect(await answers()).toBe(false);
  await door.open(address);
  expect(await answers()).toBe(true);
});
