/** Loopback ports for tests. */
import { createServer } from 'node:net';

/** A port that nobody listens on now. Somebody else may take it before it is used: tests that need it fail loudly then. */
export async function freePort(): Promise<number> {
  const occupied = await occupyPort(0);
  await occupied.close();
  return occupied.port;
}

/** Listens on a port, 0 for any, and drops whoever connects. */
export function occupyPort(wanted: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('No port');
      resolve({ port: address.port, close: () => new Promise((done) => server.close(() => done())) });
    });
  });
}
