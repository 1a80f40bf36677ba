import { createServer, type Server } from 'node:net';
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
