/** Node's HTTP server with the limits of the service, and with errors in the documented shape where Node would answer in its own way or hang up. */
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { answerError } from '../gateway/answer.ts';
import { errorAnswer } from '../gateway/decide/error-answer.ts';
import type { Settings } from '../schema/settings.ts';
import { createDenseSet } from '../gateway/dense-set.ts';
import { createFastPath, type FastPathDeps } from './fast-path/fast-path.ts';
import { newRequestId } from './request-id.ts';
import type { UpgradePath } from './upgrade-path.ts';
import { writeError } from './write-error.ts';

export type HttpLimits = Pick<Settings, 'SVC_FAST_PATH' | 'SVC_HEADER_LIMIT' | 'SVC_MAX_CONNECTIONS' | 'SVC_PARK_TIMEOUT'>;

/** Headers that take longer indicate an attack or a dead connection. */
const HEADERS_MS = 30_000;
/** Time for the whole request in addition to the time it may be parked with its body unread; Node's own default. */
const REQUEST_MS = 300_000;
/** Longer than common proxies keep idle connections, so that the proxy closes them and no request is sent on a closing connection. */
const KEEP_ALIVE_MS = 75_000;
/** Longer than a request takes from the client to the service. */
const LINGER_MS = 250;
/** Connections over the limit that get an error response; further ones are closed without one. */
const OVER_LIMIT = 64;

/** Node's code for a request that was not complete in time. */
const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

export interface HttpListeners {
  readonly listener: (req: IncomingMessage, res: ServerResponse) => void;
  /** Answers an inference request of the fast path. */
  readonly fastListener: FastPathDeps['listener'];
  /** Whether `fastListener` answers a POST to this path. */
  readonly serves: (path: string) => boolean;
  /** Takes connections that change to another protocol. */
  readonly upgrades: UpgradePath;
}

export function createHttpServer(limits: HttpLimits, { listener, fastListener, serves, upgrades }: HttpListeners) {
  const requestMs = limits.SVC_PARK_TIMEOUT + REQUEST_MS;
  const server = createServer(
    {
      maxHeaderSize: limits.SVC_HEADER_LIMIT,
      headersTimeout: HEADERS_MS,
      requestTimeout: requestMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The hot path and the framework check it and answer in the documented shape.
      requireHostHeader: false,
      noDelay: true,
      shouldUpgradeCallback: upgrades.serves,
    },
    listener,
  );
  server.maxConnections = limits.SVC_MAX_CONNECTIONS + OVER_LIMIT;
  const serveHttp = takeConnections(server);
  const fastPath = createFastPath({
    rules: { headerLimit: limits.SVC_HEADER_LIMIT, serves },
    listener: fastListener,
    handOver: serveHttp,
    refuse: (socket, error, headersSent) =>
      answerClientError(error === 'timeout' ? REQUEST_TIMEOUT : undefined, { socket, headersSent }, limits),
    limits: { keepAliveMs: KEEP_ALIVE_MS, requestMs },
  });
  const open = createDenseSet<Socket>();
  server.on('connection', (socket) => {
    const member = open.add(socket);
    socket.on('close', () => open.remove(member));
    const isOver = open.size > limits.SVC_MAX_CONNECTIONS;
    if (limits.SVC_FAST_PATH && !isOver) fastPath.accept(socket);
    else serveHttp(socket);
    if (!isOver) return;
    writeError(socket, 'server.overloaded', `Try again later: ${limits.SVC_MAX_CONNECTIONS} connections are open ("SVC_MAX_CONNECTIONS")`);
  });
  // The reader of the body sends "100 Continue" once the body is wanted.
  server.on('checkContinue', listener);
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    answerError(
      req,
      res,
      errorAnswer('request.invalid', 'Send no other expectation than "100-continue"', { param: 'Expect', requestId: newRequestId() }),
    );
  });
  /** They are no longer connections of this server, which cannot tell whether they are idle. */
  const upgraded = new WeakSet<Duplex>();
  server.on('upgrade', (req: IncomingMessage, socket, leftover) => {
    upgraded.add(socket);
    upgrades.enter(req, leftover);
  });
  server.on('connect', (_req, socket) => writeError(socket, 'route.method', 'Use another method: "CONNECT" is not supported'));
  server.on('clientError', (error: Error & { readonly code?: string }, socket) =>
    answerClientError(error.code, { socket, headersSent: responseOn(socket)?.headersSent === true }, limits),
  );
  const quiet = new WeakMap<Socket, { readonly bytesRead: number; readonly since: number }>();
  return {
    server,
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
        if (responseOn(socket) !== undefined || fastPath.isBusy(socket) || upgraded.has(socket)) quiet.delete(socket);
        else if (seen?.bytesRead !== socket.bytesRead) quiet.set(socket, { bytesRead: socket.bytesRead, since: now });
        else if (now - seen.since >= LINGER_MS) socket.destroy();
      }
    },
  };
}

/** Takes new connections from Node's HTTP server, which still listens. Returns what it does with a connection: also one that was read from, if that is at the front of its socket again. */
function takeConnections(server: Server): (socket: Socket) => void {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  return (socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
}

interface BrokenRequest {
  readonly socket: Duplex;
  /** An answer to it has begun. */
  readonly headersSent: boolean;
}

function answerClientError(code: string | undefined, { socket, headersSent }: BrokenRequest, limits: HttpLimits): void {
  // While a response is in progress on this connection, another one would be read as a part of it.
  if (code === 'ECONNRESET' || !socket.writable || headersSent) {
    socket.destroy();
    return;
  }
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      writeError(
        socket,
        'request.headers_too_large',
        `Send smaller headers: the limit is ${limits.SVC_HEADER_LIMIT} bytes ("SVC_HEADER_LIMIT")`,
      );
      return;
    case REQUEST_TIMEOUT:
      writeError(socket, 'request.timeout', 'Send the complete request sooner: it timed out');
      return;
    default:
      writeError(socket, 'request.invalid', 'Send a well-formed HTTP/1.1 request');
  }
}

function responseOn(socket: Duplex): ServerResponse | undefined {
  const current: unknown = Reflect.get(socket, '_httpMessage');
  return current instanceof ServerResponse ? current : undefined;
}
