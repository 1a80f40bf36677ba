/** Loopback ports for tests. */
import { createServer } from 'node:net';

/** Returns a port that is free now. Another program may take it before the test uses it: then the test fails with a clear error. */
export async function freePort(): Promise<number> {
  const occupied = await occupyPort(0);
  await occupied.close();
  return occupied.port;
}

/** Listens on a port (0: any free one), and closes every connection. */
export function occupyPort(wanted: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('The server has no port');
      resolve({ port: address.port, close: () => new Promise((done) => server.close(() => done())) });
    });
  });
}
