/** A TCP proxy that fails like networks do: open connections silently transport nothing more, or they are cut, or new ones are refused. */
import { connect, createServer, type Socket } from 'node:net';
import { isTable } from '../../../src/schema/words/key-case.ts';

export interface StallingProxy {
  readonly port: number;
  /** Present connections stay open but transport nothing more in either direction; new ones work. */
  stall(): void;
  /** Ends all connections, and new ones until `open`. */
  shut(): void;
  open(): void;
  /** Number of connections that are not stalled. */
  connections(): number;
  close(): Promise<void>;
}

interface Pair {
  readonly sockets: readonly [Socket, Socket];
  stalled: boolean;
}

export async function startStallingProxy(host: string, port: number): Promise<StallingProxy> {
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
        // The other side is not notified either.
        if (pair.stalled) return;
        pairs.delete(pair);
        end(pair);
      });
    }
    if (!isOpen) end(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: isTable(address) ? Number(address['port']) : 0,
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
