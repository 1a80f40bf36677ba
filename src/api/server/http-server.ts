/** Node's HTTP server with the limits of the service, and errors in the documented shape where Node has its own. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { answerError } from '../../gateway/client-answer.ts';
import type { ClientRequest, ClientResponse } from '../../gateway/client-exchange.ts';
import { errorAnswer } from '../../gateway/route/decide/dialects.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import {
  answerClientError,
  BACKLOG,
  createOpenConnections,
  HEADERS_MS,
  openMoreListeners,
  KEEP_ALIVE_MS,
  refuseConnection,
  REQUEST_MS,
  REST_MS,
} from './connections.ts';
import { writeError } from './error-handler.ts';
import { newRequestId } from './define-route.ts';
import type { UpgradePath } from './upgrade-path.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

export type HttpLimits = Pick<Settings, 'SVC_HEADER_LIMIT' | 'SVC_MAX_CONNECTIONS' | 'SVC_PARK_TIMEOUT'>;

/** Connections over the limit that get an error response; further ones are closed without one. */
const OVER_LIMIT = 64;

/** Makes the server faster. The server does the same without it. */
export interface Accelerator {
  /** The class of Node's requests. Default: Node's own. */
  readonly Request?: typeof IncomingMessage;
  /** Reads inference requests instead of Node's HTTP server. Default: Node reads all requests. */
  readonly readConnections?: (server: Server, options: ReaderOptions) => ConnectionReader;
}

export interface ReaderOptions extends Pick<HttpListeners, 'serves'> {
  readonly limits: HttpLimits;
  readonly listener: (req: ClientRequest, res: ClientResponse) => void;
}

export interface ConnectionReader {
  accept(socket: Socket): void;
  /** Leaves a new connection to Node's HTTP server. */
  pass(socket: Socket): void;
  isBusy(socket: Socket): boolean;
}

const NODE_READS: ConnectionReader = { accept: () => undefined, pass: () => undefined, isBusy: () => false };

export interface HttpListeners {
  readonly listener: (req: IncomingMessage, res: ServerResponse) => void;
  readonly fastListener: ReaderOptions['listener'];
  readonly serves: (path: string) => boolean;
  /** Takes connections that change to another protocol. */
  readonly upgrades: UpgradePath;
  /** Number of connections of other processes that count as well. Default: none. */
  readonly connectionsElsewhere?: (() => number) | undefined;
  readonly accelerator?: Accelerator | undefined;
}

export function createHttpServer(limits: HttpLimits, listeners: HttpListeners) {
  const { listener, fastListener, serves, upgrades, connectionsElsewhere = () => 0, accelerator = {} } = listeners;
  const requests = createLastRequests();
  let keepsAlive = true;
  let leaves = false;
  const listen = (req: IncomingMessage, res: ServerResponse): void => {
    if (!keepsAlive) res.shouldKeepAlive = false;
    requests.note(req, res);
    listener(req, res);
  };
  const listenFast: typeof fastListener = (req, res) => {
    if (!keepsAlive) res.shouldKeepAlive = false;
    fastListener(req, res);
  };
  const server = createServer(
    {
      maxHeaderSize: limits.SVC_HEADER_LIMIT,
      headersTimeout: HEADERS_MS,
      requestTimeout: limits.SVC_PARK_TIMEOUT + REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The raw routes and the framework check it and answer in the documented shape.
      requireHostHeader: false,
      noDelay: true,
      shouldUpgradeCallback: upgrades.serves,
      ...(accelerator.Request === undefined ? {} : { IncomingMessage: accelerator.Request }),
    },
    listen,
  );
  const reader = accelerator.readConnections?.(server, { limits, serves, listener: listenFast }) ?? NODE_READS;
  /** They are no longer connections of this server, which cannot tell whether they are idle. */
  const upgraded = new WeakSet<Duplex>();
  const connections = createOpenConnections((socket) => requests.isAnswering(socket) || reader.isBusy(socket) || upgraded.has(socket));
  server.on('connection', (socket) => {
    connections.add(socket);
    // Node's `maxConnections` would count those of one listener.
    if (connections.size > limits.SVC_MAX_CONNECTIONS + OVER_LIMIT) return void socket.destroy();
    if (connections.size + connectionsElsewhere() <= limits.SVC_MAX_CONNECTIONS) return reader.accept(socket);
    reader.pass(socket);
    refuseConnection(socket, limits);
  });
  // The reader of the body sends "100 Continue" once the body is wanted.
  server.on('checkContinue', listen);
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    const facts = { param: 'Expect', requestId: newRequestId() };
    answerError(req, res, errorAnswer('request.invalid', 'Unsupported expectation: send only "100-continue"', facts));
  });
  server.on('upgrade', (req: IncomingMessage, socket, leftover) => {
    upgraded.add(socket);
    upgrades.enter(req, leftover);
  });
  server.on('connect', (_req, socket) => writeError(socket, 'route.method', 'The method "CONNECT" is not supported'));
  server.on('clientError', (error: Error & { readonly code?: string }, socket) =>
    requests.whenBroken(socket, (isAnswered) => answerClientError(error.code, { socket, isAnswered }, limits)),
  );
  let more: readonly NetServer[] = [];
  const door = {
    /** Call it once the server listens with `reusePort`. */
    async openMore(address: Address): Promise<void> {
      const opened = await openMoreListeners(address, (socket) => server.emit('connection', socket));
      if (server.listening) more = opened;
      else for (const each of opened) each.close();
    },
    /** Closes each connection after its next answer, from now on. */
    leave(): void {
      leaves = true;
      keepsAlive = false;
    },
    /** Accepts no more connections, and closes each one after its next answer, until it is opened again. */
    stop(): void {
      keepsAlive = false;
      // The HTTP server's own `close` would cut idle connections.
      if (server.listening) NetServer.prototype.close.call(server);
      for (const each of more) each.close();
      more = [];
    },
    async open(address: Address): Promise<void> {
      keepsAlive = !leaves;
      if (server.listening) return;
      await once(server.listen({ ...address, reusePort: true, backlog: BACKLOG }), 'listening');
      await door.openMore(address);
    },
  };
  return { server, connections, door };
}

interface LastRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Bytes that are no request follow it. */
  isFollowed: boolean;
}

/** The newest request of each connection, and so whether a broken one has its answer: no request gets two. */
function createLastRequests() {
  const last = new WeakMap<Duplex, LastRequest>();
  const isOpen = (res: ServerResponse): boolean => !res.writableFinished && !res.destroyed;

  return {
    note(req: IncomingMessage, res: ServerResponse): void {
      last.set(req.socket, { req, res, isFollowed: false });
      const closeUnlessComplete = (): unknown => (req.complete ? undefined : req.socket.destroy());
      res.once('finish', () => {
        if (!req.complete) setTimeout(closeUnlessComplete, REST_MS).unref();
      });
    },
    isAnswering(socket: Duplex): boolean {
      const known = last.get(socket);
      return known !== undefined && isOpen(known.res);
    },
    /** The answer to a complete request comes before the refusal of what follows it on the connection. */
    whenBroken(socket: Duplex, refuse: (isAnswered: boolean) => void): void {
      const known = last.get(socket);
      if (known?.req.complete === false) refuse(known.res.headersSent);
      else if (known === undefined || !isOpen(known.res)) refuse(false);
      else if (!known.isFollowed) {
        known.isFollowed = true;
        known.res.once('close', () => {
          if (socket.writable) refuse(false);
        });
      }
    },
  };
}
