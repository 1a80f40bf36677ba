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
export type SecondDoor = ReturnType<typeof createSecondDoor>;

/** `sun_path` of Linux, without the zero at its end. */
const LONGEST_PATH_BYTES = 107;

export function createLocalSocket() {
  const door = createSecondDoor();
  let removed: string | undefined;
  return {
    isLocal: door.hasLedIn,
    /** Replaces a socket that an earlier process left behind. Throws if it cannot be created. */
    async listen(path: string, server: HttpServer): Promise<void> {
      await door.open(server, async (listener) => bind(listener, path));
      removed = path;
    },
    /** Removes the file, and resolves once the last connection is closed. The HTTP server closes connections. */
    async close(): Promise<void> {
      if (removed !== undefined) await rm(removed, { force: true });
      await door.close();
    },
  };
}

/** Another listener whose connections the HTTP server serves, and can tell from its own. */
export function createSecondDoor() {
  const led = new WeakSet<Socket>();
  let open: Server | undefined;
  return {
    hasLedIn: (socket: Socket): boolean => led.has(socket),
    async open(server: HttpServer, listenWith: (listener: Server) => Promise<void>): Promise<Server> {
      // The HTTP server's own sockets can be half open as well.
      const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        led.add(socket);
        server.emit('connection', socket);
      });
      await listenWith(listener);
      return (open = listener);
    },
    /** Resolves once the last connection is closed. */
    async close(): Promise<void> {
      const closing = open;
      open = undefined;
      if (closing !== undefined) await new Promise<void>((resolve) => closing.close(() => resolve()));
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
