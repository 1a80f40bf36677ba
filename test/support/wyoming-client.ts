/** A client of the Wyoming protocol that writes and reads events as Home Assistant's library does. */
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';

export interface SeenEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly payload: Buffer;
}

export interface WyomingClient {
  readonly socket: Socket;
  send(type: string, data?: object, payload?: Buffer): void;
  /** All events that have arrived. */
  readonly events: readonly SeenEvent[];
  /** Resolves to the first event of the type that was not waited for before; rejects when the connection ends without one. */
  waitFor(type: string): Promise<SeenEvent>;
  closed(): Promise<void>;
}

export async function connectWyoming(port: number): Promise<WyomingClient> {
  const socket = createConnection({ port, host: '127.0.0.1' });
  const events: SeenEvent[] = [];
  const taken = new Set<SeenEvent>();
  let bytes = Buffer.alloc(0);
  let changed = Promise.withResolvers<void>();
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (let read = readEvent(bytes); read !== undefined; read = readEvent(bytes)) {
      events.push(read.event);
      bytes = bytes.subarray(read.end);
    }
    changed.resolve();
    changed = Promise.withResolvers();
  });
  socket.on('error', () => undefined);
  // A connection that is refused may end with a reset.
  const ended = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  let open = true;
  void ended.then(() => {
    open = false;
    changed.resolve();
  });
  return {
    socket,
    events,
    send(type, data = {}, payload) {
      const text = Buffer.from(Object.keys(data).length === 0 ? '' : JSON.stringify(data));
      const header = {
        type,
        version: '1.8.0',
        ...(text.length > 0 ? { data_length: text.length } : {}),
        ...(payload === undefined ? {} : { payload_length: payload.length }),
      };
      socket.write(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), text, payload ?? Buffer.alloc(0)]));
    },
    async waitFor(type) {
      for (;;) {
        const found = events.find((event) => event.type === type && !taken.has(event));
        if (found !== undefined) {
          taken.add(found);
          return found;
        }
        if (!open)
          throw new Error(
            `The connection ended without "${type}", after ${JSON.stringify(events.map((event) => [event.type, event.data]))}`,
          );
        await changed.promise;
      }
    },
    async closed() {
      await ended;
    },
  };
}

function readEvent(bytes: Buffer): { readonly event: SeenEvent; readonly end: number } | undefined {
  const line = bytes.indexOf('\n');
  if (line === -1) return undefined;
  const header: { type: string; data?: object; data_length?: number; payload_length?: number } = JSON.parse(
    bytes.toString('utf8', 0, line),
  );
  const dataEnd = line + 1 + (header.data_length ?? 0);
  const end = dataEnd + (header.payload_length ?? 0);
  if (bytes.length < end) return undefined;
  const more: object = dataEnd === line + 1 ? {} : JSON.parse(bytes.toString('utf8', line + 1, dataEnd));
  return { event: { type: header.type, data: { ...header.data, ...more }, payload: bytes.subarray(dataEnd, end) }, end };
}
