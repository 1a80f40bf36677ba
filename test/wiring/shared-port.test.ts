import { connect, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { canSharePorts, untilFree } from '../../src/wiring/start-workers.ts';
import { freePort } from '../support/free-port.ts';

const host = '127.0.0.1';
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** As a process that shares its port. */
async function listen(port: number): Promise<Server> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen({ host, port, reusePort: true }, resolve));
  return server;
}

test('a port that another service shares is not free, although this one could share it too', async () => {
  const port = await freePort();
  await listen(port);
  await expect(untilFree({ host, port })).rejects.toThrow('EADDRINUSE');
});

test.each(['127.0.0.1', '0.0.0.0', '::1', '::', 'localhost'])(
  'nobody is accepted while it is found out whether a port of %s is free',
  async (at) => {
    const port = await freePort();
    const accepted: string[] = [];
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const free = untilFree({ host: at, port });
      const clients = Array.from({ length: 5 }, async () => {
        const socket = connect({ host: at, port });
        const outcome = new Promise<string>(
          (resolve) => void socket.once('connect', () => resolve('connected')).once('error', ({ message }) => resolve(message)),
        );
        accepted.push(await outcome);
        socket.destroy();
      });
      await Promise.all([free, ...clients]);
    }
    expect(accepted).toHaveLength(250);
    expect(accepted.filter((outcome) => !outcome.includes('ECONNREFUSED'))).toEqual([]);
  },
);

test.each(['127.0.0.1', '0.0.0.0'])('a server at all addresses has the port of %s', async (at) => {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen({ host: '0.0.0.0', port: 0, reusePort: true }, resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(untilFree({ host: at, port }, 0)).rejects.toThrow('EADDRINUSE');
});

test.each([
  ['192.0.2.1', 'EADDRNOTAVAIL'],
  ['no-such-name.invalid', /ENOTFOUND|EAI_AGAIN/],
])('%s is refused with what the system says', async (at, message) => {
  await expect(untilFree({ host: at, port: await freePort() })).rejects.toThrow(message);
});

test('a port is waited for while the processes that had it end', async () => {
  const port = await freePort();
  const server = await listen(port);
  let isFree = false;
  const waiting = untilFree({ host, port }).then(() => (isFree = true));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(isFree).toBe(false);
  server.close();
  await waiting;
  await listen(port);
});

test('ports can be shared on Linux, where the address is one of this machine', async () => {
  expect(await canSharePorts({ host })).toBe(process.platform === 'linux');
});
