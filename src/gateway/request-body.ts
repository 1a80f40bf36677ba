/**
 * Reads a client's request body until the request can be routed. A body of ordinary size is kept in memory completely, so that it can be sent again if a
 * workload dies. A larger one is read until `model` is known; then reading pauses, which slows the client down, and the rest flows through to the upstream. If
 * the request has to wait instead, the rest is read and kept as well: only a client whose connection is read is noticed when it leaves.
 */
import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '../schema/error-codes.ts';
import type { BufferBudget } from './buffer-budget.ts';
import type { RequestHead } from './decide/request-head.ts';
import { BodyPieces } from './body-pieces.ts';
import { BodyScanner } from './body-scanner.ts';
import type { ExchangeDeps } from './exchange-deps.ts';
import type { UpstreamConnection } from './upstream-connection.ts';

export interface RequestBodyOwner {
  /** Enough is known to route the request. Called once. */
  onBodyReady(): void;
  fail(code: ErrorCode, message: string, param?: string | null): void;
  onBodyProgress(): void;
}

/** Bodies up to this size are kept completely: long conversations fit, and 64 parked ones are small compared with a model. */
const KEPT_BODY_BYTES = 1024 * 1024;
/** Bodies up to this size are joined into one buffer when they arrive in several TCP segments. */
const JOIN_BYTES = 16 * 1024;

export class RequestBody {
  readonly #pieces = new BodyPieces();
  received = 0;
  /** The complete body has been read. */
  whole = false;
  readonly #scan = new BodyScanner();
  readonly #req: IncomingMessage;
  readonly #head: RequestHead;
  readonly #budget: BufferBudget;
  readonly #limitBytes: number;
  readonly #owner: RequestBodyOwner;
  #reservedBytes = 0;
  #ready = false;
  #released = false;
  #connection: UpstreamConnection | undefined;

  constructor(req: IncomingMessage, head: RequestHead, deps: Pick<ExchangeDeps, 'settings' | 'budget'>, owner: RequestBodyOwner) {
    this.#req = req;
    this.#head = head;
    this.#budget = deps.budget;
    this.#limitBytes = deps.settings.SVC_BODY_LIMIT;
    this.#owner = owner;
  }

  /** The complete body, or the part that was read before the pause. */
  get chunks(): readonly Buffer[] {
    return this.#pieces.chunks;
  }

  get model(): string | undefined {
    return this.#scan.model;
  }

  /** The request can be sent from its first byte, also a second time. */
  get resendable(): boolean {
    return this.#connection === undefined && !this.#released;
  }

  start(): void {
    const { contentLength, contentEncoding, chunked } = this.#head;
    if (contentEncoding !== undefined && contentEncoding !== 'identity') {
      this.#fail('request.media_type', 'Send the body without a content encoding: compressed bodies are not supported', 'Content-Encoding');
      return;
    }
    if (contentLength !== undefined && contentLength > this.#limitBytes) {
      this.#tooLarge();
      return;
    }
    if (!chunked && (contentLength === undefined || contentLength === 0)) {
      this.#fail('request.invalid', 'Send a JSON object as the body');
      return;
    }
    this.#req.on('data', (chunk: Buffer) => this.#onData(chunk));
    this.#req.on('end', () => this.#onEnd());
  }

  /** The header of the upstream request that describes the body's length, with the end of the head. */
  lengthHeader(): string {
    const length = this.whole ? this.received : this.#head.contentLength;
    return length === undefined ? 'transfer-encoding: chunked\r\n\r\n' : `content-length: ${length}\r\n\r\n`;
  }

  /** Sends what was read to the connection and lets the rest flow. Unless the body has been read completely, the request cannot be sent again from here on. */
  flowTo(connection: UpstreamConnection): void {
    for (const chunk of this.chunks) this.#forward(connection, chunk);
    if (this.whole) {
      this.#endFlow(connection);
      return;
    }
    this.#connection = connection;
    this.#pieces.clear();
    this.#req.resume();
  }

  /** Reads the rest of the body into memory, because the request has to wait. */
  keepReading(): void {
    if (!this.#released && !this.whole) this.#req.resume();
  }

  resumeFlow(): void {
    if (!this.#released && this.#connection !== undefined) this.#req.resume();
  }

  /** Frees the body's memory. Later calls do nothing. */
  release(): void {
    this.#released = true;
    this.#pieces.clear();
    this.#budget.release(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  #onData(chunk: Buffer): void {
    if (this.#released) return;
    this.received += chunk.length;
    if (this.received > this.#limitBytes) {
      this.#tooLarge();
      return;
    }
    if (this.#connection !== undefined) {
      this.#owner.onBodyProgress();
      if (!this.#forward(this.#connection, chunk)) this.#req.pause();
      return;
    }
    if (!this.#budget.reserve(chunk.length)) {
      this.#fail('server.overloaded', 'Try again later: request bodies fill the memory reserved for them ("SVC_BUFFER_LIMIT")');
      return;
    }
    this.#reservedBytes += chunk.length;
    this.#owner.onBodyProgress();
    this.#pieces.add(chunk);
    this.#scanChunk(chunk);
  }

  #scanChunk(chunk: Buffer): void {
    if (this.#ready) return;
    const scan = this.#scan;
    scan.feed(chunk);
    if (scan.status === 'invalid') this.#invalid();
    else if (this.received === this.#head.contentLength) this.#complete();
    else if (this.received > KEPT_BODY_BYTES && scan.modelSeen) {
      if (scan.problem !== undefined) {
        this.#invalid();
        return;
      }
      this.#req.pause();
      this.#ready = true;
      this.#owner.onBodyReady();
    }
  }

  #onEnd(): void {
    if (this.#released) return;
    if (this.#connection !== undefined) this.#endFlow(this.#connection);
    else if (!this.#ready) this.#complete();
    else this.whole = true;
  }

  #endFlow(connection: UpstreamConnection): void {
    if (this.#head.contentLength === undefined) connection.write('0\r\n\r\n');
    connection.endRequest();
  }

  #complete(): void {
    if (this.#scan.status !== 'done') {
      this.#fail('request.invalid', 'Close the JSON object in the body: the text ends too early');
      return;
    }
    this.whole = true;
    this.#ready = true;
    if (this.received <= JOIN_BYTES) this.#pieces.join();
    this.#owner.onBodyReady();
  }

  #forward(connection: UpstreamConnection, chunk: Buffer): boolean {
    if (this.#head.contentLength !== undefined) return connection.write(chunk);
    connection.write(`${chunk.length.toString(16)}\r\n`);
    connection.write(chunk);
    return connection.write('\r\n');
  }

  #invalid(): void {
    const { message, param } = this.#scan.problem ?? { message: 'Send a JSON object as the body', param: null };
    this.#fail('request.invalid', message, param);
  }

  #tooLarge(): void {
    this.#fail('request.too_large', `Send a smaller body: the limit is ${this.#limitBytes} bytes ("SVC_BODY_LIMIT")`);
  }

  #fail(code: ErrorCode, message: string, param: string | null = null): void {
    this.release();
    this.#owner.fail(code, message, param);
  }
}
