/**
 * One request of a translation to the server of its slot, and its answer. `TranslationRun` sends one at a time:
 *
 *   start ─► connect ─► send, files from the client's body ─► head() ─► next() … undefined
 *               └────────── broken: a reused connection is replaced once, else `UpstreamLost` or `UpstreamBroken`
 *
 * The answer is read as it is asked for: what has arrived and is not asked for yet pauses the connection.
 */
import type { Endpoint } from '../../providers/provider.ts';
import type { FormFile, UpstreamRequest } from '../../providers/translation.ts';
import { bufferOf } from '../../platform/read-body.ts';
import type { Breakage, UpstreamEvents } from '../request-events.ts';
import type { ResponseHead } from '../upstream/decide/response-head.ts';
import type { UpstreamConnection } from '../upstream/upstream-connection.ts';
import type { Upstreams } from '../upstream/upstreams.ts';
import { requestHeadOf } from './decide/translation-heads.ts';

export interface UpstreamCallDeps {
  readonly upstreams: Upstreams;
  readonly endpoint: Endpoint;
  readonly requestId: string;
  /** Header lines besides those of the translation. */
  readonly traceLines: string;
  /** Reads from the client's body. Undefined once it is released. */
  readonly readBody: (from: number, bytes: number) => Promise<Uint8Array | undefined>;
  /** Something was sent, or has come from the server. */
  readonly onProgress: (what: 'sent' | 'heard') => void;
}

/** The connection broke before the answer was complete: another server may answer. */
export class UpstreamLost extends Error {
  readonly accepted: boolean;

  constructor(accepted: boolean, message: string) {
    super(message);
    this.accepted = accepted;
  }
}

export class UpstreamBroken extends Error {}

/** Bytes of an answer that wait for `next` before the connection is paused. */
const WAITING_BYTES = 256 * 1024;
const PIECE_BYTES = 128 * 1024;

type Piece = Buffer | FormFile;

export class UpstreamCall implements UpstreamEvents {
  readonly request: UpstreamRequest;
  isConnected = false;
  /** The whole request has been handed to the connection. */
  isSent = false;
  readonly #deps: UpstreamCallDeps;
  readonly #pieces: readonly Piece[];
  readonly #bodyBytes: number | undefined;
  #connection: UpstreamConnection | undefined;
  #head: ResponseHead | undefined;
  #arrived: Buffer[] = [];
  #arrivedBytes = 0;
  #complete = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #resumeSending: (() => void) | undefined;

  constructor(request: UpstreamRequest, deps: UpstreamCallDeps) {
    this.request = request;
    this.#deps = deps;
    const body = typeof request.body === 'string' ? [request.body] : request.body;
    this.#pieces = (body ?? []).map((piece) => (typeof piece === 'string' || piece instanceof Uint8Array ? bufferOf(piece) : piece));
    const sum = this.#pieces.reduce((bytes, piece) => bytes + (Buffer.isBuffer(piece) ? piece.length : piece.bytes), 0);
    this.#bodyBytes = body === undefined && request.method === 'GET' ? undefined : sum;
  }

  /** Throws if the request is malformed. */
  start(fresh = false): void {
    const { endpoint, requestId, traceLines, upstreams } = this.#deps;
    const head = requestHeadOf(this.request, { endpoint, requestId, traceLines, bodyBytes: this.#bodyBytes });
    const connection = upstreams.connect(endpoint, this, fresh);
    this.#connection = connection;
    this.isConnected = connection.connected;
    const inMemory = this.#pieces.filter((piece) => Buffer.isBuffer(piece));
    this.isSent = inMemory.length === this.#pieces.length;
    if (this.isSent) connection.send(head, inMemory, this.#bodyBytes ?? 0);
    else {
      connection.write(head);
      this.#sendPieces(connection).catch((error: unknown) => this.#end(error instanceof Error ? error : new Error(String(error))));
    }
  }

  async head(): Promise<ResponseHead> {
    while (this.#head === undefined) await this.#changed();
    return this.#head;
  }

  /** Resolves with the next bytes of the answer, or with undefined at its end. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const piece = this.#arrived.shift();
      if (piece !== undefined) {
        this.#arrivedBytes -= piece.length;
        if (this.#arrivedBytes <= WAITING_BYTES) this.#connection?.resume();
        return piece;
      }
      if (this.#complete) return undefined;
      await this.#changed();
    }
  }

  /** Closes the connection. Promises of `head` and `next` are never settled then. */
  destroy(): void {
    this.#wake = undefined;
    this.#resumeSending = undefined;
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  onConnected(): void {
    this.isConnected = true;
    this.#deps.onProgress('sent');
  }

  onDrain(): void {
    this.#resumeSending?.();
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    this.#deps.onProgress('heard');
    this.#wake?.();
  }

  onBody(bytes: Buffer, last: boolean): void {
    if (bytes.length > 0) this.#arrived.push(bytes);
    this.#arrivedBytes += bytes.length;
    this.#deps.onProgress('heard');
    if (last) {
      // Not destroyed: the connection itself decides whether it is kept for the next request.
      this.#connection = undefined;
      this.#complete = true;
    } else if (this.#arrivedBytes > WAITING_BYTES) this.#connection?.pause();
    this.#wake?.();
  }

  onBroken({ kind, reused, message }: Breakage): void {
    this.#connection = undefined;
    // The server closed an idle connection while the request was on its way: it may be well.
    if (reused && this.#head === undefined) this.start(true);
    else this.#end(kind === 'protocol' ? new UpstreamBroken(message) : new UpstreamLost(kind === 'closed', message));
  }

  #end(failure: Error): void {
    this.#failure = failure;
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#wake?.();
  }

  async #changed(): Promise<void> {
    if (this.#failure === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #sendPieces(connection: UpstreamConnection): Promise<void> {
    for (const piece of this.#pieces) {
      if (Buffer.isBuffer(piece)) await this.#write(connection, piece);
      else await this.#sendFile(connection, piece);
      if (this.#connection !== connection) return;
    }
    connection.endRequest();
    this.isSent = true;
  }

  async #sendFile(connection: UpstreamConnection, { from, bytes }: FormFile): Promise<void> {
    for (let sent = 0; sent < bytes && this.#connection === connection;) {
      const piece = await this.#deps.readBody(from + sent, Math.min(PIECE_BYTES, bytes - sent));
      if (piece === undefined || piece.length === 0) return;
      sent += piece.length;
      if (this.#connection === connection) await this.#write(connection, Buffer.from(piece));
    }
  }

  async #write(connection: UpstreamConnection, bytes: Buffer): Promise<void> {
    this.#deps.onProgress('sent');
    if (!connection.write(bytes)) await new Promise<void>((resolve) => (this.#resumeSending = resolve));
  }
}
