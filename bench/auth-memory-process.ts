/**
 * What a request costs in JavaScript, without a network: the gateways of `auth-gateways.ts`, whose clients and upstream are objects in memory. A system call differs by more between two runs than
 * limits of a caller cost. Reads JSON from its input: the number of rounds, of requests in a round, the files of tokens, and the token of each. Prints the microseconds of CPU per request of each
 * gateway as JSON, one list for each round.
 */
import { syncBuiltinESMExports } from 'node:module';
import { text } from 'node:stream/consumers';
import net, { Socket, type TcpNetConnectOpts } from 'node:net';
import type { ConnectionReader } from '../src/api/server/http-server.ts';
import { orderOfRound } from './decide/order-of-round.ts';

const CONNECTIONS = 32;
const BODY_BYTES = 600;
const sink = Buffer.alloc(64 * 1024);
const bodyOf = (content: string): string => JSON.stringify({ model: 'primary', messages: [{ role: 'user', content }] });
const body = bodyOf('z'.repeat(BODY_BYTES - bodyOf('').length));
const message = { role: 'assistant', content: 'y'.repeat(80) };
const usage = { prompt_tokens: 140, completion_tokens: 20, total_tokens: 160 };
const choices = [{ index: 0, message, finish_reason: 'stop' }];
const answer = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices, usage });
const response = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${answer.length}\r\nDate: ${new Date().toUTCString()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n\r\n${answer}`,
);

/** A socket whose kernel takes everything at once. */
class MemorySocket extends Socket {
  readonly #onWritten: () => void;

  constructor(onWritten: () => void) {
    super();
    this.#onWritten = onWritten;
  }

  /** A socket makes one piece of a text, and so does this. */
  override write(data: string | Uint8Array, encoding?: unknown, sent?: () => void): boolean {
    if (typeof data === 'string') sink.write(data, 0, encoding === 'latin1' ? encoding : 'utf8');
    else sink.set(data);
    const done = typeof encoding === 'function' ? encoding : sent;
    if (done !== undefined) process.nextTick(done);
    this.#onWritten();
    return true;
  }

  override cork(): void {}
  override uncork(): void {}
  override pause(): this {
    return this;
  }
  override resume(): this {
    return this;
  }
  override isPaused(): boolean {
    return false;
  }
  override destroy(): this {
    throw new Error('A connection was closed');
  }
}

/** The upstream of all gateways: answers what is written to it. */
function connectInMemory({ onread }: TcpNetConnectOpts): MemorySocket {
  const socket = new MemorySocket(() => {
    setImmediate(() => {
      const buffer = typeof onread?.buffer === 'function' ? onread.buffer() : onread?.buffer;
      buffer?.set(response);
      onread?.callback(response.length, buffer ?? sink);
    });
  });
  setImmediate(() => socket.emit('connect'));
  return socket;
}

Object.assign(net, { connect: connectInMemory });
syncBuiltinESMExports();
const { startGateways } = await import('./auth-gateways.ts');

const [rounds = 0, requests = 0, files, tokens]: [number, number, string[], string[]] = JSON.parse(await text(process.stdin));
const readers: ConnectionReader[] = [];
await startGateways(1, files, (own) => ({
  ...own,
  readConnections(server, options) {
    const reader = own.readConnections?.(server, options);
    if (reader === undefined) throw new Error('The fast path is off');
    readers.push(reader);
    return reader;
  },
}));

/** Clients that each send a request when the last one was answered. */
class Clients {
  readonly #text: Buffer;
  readonly #clients: MemorySocket[] = [];
  #left = 0;
  #missing = 0;
  #done: () => void = () => undefined;

  constructor(reader: ConnectionReader, token: string | undefined) {
    const credential = token === undefined ? '' : `authorization: Bearer ${token}\r\n`;
    this.#text = Buffer.from(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n${credential}content-type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    for (let index = 0; index < CONNECTIONS; index += 1) {
      const client = new MemorySocket(() => this.#answered(client));
      this.#clients.push(client);
      reader.accept(client);
    }
  }

  send(count: number): Promise<void> {
    this.#left = count;
    this.#missing = count;
    return new Promise((resolve) => {
      this.#done = resolve;
      for (const client of this.#clients) this.#next(client);
    });
  }

  #answered(client: MemorySocket): void {
    if (sink.toString('latin1', 0, 12) !== 'HTTP/1.1 200')
      throw new Error(`A request was answered with ${sink.toString('latin1', 0, 200)}`);
    this.#missing -= 1;
    if (this.#missing === 0) this.#done();
    else this.#next(client);
  }

  #next(client: MemorySocket): void {
    if (this.#left === 0) return;
    this.#left -= 1;
    setImmediate(() => client.emit('data', Buffer.from(this.#text)));
  }
}

const all: Clients[] = [];
for (const [index, reader] of readers.entries()) {
  const clients = new Clients(reader, index === readers.length - 1 ? tokens[0] : tokens[index - 1]);
  all.push(clients);
  // A connection without a request is soon left to Node's HTTP server.
  await clients.send(CONNECTIONS);
}
const times: number[][] = [];
for (let round = 0; round < rounds; round += 1) {
  const row: number[] = [];
  for (const [index, clients] of orderOfRound([...all.entries()], round)) {
    const before = process.cpuUsage();
    await clients.send(requests);
    const { user, system } = process.cpuUsage(before);
    row[index] = (user + system) / requests;
  }
  times.push(row);
}
process.stdout.write(`${JSON.stringify(times)}\n`, () => process.exit(0));
