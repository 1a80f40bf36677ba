/** Reads ordinary requests without Node's HTTP server, which costs more than the gateway's work (docs/speed.md). */
import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { answerClientError, KEEP_ALIVE_MS, REQUEST_MS, REQUEST_TIMEOUT, REST_MS } from '../../api/server/connections.ts';
import type { ConnectionReader, HttpLimits, ReaderOptions, Accelerator } from '../../api/server/http-server.ts';
import { createDenseSet, type Member } from '../../platform/dense-set.ts';
import { FastConnection, type FastConnectionDeps } from './fast-connection.ts';
import type { ClientRequest } from '../../gateway/client-exchange.ts';
import type { Settings } from '../../schema/settings/settings.ts';

export interface FastPathDeps extends Pick<FastConnectionDeps, 'rules' | 'listener' | 'handOver'> {
  readonly limits: HttpLimits;
}

/** Node's limit for headers begins after it. Clients that open a connection send their request at once. */
const SILENT_MS = 1000;
const SWEEP_MS = 1000;

/** Reads connections of Node's HTTP server, which still listens and serves all other requests. */
function readFast(server: Server, { limits, serves, listener }: ReaderOptions): ConnectionReader {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  const pass = (socket: Socket): void => {
    for (const each of listeners) each.call(server, socket);
  };
  const rules = { headerLimit: limits.SVC_HEADER_LIMIT, serves };
  return { ...createFastPath({ rules, listener, handOver: pass, limits }), pass };
}

export function createFastPath({ rules, listener, handOver, limits: all }: FastPathDeps) {
  const open = createDenseSet<FastConnection>();
  const members = new Map<FastConnection, Member<FastConnection>>();
  const connections = new WeakMap<Socket, FastConnection>();
  const limits = { keepAliveMs: KEEP_ALIVE_MS, requestMs: all.SVC_PARK_TIMEOUT + REQUEST_MS, restMs: REST_MS, silentMs: SILENT_MS };
  let sweeper: NodeJS.Timeout | undefined;

  function sweep(): void {
    const now = performance.now();
    for (const connection of open.items()) connection.checkTimeouts(now, limits);
  }

  const deps: FastConnectionDeps = {
    rules,
    listener,
    refuse: (socket, error, isAnswered) =>
      answerClientError(error === 'timeout' ? REQUEST_TIMEOUT : undefined, { socket, isAnswered }, all),
    date: createDate(),
    keepAliveSeconds: Math.floor(KEEP_ALIVE_MS / 1000),
    handOver(socket) {
      connections.delete(socket);
      handOver(socket);
    },
    onGone(connection) {
      const member = members.get(connection);
      if (member === undefined) return;
      members.delete(connection);
      open.remove(member);
      if (open.size > 0) return;
      clearInterval(sweeper);
      sweeper = undefined;
    },
  };

  return {
    accept(socket: Socket) {
      const connection = new FastConnection(socket, deps);
      members.set(connection, open.add(connection));
      connections.set(socket, connection);
      sweeper ??= setInterval(sweep, SWEEP_MS).unref();
    },
    isBusy: (socket: Socket) => connections.get(socket)?.isBusy === true,
  };
}

function createDate(): () => string {
  let until = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now >= until || now < until - 1000) {
      until = now - (now % 1000) + 1000;
      text = new Date(now).toUTCString();
    }
    return text;
  };
}

/** The fast path (`SVC_FAST_PATH`), and requests that free their memory once read. */
export function createAccelerator({ SVC_FAST_PATH: isFast }: Pick<Settings, 'SVC_FAST_PATH'>): Accelerator {
  return { Request: FreeingRequest, ...(isFast ? { readConnections: readFast } : {}) };
}

/** Node's parser gives each piece of a body its own memory. Larger memory holds other bytes too, and stays. */
export class FreeingRequest extends IncomingMessage implements ClientRequest {
  free({ buffer, byteLength }: Buffer): void {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0);
  }
}
