/**
 * A TCP proxy in front of the API server that breaks as networks do: connections that are open transport nothing more and say nothing of it, or they are
 * cut, or nobody can connect.
 */
import { connect, createServer, type Socket } from 'node:net';
import { isTable } from '../../src/spec/key-case.ts';
import { kubectl } from './require-cluster.ts';

export interface StallingProxy {
  /** Text of a kubeconfig that leads through here. */
  readonly kubeconfig: string;
  /** Connections of now transport nothing more, for good, in neither direction, and stay open; new ones are served. */
  stall(): void;
  /** Ends all connections, and those that come while it is shut. */
  shut(): void;
  open(): void;
  /** Connections that transport. */
  connections(): number;
  close(): Promise<void>;
}

interface Pair {
  readonly sockets: readonly [Socket, Socket];
  stalled: boolean;
}

export async function startStallingProxy(): Promise<StallingProxy> {
  const { host, port, kubeconfigBy } = await findServer();
  const pairs = new Set<Pair>();
  let isOpen = true;
  const end = ({ sockets }: Pair): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    const upstream = connect(port, host);
    const pair: Pair = { sockets: [client, upstream], stalled: false };
    pairs.add(pair);
    for (const [from, to] of [pair.sockets, [upstream, client]] as const) {
      from.on('data', (chunk: Buffer) => void (to.write(chunk) || from.pause()));
      to.on('drain', () => pair.stalled || from.resume());
      from.on('error', () => undefined);
      from.on('close', () => {
        // Nobody tells the other side either.
        if (pair.stalled) return;
        pairs.delete(pair);
        end(pair);
      });
    }
    if (!isOpen) end(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const own = isTable(address) ? Number(address['port']) : 0;
  return {
    kubeconfig: kubeconfigBy(`https://127.0.0.1:${own}`),
    stall() {
      for (const pair of pairs) {
        pair.stalled = true;
        for (const socket of pair.sockets) socket.pause();
      }
    },
    shut() {
      isOpen = false;
      for (const pair of pairs) end(pair);
    },
    open: () => void (isOpen = true),
    connections: () => [...pairs].filter(({ stalled }) => !stalled).length,
    async close() {
      for (const pair of pairs) end(pair);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The certificate of the server is of another address than the proxy's: it is not looked at. */
async function findServer() {
  const config: unknown = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '--flatten', '--output', 'json']));
  const cluster = isTable(config) && Array.isArray(config['clusters']) ? config['clusters'][0] : undefined;
  if (!isTable(config) || !isTable(cluster) || !isTable(cluster['cluster'])) throw new Error('The kubeconfig names no cluster');
  const url = new URL(String(cluster['cluster']['server']));
  const kubeconfigBy = (server: string): string =>
    JSON.stringify({ ...config, clusters: [{ ...cluster, cluster: { server, 'insecure-skip-tls-verify': true } }] });
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || '443'), kubeconfigBy };
}
