/**
 * One HTTP/1.1 connection to an upstream, one request at a time. `undici` was measured first: it adds 150 µs where this adds 45, and half
 * of nginx's requests a second where this reaches it. It can be this small because it speaks to inference servers only, in one direction.
 */
import { connect, type Socket } from 'node:net';
import type { Endpoint } from '../providers/provider.ts';
import { readResponses, type ResponseReader, type ResponseSink } from './decide/read-response.ts';

export interface Breakage {
  /** `refused`: no connection came about, so nothing was sent. */
  readonly kind: 'refused' | 'closed' | 'protocol';
  /** The connection had carried a request before: the upstream may simply have closed an idle one. */
  readonly reused: boolean;
  readonly message: string;
}

export interface UpstreamSink extends ResponseSink {
  onConnected(): void;
  /** The bytes that came together have been handed on. */
  onReadEnd(): void;
  /** What was written has gone out, after `write` said false. */
  onDrain(): void;
  /** No more calls follow. */
  onBroken(breakage: Breakage): void;
}

export interface UpstreamConnection {
  /** Writes a request whose body is complete. */
  send(head: string, body: readonly Buffer[], bodyBytes: number): void;
  /** Writes a part of a request; false: wait for `onDrain`. */
  write(part: string | Buffer): boolean;
  /** The request that was written in parts is complete. */
  endRequest(): void;
  readonly connected: boolean;
  pause(): void;
  resume(): void;
  /** Ends it without a word; the sink is not called again. */
  destroy(): void;
}

/** A body up to this size goes out with the head in one piece: copying it costs less than a second buffer in the same write. */
const JOINED_BODY_BYTES = 16 * 1024;

export interface ConnectionOwner {
  onIdle(connection: Connection): void;
  onGone(connection: Connection): void;
}

/** A class, because it is a resource with a lifetime on the hot path. Made by `createUpstreams` only. */
export class Connection implements UpstreamConnection {
  connected = false;
  /** Coarse milliseconds since when it is idle. */
  idleSince = 0;
  /** Requests answered. */
  served = 0;
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #reader: ResponseReader = readResponses();
  #sink: UpstreamSink | undefined;
  #requestEnded = false;
  #error: Error | undefined;

  constructor(endpoint: Endpoint, owner: ConnectionOwner) {
    this.#owner = owner;
    const socket = connect({ host: endpoint.host, port: endpoint.port, noDelay: true });
    this.#socket = socket;
    socket.on('connect', () => {
      this.connected = true;
      this.#sink?.onConnected();
    });
    socket.on('data', (chunk: Buffer) => this.#data(chunk));
    socket.on('drain', () => this.#sink?.onDrain());
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => (this.#error = error));
    socket.on('close', () => this.#closed());
  }

  /** Seconds the upstream says it keeps an idle connection. */
  get keepAliveSeconds(): number | undefined {
    return this.#reader.keepAliveSeconds;
  }

  begin(sink: UpstreamSink): void {
    this.#sink = sink;
    this.#requestEnded = false;
    this.#reader.reset();
  }

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

  write(part: string | Buffer): boolean {
    return typeof part === 'string' ? this.#socket.write(part, 'latin1') : this.#socket.write(part);
  }

  endRequest(): void {
    this.#requestEnded = true;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#sink = undefined;
    this.#socket.destroy();
  }

  #data(chunk: Buffer): void {
    const sink = this.#sink;
    if (sink === undefined) {
      // An answer nobody asked for: the next one on this connection could be taken for another request's.
      this.#socket.destroy();
      return;
    }
    this.#reader.feed(chunk, sink);
    if (this.#sink === undefined) return;
    switch (this.#reader.state) {
      case 'done':
        this.#answered();
        return;
      case 'broken':
        this.#break('protocol', `The upstream's answer is no HTTP: ${this.#reader.problem ?? 'it is malformed'}`);
        return;
      default:
        sink.onReadEnd();
    }
  }

  #answered(): void {
    this.#sink = undefined;
    this.served += 1;
    if (this.#reader.keepAlive && this.#requestEnded && !this.#socket.destroyed) {
      this.#socket.resume();
      this.#owner.onIdle(this);
    } else this.#socket.destroy();
  }

  #ended(): void {
    const sink = this.#sink;
    if (sink !== undefined && this.#reader.end(sink)) this.#sink = undefined;
    this.#socket.destroy();
  }

  #closed(): void {
    this.#owner.onGone(this);
    if (this.#sink === undefined) return;
    const reason = this.#error === undefined ? 'it closed the connection' : this.#error.message;
    if (this.connected) this.#break('closed', `The upstream broke off: ${reason}`);
    else this.#break('refused', `The upstream does not accept connections: ${reason}`);
  }

  #break(kind: Breakage['kind'], message: string): void {
    const sink = this.#sink;
    this.#sink = undefined;
    this.#socket.destroy();
    const untouched = this.#reader.state === 'idle';
    sink?.onBroken({ kind, reused: this.served > 0 && untouched, message });
  }
}
