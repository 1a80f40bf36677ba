/**
 * A worker's server: the fast path alone. Connections with anything but an ordinary inference request go to the
 * controller, so there is one management API and one parser for unusual cases.
 */
import { createServer, type Socket } from 'node:net';
import { createOpenConnections, refuseConnection } from '../../api/server/connections.ts';
import { createFastPath, type FastPathDeps } from '../fast-path/fast-path.ts';
import type { HttpLimits } from '../../api/server/http-server.ts';
import { handOver, type SendSocket } from './hand-over.ts';

export interface WorkerServerDeps extends Pick<FastPathDeps, 'listener' | 'rules'> {
  readonly limits: HttpLimits;
  readonly send: SendSocket;
}

export function createWorkerServer({ limits, rules, listener, send }: WorkerServerDeps) {
  /** Connections that are on their way to the controller. */
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
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    connections.add(socket);
    if (connections.size <= limits.SVC_MAX_CONNECTIONS) fastPath.accept(socket);
    else refuseConnection(socket, limits);
  });

  return {
    connections: () => connections.size,
    async listen(address: { readonly host: string; readonly port: number }) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen({ ...address, reusePort: true }, () => {
          server.off('error', reject);
          resolve();
        });
      });
    },
    /** Stops listening, closes idle connections until `finished` resolves, and all of them after `graceMs`. */
    async close(graceMs: number, finished: Promise<void>) {
      server.close();
      await connections.drain(graceMs, finished);
      if (leaving.size > 0) await new Promise<void>((resolve) => (onLeft = resolve));
    },
  };
}
