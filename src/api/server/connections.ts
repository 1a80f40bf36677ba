/** The open connections of a server, and how they are closed when it stops. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createDenseSet, type Member } from '../../platform/dense-set.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { writeError } from './error-handler.ts';

/** Longer than a request takes from the client to the service. */
const LINGER_MS = 250;
const IDLE_CHECK_MS = 50;

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

  /** Node's own method would close a connection on which a request is just arriving. */
  function closeIdle(): void {
    const now = performance.now();
    for (const socket of open.items()) {
      const seen = quiet.get(socket);
      if (isBusy(socket)) quiet.delete(socket);
      else if (seen?.bytesRead !== socket.bytesRead) quiet.set(socket, { bytesRead: socket.bytesRead, since: now });
      else if (now - seen.since >= LINGER_MS) socket.destroy();
    }
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
    /** Closes idle connections, and all of them after `graceMs`. Resolves once `finished` has and none is open. */
    async drain(graceMs: number, finished: Promise<unknown>) {
      // Repeated, because connections become idle during the wait.
      const idle = setInterval(closeIdle, IDLE_CHECK_MS);
      const cut = setTimeout(() => open.items().forEach((socket) => socket.destroy()), graceMs);
      await finished;
      if (open.size > 0) await new Promise<void>((resolve) => (onEmpty = resolve));
      clearInterval(idle);
      clearTimeout(cut);
    },
  };
}

/** Node's code for a request that was not complete in time. */
export const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

interface BrokenRequest {
  readonly socket: Duplex;
  /** The answer has begun or is complete: another one would be taken for a part of it, or for the next answer. */
  readonly isAnswered: boolean;
}

/** `code`: Node's, of the error that its parser found; undefined for a request that is not well-formed. */
export function answerClientError(
  code: string | undefined,
  { socket, isAnswered }: BrokenRequest,
  limits: Pick<Settings, 'SVC_HEADER_LIMIT'>,
): void {
  if (code === 'ECONNRESET' || !socket.writable || isAnswered) return void socket.destroy();
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return writeError(
        socket,
        'request.headers_too_large',
        `The headers exceed ${limits.SVC_HEADER_LIMIT} bytes ("SVC_HEADER_LIMIT"): send smaller ones`,
      );
    case REQUEST_TIMEOUT:
      return writeError(socket, 'request.timeout', 'The request was not complete in time: send it faster');
    default:
      writeError(socket, 'request.invalid', 'The request is malformed: send valid HTTP/1.1');
  }
}

export function refuseConnection(socket: Duplex, { SVC_MAX_CONNECTIONS: most }: Pick<Settings, 'SVC_MAX_CONNECTIONS'>): void {
  writeError(socket, 'server.overloaded', `${most} connections are open ("SVC_MAX_CONNECTIONS"): try again later`);
}

/**
 * Connections that may wait to be accepted: of more at once, some would wait a second for the kernel's next try. Node's
 * own default is 511; Linux lowers it to `net.core.somaxconn`.
 */
export const BACKLOG = 4096;
/**
 * Listeners of one port in one process. libuv accepts one connection for each listener in a turn of the event loop, so
 * with one of them, new connections would wait for seconds behind hundreds of busy streams.
 */
const LISTENERS = 16;

/** Opens all but the first one, which listens already. Returns those that could be opened. */
export async function openMoreListeners(
  address: { readonly host: string; readonly port: number },
  onConnection: (socket: Socket) => void,
): Promise<readonly Server[]> {
  const opening = Array.from({ length: LISTENERS - 1 }, async () => {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
    await once(listener.listen({ ...address, reusePort: true, backlog: BACKLOG }), 'listening');
    return listener;
  });
  const opened = await Promise.allSettled(opening);
  return opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
}

/** Headers that take longer indicate an attack or a dead connection. */
export const HEADERS_MS = 30_000;
/** Time for the whole request in addition to the time it may be parked with its body unread; Node's own default. */
export const REQUEST_MS = 300_000;
/** Longer than common proxies keep idle connections, so the proxy closes them and sends nothing on a closing one. */
export const KEEP_ALIVE_MS = 75_000;
/** Time for the rest of a body after the answer: a mebibyte at a slow rate. */
export const REST_MS = 30_000;
