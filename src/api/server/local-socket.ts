/**
 * The socket in the state directory, through which root and the user of the service manage it without a token (ADR
 * 0078). Only these two can open its file, so the kernel has authenticated each client.
 */
import { once } from 'node:events';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import type { Server as HttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';

export type LocalSocket = ReturnType<typeof createLocalSocket>;

/** `sun_path` of Linux, without the zero at its end. */
const LONGEST_PATH_BYTES = 107;

export function createLocalSocket() {
  const local = new WeakSet<Socket>();
  let listening: { readonly listener: Server; readonly path: string } | undefined;
  return {
    isLocal: (socket: Socket): boolean => local.has(socket),
    /** Replaces a socket that an earlier process left behind. Throws if it cannot be created. */
    async listen(path: string, server: HttpServer): Promise<void> {
      // The HTTP server's own sockets can be half open as well.
      const listener = createServer({ allowHalfOpen: true }, (socket) => {
        local.add(socket);
        server.emit('connection', socket);
      });
      await bind(listener, path);
      listening = { listener, path };
    },
    /** Removes the file, and resolves once the last connection is closed. The HTTP server closes connections. */
    async close(): Promise<void> {
      if (listening === undefined) return;
      const { listener, path } = listening;
      listening = undefined;
      await rm(path, { force: true });
      await new Promise<void>((resolve) => listener.close(() => resolve()));
    },
  };
}

/** Binds in a directory that only this user can enter until the file has its mode, so others can never connect. */
async function bind(listener: Server, path: string): Promise<void> {
  const directory = await mkdtemp(join(dirname(path), '.api-'));
  try {
    const first = join(directory, 's');
    if (Buffer.byteLength(first) > LONGEST_PATH_BYTES) throw new Error(`its path is longer than ${LONGEST_PATH_BYTES} bytes`);
    await once(listener.listen(first), 'listening');
    await chmod(first, 0o600);
    await rename(first, path);
  } catch (error) {
    listener.close();
    throw error;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
