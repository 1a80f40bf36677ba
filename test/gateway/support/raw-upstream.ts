/** A server of raw bytes, for answers that no HTTP library would send and for the moments at which a server can die. */
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface RawUpstream {
  readonly port: number;
  /** Connections accepted so far. */
  accepted(): number;
  /** Requests whose complete head has arrived. */
  requests(): number;
  close(): Promise<void>;
}

/** Called for each connection, and again for each further request on it. `text` is what has arrived of the request, one character per byte. */
export type OnRequest = (socket: Socket, text: string, nth: number) => void;

export interface RawOptions {
  readonly onConnection?: (socket: Socket) => void;
  readonly onRequest?: OnRequest;
}

export async function startRawUpstream({ onConnection, onRequest }: RawOptions): Promise<RawUpstream> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  let requests = 0;
  const server = createServer((socket) => {
    accepted += 1;
    sockets.add(socket);
    let text = '';
    let nth = 0;
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (head === -1 || (text.length < head + 4 + length && length < 100_000)) return;
      requests += 1;
      nth += 1;
      const request = text;
      text = '';
      onRequest?.(socket, request, nth);
    });
    onConnection?.(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const address: string | AddressInfo | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server does not listen');
  return {
    port: address.port,
    accepted: () => accepted,
    requests: () => requests,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
