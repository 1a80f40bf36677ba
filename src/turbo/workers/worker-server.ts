/** A worker's server: the fast path alone. Other connections go to the controller. */
import { once } from 'node:events';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import type { Server } from 'node:http';
import { BACKLOG, createOpenConnections, openMoreListeners, refuseConnection } from '../../api/server/connections.ts';
import { createFastPath, type FastPathDeps } from '../fast-path/fast-path.ts';
import type { HttpLimits } from '../../api/server/http-server.ts';
import type { FromWorker } from './messages.ts';

interface WorkerServerDeps extends Pick<FastPathDeps, 'listener' | 'rules'> {
  readonly limits: HttpLimits;
  readonly send: SendSocket;
}

export function createWorkerServer({ limits, rules, listener, send }: WorkerServerDeps) {
  const leaving = new Set<Socket>();
  let onLeft: (() => void) | undefined;

  function passOn(socket: Socket): void {
    leaving.add(socket);
    connections.remove(socket);
    handOver(socket, send, () => {
      leaving.delete(socket);
      if (leaving.size === 0) onLeft?.();
    });
  }

  const fastPath = createFastPath({ rules, listener, handOver: passOn, limits });
  const connections = createOpenConnections(fastPath.isBusy);
  const accept = (socket: Socket): void => {
    connections.add(socket);
    if (connections.size <= limits.SVC_MAX_CONNECTIONS) fastPath.accept(socket);
    else refuseConnection(socket, limits);
  };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, accept);
  let more: readonly NetServer[] = [];

  return {
    connections: () => connections.size,
    async listen(address: { readonly host: string; readonly port: number }) {
      await once(server.listen({ ...address, reusePort: true, backlog: BACKLOG }), 'listening');
      more = await openMoreListeners(address, accept);
    },
    /** Stops listening, closes idle connections until `finished` resolves, and all of them after `graceMs`. */
    async close(graceMs: number, finished: Promise<void>) {
      for (const each of [server, ...more]) each.close();
      await connections.drain(graceMs, finished);
      if (leaving.size > 0) await new Promise<void>((resolve) => (onLeft = resolve));
    },
  };
}

type SendSocket = (message: FromWorker, socket: Socket, callback: (error: Error | null) => void) => void;

/**
 * Calls `onDone` once the connection is the controller's, or closed. Nothing may listen to the socket any more. Node
 * keeps reading a socket that it passes on, and discards the bytes, so its internal handle is stopped first.
 */
export function handOver(socket: Socket, send: SendSocket, onDone: () => void): void {
  socket.pause();
  const bytes: unknown = socket.read();
  const handle: unknown = Reflect.get(socket, '_handle');
  if (socket.destroyed || !isHandle(handle)) {
    socket.destroy();
    return onDone();
  }
  handle.readStop();
  send({ kind: 'connection', bytes: bytes instanceof Uint8Array ? bytes : new Uint8Array() }, socket, onDone);
}

export function takeOver(server: Server, socket: Socket, bytes: Uint8Array): void {
  // As those that the server accepts itself.
  socket.allowHalfOpen = true;
  if (bytes.length > 0) socket.unshift(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  server.emit('connection', socket);
}

function isHandle(value: unknown): value is { readStop(): number } {
  return typeof value === 'object' && value !== null && 'readStop' in value && typeof value.readStop === 'function';
}
