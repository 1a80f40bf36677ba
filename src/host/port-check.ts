/** Checks whether a loopback port is free. Some servers (whisper.cpp's) would otherwise silently share an occupied one. */
import { createServer } from 'node:net';
import { codeOf } from '../platform/error-text.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';

/** Succeeds if nothing listens on `127.0.0.1:port` or on all addresses. The result may be out of date at once; the start itself decides. */
export async function checkPortFree(port: number): Promise<Result<void>> {
  const error = await listenError('127.0.0.1', port);
  if (error === undefined) return ok(undefined);
  return codeOf(error) === 'EADDRINUSE' ? portTaken(port) : fail('retry', 'PortTaken', `Port ${port} cannot be used: ${error.message}`);
}

/** Returns why nothing can listen at the address; undefined if it is free. */
export function listenError(host: string, port: number): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

export const portTaken = (port: number): Result<never> =>
  fail('retry', 'PortTaken', `Free port ${port} on 127.0.0.1, or wait until another port is tried: another program listens there`);
