/** One HTTP/1.1 connection to an upstream, for one request at a time: faster than `undici` (docs/speed.md). */
import { connect, type Socket, type OnReadOpts } from 'node:net';
import type { Links } from '../../remote/remote-link.ts';
import type { Endpoint } from '../../providers/provider.ts';
import type { Breakage, UpstreamEvents } from '../request-events.ts';
import type { CoalesceReads } from '../batch-streams.ts';
import { ResponseParser } from './response-parser.ts';

/** Events of a connection for its pool. */
export interface PoolEvents {
  onIdle(connection: UpstreamConnection): void;
  onGone(connection: UpstreamConnection): void;
}

export interface ConnectionDeps {
  readonly links: Pick<Links, 'connect'>;
  readonly coalesce: CoalesceReads;
}

/** A body up to this size is sent in one piece with the head: copying costs less than a second buffer. */
const JOINED_BODY_BYTES = 16 * 1024;
const BUFFER_BYTES = 64 * 1024;
/** Up to this size, copying costs less than a buffer of its own. */
const COPIED_BYTES = 16 * 1024;

/** A read fills it and calls back at once, so no two connections use it at the same time. */
const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);

export class UpstreamConnection {
  connected = false;
  /** Coarse milliseconds at which it became idle. */
  idleSince = 0;
  served = 0;
  readonly #pool: PoolEvents;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser();
  #events: UpstreamEvents | undefined;
  #requestEnded = false;
  #error: Error | undefined;

  /** Reading waits for the client. */
  #isPaused = false;
  /** Reading waits for other streams. */
  #isHeld = false;
  readonly #coalesce: CoalesceReads;

  constructor(endpoint: Endpoint, pool: PoolEvents, { links, coalesce }: ConnectionDeps) {
    this.#pool = pool;
    this.#coalesce = coalesce;
    const onread = readInto((piece) => this.#data(piece));
    const { host, port, link } = endpoint;
    const onReady = (): void => {
      this.connected = true;
      this.#events?.onConnected();
    };
    const socket =
      link === undefined
        ? connect({ host, port, noDelay: true, onread }).on('connect', onReady)
        : links.connect({ host, port, link }, { onread }, onReady);
    this.#socket = socket;
    socket.on('drain', () => this.#events?.onDrain());
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => (this.#error = error));
    socket.on('close', () => this.#closed());
  }

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

  begin(events: UpstreamEvents): void {
    this.#events = events;
    this.#requestEnded = false;
    this.#parser.reset();
  }

  send(head: string, body: readonly Buffer[], bodyBytes: number): void {
    this.#requestEnded = true;
    const socket = this.#socket;
    if (bodyBytes <= JOINED_BODY_BYTES) return void socket.write(textOf(head, body), 'latin1');
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
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isHeld) this.#socket.resume();
  }

  hold(): void {
    this.#isHeld = true;
    this.#socket.pause();
  }

  release(): void {
    this.#isHeld = false;
    if (!this.#isPaused) this.#socket.resume();
  }

  /** Closes the connection; no event follows. */
  destroy(): void {
    this.#events = undefined;
    this.#socket.destroy();
  }

  #data(chunk: Buffer): void {
    const events = this.#events;
    if (events === undefined) {
      // Bytes without a request: they could be mistaken for the answer to the next one.
      return void this.#socket.destroy();
    }
    const hadBegun = this.#parser.state === 'body';
    this.#parser.feed(chunk, events);
    if (this.#events === undefined) return;
    const { state, problem } = this.#parser;
    if (hadBegun && state === 'body' && chunk.length <= COPIED_BYTES) this.#coalesce(this);
    if (state === 'done') this.#answered();
    else if (state === 'broken') this.#break('protocol', `The upstream's answer is not valid HTTP: ${problem ?? 'it is malformed'}`);
  }

  #answered(): void {
    this.#events = undefined;
    this.served += 1;
    if (this.#parser.keepAlive && this.#requestEnded && !this.#socket.destroyed) {
      this.resume();
      this.#pool.onIdle(this);
    } else this.#socket.destroy();
  }

  #ended(): void {
    const events = this.#events;
    if (events !== undefined && this.#parser.end(events)) this.#events = undefined;
    this.#socket.destroy();
  }

  #closed(): void {
    this.#pool.onGone(this);
    if (this.#events === undefined) return;
    const reason = this.#error === undefined ? '' : `: ${this.#error.message}`;
    if (this.connected) this.#break('closed', `The upstream closed the connection before its answer was complete${reason}`);
    else this.#break('refused', `The upstream does not accept connections${reason}`);
  }

  #break(kind: Breakage['kind'], message: string): void {
    const events = this.#events;
    this.#events = undefined;
    this.#socket.destroy();
    const untouched = this.#parser.state === 'idle' || kind === 'protocol';
    events?.onBroken({ kind, reused: this.served > 0 && untouched, message });
  }
}

function textOf(head: string, body: readonly Buffer[]): string {
  let text = head;
  for (const part of body) text += part.toString('latin1');
  return text;
}

/**
 * The option `onread` of one connection. Short pieces are read into one shared buffer and copied out of it, which costs
 * less than the 64 KiB that Node allocates for each read. After a large piece, the next read gets a buffer of its own.
 * `onData` gets pieces that nothing else uses.
 */
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
