/** What the gateway uses of a client's request and of the answer to it. Node's own objects have these members, and so have those of the fast path (`api/fast-path/`). */
import type { Socket } from 'node:net';
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { BodyScan } from './body/body-scan.ts';
import type { BodyLimit } from './route/decide/request-limits.ts';
import type { RequestHead } from './upstream/decide/request-head.ts';

export interface ClientRequest {
  readonly method?: string | undefined;
  /** As sent, with its query. */
  readonly url?: string | undefined;
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly headers: {
    readonly 'content-length'?: string | undefined;
    readonly 'transfer-encoding'?: string | undefined;
    readonly expect?: string | undefined;
  };
  readonly socket: Socket;
  /** The whole body has arrived, whether or not it has been read. */
  readonly complete: boolean;
  /** Reading of the body has begun. */
  readonly readableDidRead: boolean;
  /** Reading begins, in a later turn, with the first listener of `data`. */
  on(event: 'data', listener: (bytes: Buffer) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  /**
   * Frees the memory of bytes that a listener of `data` got, at once: they must be of no more use to anything. Memory that holds other bytes, too, stays until it is collected. Undefined where the reader of the
   * connection does not know that.
   */
  free?(bytes: Buffer): void;
}

export interface ClientResponse {
  /** False: the connection is closed after this answer. */
  shouldKeepAlive: boolean;
  /** False: the writer frames the body itself. */
  chunkedEncoding: boolean;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableNeedDrain: boolean;
  setHeader(name: string, value: string): unknown;
  /**
   * They are sent with the first bytes of the body. Names and values in turn must be well-formed, as the parser of upstreams' answers and the check of translations leave them: the fast path does not check them again.
   * Throws if a name or value in an object is not well-formed.
   */
  writeHead(status: number, headers: string[] | Record<string, string | number>): unknown;
  writeContinue(): void;
  /** Returns false if the caller should wait for `drain`. The head must have been written, also before `end`. */
  write(bytes: Buffer): boolean;
  write(text: string, encoding: BufferEncoding): boolean;
  write(text: string): boolean;
  end(): unknown;
  end(body: Buffer | string): unknown;
  end(text: string, encoding: BufferEncoding): unknown;
  /** Closes the connection at once. */
  destroy(): unknown;
  /** `finish`: everything has been handed to the kernel. `close`: the answer is complete or the connection is closed. */
  on(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
}

/**
 * The memory of what was read from a client. It is outside of V8's heap, 64 KiB for each read, and V8 goes through all objects of the service whenever 64 MB more of it are in use: left to the collection of
 * garbage, large bodies take more time there than in all of the gateway. So it is freed as soon as the upstream has the bytes (docs/speed.md).
 */

/** Smaller pieces cost more to free than to collect. */
const FREED_BYTES = 16 * 1024;

/** A class for speed, since there is one per request. */
export class ReadMemory {
  readonly #req: Pick<ClientRequest, 'free'>;
  #pieces: Buffer[] = [];

  constructor(req: Pick<ClientRequest, 'free'>) {
    this.#req = req;
  }

  /** Notes a piece that was read. */
  add(piece: Buffer): void {
    if (piece.length >= FREED_BYTES && this.#req.free !== undefined) this.#pieces.push(piece);
  }

  /** Nothing will read what was noted, and the kernel has all of it that was written anywhere. */
  free(): void {
    if (this.#pieces.length === 0) return;
    for (const piece of this.#pieces) this.#req.free?.(piece);
    this.#pieces = [];
  }

  /** Leaves what was noted to the collection of garbage, because it may still be in use. */
  leave(): void {
    this.#pieces = [];
  }
}

/** What a request body is read from, and what its reader calls. */

export interface ReadRequest {
  readonly req: ClientRequest;
  readonly head: RequestHead;
  readonly scan: BodyScan;
  readonly limit: BodyLimit;
}

export interface RequestBodyOwner {
  /** Enough is known to route the request. Called once. */
  onBodyReady(): void;
  fail(code: ErrorCode, message: string, param?: string | null): void;
  onBodyProgress(): void;
}
