/** A request of the fast path, with its body as it arrives. Like Node's `IncomingMessage`. */
import type { Socket } from 'node:net';
import type { ClientRequest } from '../../gateway/client-exchange.ts';
import type { ScannedRequest } from './decide/scan-request.ts';

/** Pending bytes that pause the connection, as in Node's streams. */
const WAITING_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);

export class FastRequest implements ClientRequest {
  readonly method = 'POST';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: ClientRequest['headers'];
  readonly sameHead: object | undefined;
  readonly socket: Socket;
  readableDidRead = false;
  #missing: number;
  #onData: ((bytes: Buffer) => void)[] = [];
  readonly #onEnd: ((nothing: Buffer) => void)[] = [];
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #flows = false;
  #isDispatching = true;
  #isScheduled = false;
  #ended = false;
  /** Memory that also holds bytes of another request. */
  readonly #shared: ArrayBufferLike[] = [];

  constructor(scanned: ScannedRequest, socket: Socket) {
    this.url = scanned.url;
    this.rawHeaders = scanned.rawHeaders;
    this.headers = { 'content-length': scanned.contentLength };
    this.sameHead = scanned.known;
    this.socket = socket;
    this.#missing = Number(scanned.contentLength ?? 0);
  }

  get complete(): boolean {
    return this.#missing === 0;
  }

  /** Takes what has arrived. Returns what follows the body. `isShared`: the memory of these bytes holds others, too. */
  push(bytes: Buffer, isShared: boolean): Buffer | undefined {
    const own = bytes.length <= this.#missing ? bytes : bytes.subarray(0, this.#missing);
    if (isShared || own.length < bytes.length) this.#shared.push(bytes.buffer);
    this.#missing -= own.length;
    if (own.length > 0) {
      this.#waiting.push(own);
      this.#waitingBytes += own.length;
    }
    if (this.#flows && !this.#isScheduled && !this.#isDispatching) this.#flow();
    if (this.#waitingBytes >= WAITING_BYTES) this.socket.pause();
    return own.length === bytes.length ? undefined : bytes.subarray(own.length);
  }

  on(event: 'data', listener: (bytes: Buffer) => void): this;
  on(event: 'end', listener: () => void): this;
  on(event: 'data' | 'end', listener: (bytes: Buffer) => void): this {
    if (event === 'end') this.#onEnd.push(listener);
    else {
      this.#onData.push(listener);
      if (!this.readableDidRead) this.resume();
    }
    return this;
  }

  pause(): this {
    this.#flows = false;
    return this;
  }

  resume(): this {
    this.readableDidRead = true;
    this.#flows = true;
    if (this.#isScheduled || this.#isDispatching) return this;
    this.#isScheduled = true;
    process.nextTick(() => {
      this.#isScheduled = false;
      this.#flow();
    });
    return this;
  }

  /** The listener of requests has returned: what it asked for can be read at once. */
  dispatched(): void {
    this.#isDispatching = false;
    if (this.#flows && !this.#isScheduled) this.#flow();
  }

  free({ buffer }: Buffer): void {
    if (buffer instanceof ArrayBuffer && !buffer.detached && !this.#shared.includes(buffer)) buffer.transfer(0);
  }

  discard(): void {
    this.#onData = [];
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.resume();
  }

  #flow(): void {
    while (this.#flows) {
      const bytes = this.#waiting.shift();
      if (bytes === undefined) break;
      this.#waitingBytes -= bytes.length;
      for (const listener of this.#onData) listener(bytes);
    }
    if (!this.#flows) return;
    if (this.socket.isPaused()) this.socket.resume();
    if (this.#ended || this.#missing > 0) return;
    this.#ended = true;
    for (const listener of this.#onEnd) listener(NOTHING);
  }
}
