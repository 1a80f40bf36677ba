/** The open connections of a server, and how they are closed when it stops. */
import type { Socket } from 'node:net';
import { createDenseSet, type Member } from '../../platform/dense-set.ts';

/** Longer than a request takes from the client to the service. */
const LINGER_MS = 250;

/** `isBusy`: a request is in progress on a connection. */
export function createOpenConnections(isBusy: (socket: Socket) => boolean) {
  const open = createDenseSet<Socket>();
  const members = new WeakMap<Socket, Member<Socket>>();
  const quiet = new WeakMap<Socket, { readonly bytesRead: number; readonly since: number }>();
  let onEmpty: (() => void) | undefined;

  function remove(socket: Socket): void {
    const member = members.get(socket);
    if (member !== undefined) open.remove(member);
    if (open.size === 0) onEmpty?.();
  }

  return {
    get size() {
      return open.size;
    },
    add(socket: Socket) {
      members.set(socket, open.add(socket));
      socket.on('close', () => remove(socket));
    },
    /** The connection belongs to another process now. */
    remove,
    closeAll() {
      for (const socket of open.items()) socket.destroy();
    },
    /**
     * Closes connections that have been idle for a moment; to be called repeatedly. Node's own method closes them at once, even if a client that relies on
     * keep-alive is just sending a request.
     */
    closeIdle() {
      const now = performance.now();
      for (const socket of open.items()) {
        const seen = quiet.get(socket);
        if (isBusy(socket)) quiet.delete(socket);
        else if (seen?.bytesRead !== socket.bytesRead) quiet.set(socket, { bytesRead: socket.bytesRead, since: now });
        else if (now - seen.since >= LINGER_MS) socket.destroy();
      }
    },
    /** Resolves once none is open. To be called once. */
    async empty() {
      if (open.size > 0) await new Promise<void>((resolve) => (onEmpty = resolve));
    },
  };
}
