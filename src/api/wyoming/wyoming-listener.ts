/** Listens for connections of the Wyoming protocol, which has no authentication (`docs/security.md`). */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { messageOf } from '../../platform/error-text.ts';
import { sleep } from '../../platform/clock.ts';
import { encodeWyoming, readWyoming, MOST_DATA_BYTES, MOST_PAYLOAD_BYTES } from './decide/wyoming-events.ts';
import { createWyomingSession, WyomingError, type WyomingDeps } from './wyoming-session.ts';

type ListenerDeps = Omit<WyomingDeps, 'socket' | 'requestId'> & {
  /** Default: a minute. */
  readonly idleMs?: number;
};

/** Home Assistant opens one for each request. */
const MOST_CONNECTIONS = 64;
/** A client that sends nothing and waits for nothing, or reads nothing. */
const IDLE_MS = 60_000;
/** More than one event: then the client has to wait. */
const UNREAD_BYTES = MOST_DATA_BYTES + MOST_PAYLOAD_BYTES;
/** So that a client reads the error before its connection breaks. */
const LINGER_MS = 1000;
const CLOSE_CHECK_MS = 20;

export function createWyomingListener(deps: ListenerDeps) {
  const sockets = new Set<Socket>();
  const busy = new Set<Socket>();
  let closing = false;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serveSocket(socket, deps, (isBusy) => {
      if (isBusy) busy.add(socket);
      else busy.delete(socket);
      if (!isBusy && closing) socket.end();
    });
  });
  server.maxConnections = MOST_CONNECTIONS;

  return {
    async listen(address: { readonly host: string; readonly port: number }) {
      await once(server.listen(address), 'listening');
      return server.address();
    },
    /** Requests may take `graceMs` to end. */
    async close(graceMs: number): Promise<void> {
      closing = true;
      server.close();
      const until = performance.now() + graceMs;
      for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
      while (sockets.size > 0 && performance.now() < until) await sleep(CLOSE_CHECK_MS);
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The protocol has no credentials. */
const WYOMING = { key: 'wyoming' };

function serveSocket(socket: Socket, deps: ListenerDeps, onBusy: (isBusy: boolean) => void): void {
  const ended = new AbortController();
  let arrived: Buffer = Buffer.alloc(0);
  const session = createWyomingSession({ ...deps, socket, requestId: `wyoming-${randomUUID()}`, caller: WYOMING }, ended.signal);
  let isBusy = false;

  const fail = (code: string, message: string): void => {
    socket.end(encodeWyoming('error', { text: message, code }));
    // It may go on sending.
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
  const handleAll = async (): Promise<void> => {
    for (let read = readWyoming(arrived); read.kind !== 'more'; read = readWyoming(arrived)) {
      if (read.kind === 'problem') return fail('request.invalid', read.message);
      arrived = read.rest;
      await session.handle(read.event);
      if (arrived.length < UNREAD_BYTES) socket.resume();
    }
  };
  const work = async (): Promise<void> => {
    isBusy = true;
    onBusy(true);
    try {
      await handleAll();
    } catch (error) {
      if (!ended.signal.aborted) fail(error instanceof WyomingError ? error.code : 'server.internal', messageOf(error));
    }
    isBusy = false;
    onBusy(false);
  };

  socket.setNoDelay(true);
  const { idleMs = IDLE_MS } = deps;
  socket.setTimeout(idleMs, () => {
    if (!isBusy) fail('request.timeout', `Nothing came for ${idleMs / 1000} s: connect again`);
    else if (socket.writableLength > 0) socket.destroy();
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    ended.abort(new Error('The client has left'));
    session.dispose();
  });
  socket.on('data', (bytes) => {
    if (socket.writableEnded) return;
    arrived = arrived.length === 0 ? bytes : Buffer.concat([arrived, bytes]);
    if (isBusy && arrived.length >= UNREAD_BYTES) socket.pause();
    if (!isBusy) void work();
  });
}
