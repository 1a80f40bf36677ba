/**
 * A request of a session to the gateway of this process. It takes the way of all requests: routed by its model, held, parked while the slot loads or gets another
 * model, sent again if a server dies. Only its body and its answer are in memory instead of on a connection.
 */
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import type { ClientRequest, ClientResponse } from '../../../gateway/client-exchange.ts';
import type { InferencePath } from '../../../gateway/route/decide/inference-paths.ts';
import { parseRequestHead } from '../../../gateway/upstream/decide/request-head.ts';
import type { Gateway } from '../../../gateway/gateway.ts';

export interface InnerRequest {
  readonly path: InferencePath;
  readonly contentType: string;
  readonly body: readonly Buffer[];
  readonly requestId: string;
  /** Of the client of the session. */
  readonly socket: Socket;
}

export interface InnerAnswer {
  readonly status: number;
  readonly text: string;
}

/** A transcript of an hour has about 60 KB. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Rejects if the signal aborts, or if the answer is cut. Errors of the gateway are answers. */
export async function askGateway(gateway: Pick<Gateway, 'handle'>, request: InnerRequest, signal: AbortSignal): Promise<InnerAnswer> {
  signal.throwIfAborted();
  const { path, contentType, requestId } = request;
  const length = String(request.body.reduce((bytes, piece) => bytes + piece.length, 0));
  const rawHeaders = ['content-type', contentType, 'content-length', length];
  const req = new MemoryRequest(request, rawHeaders);
  const res = new MemoryResponse();
  const abort = (): void => void res.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    gateway.handle({ req, res, path, head: parseRequestHead(rawHeaders), requestId });
    await closed;
  } finally {
    signal.removeEventListener('abort', abort);
    req.destroy();
  }
  signal.throwIfAborted();
  if (!res.writableFinished) throw new Error('Try again: the answer was cut');
  return { status: res.status, text: Buffer.concat(res.pieces).toString('utf8') };
}

class MemoryRequest extends Readable implements ClientRequest {
  readonly method = 'POST';
  readonly url: string;
  /** An answer of unknown length ends with its connection then, and has no framing. */
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 0;
  readonly rawHeaders: readonly string[];
  readonly headers: ClientRequest['headers'];
  readonly socket: Socket;
  readonly complete = true;
  readonly #pieces: Buffer[];

  constructor({ path, body, socket }: InnerRequest, rawHeaders: readonly string[]) {
    super();
    this.url = path.path;
    this.rawHeaders = rawHeaders;
    this.headers = { 'content-length': rawHeaders.at(-1) };
    this.socket = socket;
    this.#pieces = [...body];
  }

  override _read(): void {
    this.push(this.#pieces.shift() ?? null);
  }
}

class MemoryResponse extends Writable implements ClientResponse {
  shouldKeepAlive = false;
  chunkedEncoding = false;
  headersSent = false;
  status = 0;
  readonly pieces: Buffer[] = [];
  #bytes = 0;

  setHeader(): void {}

  writeContinue(): void {}

  writeHead(status: number): void {
    this.headersSent = true;
    this.status = status;
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#bytes += piece.length;
    if (this.#bytes > ANSWER_BYTES) this.destroy();
    else this.pieces.push(piece);
    done();
  }
}
