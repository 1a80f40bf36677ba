/** The parts of a client's request and response that the gateway uses, of Node or of `turbo/fast-path/`. */
import type { Socket } from 'node:net';
import type { HeaderText } from './upstream/decide/response-head.ts';

export interface ClientRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly rawHeaders: readonly string[];
  /** The same object for requests of a connection whose heads differ in `Content-Length` only. Undefined: unknown. */
  readonly sameHead?: object | undefined;
  readonly headers: {
    readonly 'content-length'?: string | undefined;
    readonly 'transfer-encoding'?: string | undefined;
    readonly expect?: string | undefined;
  };
  readonly socket: Socket;
  /** The whole body has arrived, whether or not it has been read. */
  readonly complete: boolean;
  readonly readableDidRead: boolean;
  /** Reading begins, in a later turn, with the first listener of `data`. */
  on(event: 'data', listener: (bytes: Buffer) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  /**
   * Frees the memory of bytes from `data`, which nothing may use any more. Memory that holds other bytes, too, is left
   * to the garbage collector. Undefined where the connection's reader cannot tell.
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
   * Sent with the first bytes of the body. An array of names and values in turn must be well-formed: the fast path does
   * not check it. Throws if a name or value in an object is not.
   */
  writeHead(status: number, headers: string[] | Record<string, string | number>): unknown;
  /**
   * Like `writeHead`, with header lines that are well-formed and include no `Connection`. Returns false, and does
   * nothing, if that must be called instead.
   */
  writeText?(status: number, text: HeaderText): boolean;
  writeContinue(): void;
  /** Returns false if the caller should wait for `drain`. The head must have been written, also before `end`. */
  write(bytes: Buffer): boolean;
  write(text: string, encoding: BufferEncoding): boolean;
  write(text: string): boolean;
  end(): unknown;
  end(body: Buffer | string): unknown;
  end(text: string, encoding: BufferEncoding): unknown;
  destroy(): unknown;
  /** `finish`: the kernel has everything. `close`: the answer is complete or the connection is closed. */
  on(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
}
