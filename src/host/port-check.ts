/** Whether a loopback port can be had right now. Some servers (whisper.cpp's) would otherwise share a taken one in silence. */
import { createServer } from 'node:net';
import { fail, ok } from '../schema/failure.ts';
import type { Result } from '../schema/failure.ts';

/** Succeeds when nothing listens on `127.0.0.1:port`, nor on all addresses. The answer is old at once: the start itself decides. */
export function checkPortFree(port: number): Promise<Result<void>> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'EADDRINUSE' ? portTaken(port) : fail('retry', 'PortTaken', `Port ${port} cannot be used: ${error.message}`));
    });
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      server.close(() => resolve(ok(undefined)));
    });
  });
}

export const portTaken = (port: number): Result<never> =>
  fail('retry', 'PortTaken', `Free port ${port} on 127.0.0.1, or leave it and another one is tried: something else listens there`);
