/** Node's HTTP server with the limits of the service, and with errors in the documented shape where Node would answer in its own way or hang up. */
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { answerError } from '../../gateway/answer.ts';
import { errorAnswer } from '../../gateway/route/decide/dialects.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import {
  answerClientError,
  refuseConnection,
  REQUEST_TIMEOUT,
  HEADERS_MS,
  KEEP_ALIVE_MS,
  REQUEST_MS,
  createOpenConnections,
} from './connections.ts';
import { createFastPath, type FastPathDeps } from '../../turbo/fast-path/fast-path.ts';
import { NodeRequest } from '../../turbo/heap/node-request.ts';
import { newRequestId } from './route.ts';
import type { UpgradePath } from './upgrade-path.ts';
import { writeError } from './error-handler.ts';

export type HttpLimits = Pick<Settings, 'SVC_FAST_PATH' | 'SVC_HEADER_LIMIT' | 'SVC_MAX_CONNECTIONS' | 'SVC_PARK_TIMEOUT'>;

/** Connections over the limit that get an error response; further ones are closed without one. */
const OVER_LIMIT = 64;

export interface HttpListeners {
  readonly listener: (req: IncomingMessage, res: ServerResponse) => void;
  /** Answers an inference request of the fast path. */
  readonly fastListener: FastPathDeps['listener'];
  /** Whether `fastListener` answers a POST to this path. */
  readonly serves: (path: string) => boolean;
  /** Takes connections that change to another protocol. */
  readonly upgrades: UpgradePath;
  /** Number of connections of other processes that count as well. Default: none. */
  readonly connectionsElsewhere?: (() => number) | undefined;
}

export function createHttpServer(
  limits: HttpLimits,
  { listener, fastListener, serves, upgrades, connectionsElsewhere = () => 0 }: HttpListeners,
) {
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
      IncomingMessage: NodeRequest,
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
  /** They are no longer connections of this server, which cannot tell whether they are idle. */
  const upgraded = new WeakSet<Duplex>();
  const connections = createOpenConnections(
    (socket) => responseOn(socket) !== undefined || fastPath.isBusy(socket) || upgraded.has(socket),
  );
  server.on('connection', (socket) => {
    connections.add(socket);
    const isOver = connections.size + connectionsElsewhere() > limits.SVC_MAX_CONNECTIONS;
    if (limits.SVC_FAST_PATH && !isOver) fastPath.accept(socket);
    else serveHttp(socket);
    if (isOver) refuseConnection(socket, limits);
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
  server.on('upgrade', (req: IncomingMessage, socket, leftover) => {
    upgraded.add(socket);
    upgrades.enter(req, leftover);
  });
  server.on('connect', (_req, socket) => writeError(socket, 'route.method', 'Use another method: "CONNECT" is not supported'));
  server.on('clientError', (error: Error & { readonly code?: string }, socket) =>
    answerClientError(error.code, { socket, headersSent: responseOn(socket)?.headersSent === true }, limits),
  );
  return { server, connections };
}

/** Takes new connections from Node's HTTP server, which still listens. Returns what it does with a connection: also one that was read from, if that is at the front of its socket again. */
function takeConnections(server: Server): (socket: Socket) => void {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  return (socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
}

function responseOn(socket: Duplex): ServerResponse | undefined {
  const current: unknown = Reflect.get(socket, '_httpMessage');
  return current instanceof ServerResponse ? current : undefined;
}
