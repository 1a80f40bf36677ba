/**
 * One HTTP/1.1 connection to an upstream, which carries one request at a time. `undici` was measured first: it adds 150 µs of latency where this adds 45, and
 * reaches half of nginx's requests per second where this reaches all. It can be this small because it only talks to inference servers.
 */
import { connect, type Socket, type OnReadOpts } from 'node:net';
import type { Endpoint } from '../../providers/provider.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';

export interface Breakage {
  /** `refused`: no connection was established, so nothing was sent. */
  readonly kind: 'refused' | 'closed' | 'protocol';
  /**
   * The connection had carried a request before, so the failure may be left over from that: the upstream closed the idle connection, or sent more than its
   * answer.
   */
  readonly reused: boolean;
  readonly message: string;
}

export interface UpstreamSink extends ResponseSink {
  onConnected(): void;
  /** More may be written, after `write` returned false. */
  onDrain(): void;
  /** The last call. */
  onBroken(breakage: Breakage): void;
}

/** A body up to this size is sent with the head in one piece, because copying it costs less than a second buffer in the same write. */
const JOINED_BODY_BYTES = 16 * 1024;

export interface ConnectionOwner {
  onIdle(connection: UpstreamConnection): void;
  onGone(connection: UpstreamConnection): void;
}

/** A class, because it is a resource with a lifetime on the hot path. Only `createUpstreams` makes one. */
export class UpstreamConnection {
  connected = false;
  /** Coarse milliseconds at which it became idle. */
  idleSince = 0;
  /** Number of requests answered. */
  served = 0;
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser();
  #sink: UpstreamSink | undefined;
  #requestEnded = false;
  #error: Error | undefined;

  constructor(endpoint: Endpoint, owner: ConnectionOwner) {
    this.#owner = owner;
    const onread = readInto((piece) => this.#data(piece));
    const socket = connect({ host: endpoint.host, port: endpoint.port, noDelay: true, onread });
    this.#socket = socket;
    socket.on('connect', () => {
      this.connected = true;
      this.#sink?.onConnected();
    });
    socket.on('drain', () => this.#sink?.onDrain());
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => (this.#error = error));
    socket.on('close', () => this.#closed());
  }

  /** It has not been closed, as far as is known. */
  get usable(): boolean {
    return !this.#socket.destroyed;
  }

  /** The kernel has everything that was written. */
  get hasWrittenAll(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** How long the upstream keeps an idle connection, from its `Keep-Alive` header. */
  get keepAliveSeconds(): number | undefined {
    return this.#parser.keepAliveSeconds;
  }

  /** Prepares for a request whose answer goes to `sink`. */
  begin(sink: UpstreamSink): void {
    this.#sink = sink;
    this.#requestEnded = false;
    this.#parser.reset();
  }

  /** Writes a request with its complete body. */
  send(head: string, body: readonly Buffer[], bodyBytes: number): void {
    this.#requestEnded = true;
    const socket = this.#socket;
    const [first] = body;
    if (first !== undefined && body.length === 1 && bodyBytes <= JOINED_BODY_BYTES) {
      socket.write(head + first.toString('latin1'), 'latin1');
      return;
    }
    socket.cork();
    socket.write(head, 'latin1');
    for (const part of body) socket.write(part);
    socket.uncork();
  }

  /** Writes a part of a request. Returns false if the caller should wait for `onDrain`. */
  write(part: string | Buffer): boolean {
    return typeof part === 'string' ? this.#socket.write(part, 'latin1') : this.#socket.write(part);
  }

  /** Marks a request written in parts as complete. */
  endRequest(): void {
    this.#requestEnded = true;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes the connection; the sink is not called again. */
  destroy(): void {
    this.#sink = undefined;
    this.#socket.destroy();
  }

  #data(chunk: Buffer): void {
    const sink = this.#sink;
    if (sink === undefined) {
      // Bytes without a request: they could be mistaken for the answer to the next one.
      this.#socket.destroy();
      return;
    }
    this.#parser.feed(chunk, sink);
    if (this.#sink === undefined) return;
    const { state, problem } = this.#parser;
    if (state === 'done') this.#answered();
    else if (state === 'broken') this.#break('protocol', `The upstream's answer is not valid HTTP: ${problem ?? 'it is malformed'}`);
  }

  #answered(): void {
    this.#sink = undefined;
    this.served += 1;
    if (this.#parser.keepAlive && this.#requestEnded && !this.#socket.destroyed) {
      this.#socket.resume();
      this.#owner.onIdle(this);
    } else this.#socket.destroy();
  }

  #ended(): void {
    const sink = this.#sink;
    if (sink !== undefined && this.#parser.end(sink)) this.#sink = undefined;
    this.#socket.destroy();
  }

  #closed(): void {
    this.#owner.onGone(this);
    if (this.#sink === undefined) return;
    const reason = this.#error === undefined ? '' : `: ${this.#error.message}`;
    if (this.connected) this.#break('closed', `The upstream closed the connection before its answer was complete${reason}`);
    else this.#break('refused', `The upstream does not accept connections${reason}`);
  }

  #break(kind: Breakage['kind'], message: string): void {
    const sink = this.#sink;
    this.#sink = undefined;
    this.#socket.destroy();
    const untouched = this.#parser.state === 'idle' || kind === 'protocol';
    sink?.onBroken({ kind, reused: this.served > 0 && untouched, message });
  }
}

/**
 * Where connections to upstreams read into. Most answers, and the pieces of streams, are short: they are read into one buffer that all connections share, and copied out of it, which costs less than the
 * 64 KiB that Node allocates for each read otherwise. Once a connection has read a large piece, its next ones are read into buffers of their own and passed on as they are.
 */

const BUFFER_BYTES = 64 * 1024;
/** Up to this size, copying costs less than a buffer of its own. */
const COPIED_BYTES = 16 * 1024;

/** A read fills it and calls back at once, so no two connections use it at the same time. */
const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** The option `onread` of one connection. `onData` gets pieces that nothing else uses. */
export function readInto(onData: (piece: Buffer) => void): OnReadOpts {
  let isLarge = false;
  return {
    buffer: () => (isLarge ? Buffer.allocUnsafeSlow(BUFFER_BYTES) : shared),
    callback(bytes, buffer) {
      isLarge = bytes > COPIED_BYTES;
      const read = Buffer.from(buffer.buffer, buffer.byteOffset, bytes);
      onData(buffer === shared ? Buffer.from(read) : read);
      return true;
    },
  };
}
