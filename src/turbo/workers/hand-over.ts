/**
 * Passes a connection and the bytes read from it to the controller.
 *
 * Node keeps reading a socket that it passes on, and discards the bytes. So reading is stopped first, which only the
 * internal handle of a socket can do.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FromWorker } from './messages.ts';

/** As `process.send()`. */
export type SendSocket = (message: FromWorker, socket: Socket, callback: (error: Error | null) => void) => void;

interface Handle {
  readStop(): number;
}

/** Calls `onDone` once the connection is the controller's, or closed. Nothing may listen to the socket any more. */
export function handOver(socket: Socket, send: SendSocket, onDone: () => void): void {
  socket.pause();
  const bytes: unknown = socket.read();
  const handle: unknown = Reflect.get(socket, '_handle');
  if (socket.destroyed || !isHandle(handle)) {
    socket.destroy();
    onDone();
    return;
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

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'readStop' in value && typeof value.readStop === 'function';
}
