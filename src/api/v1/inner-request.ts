/** Requests of this process to its own gateway, which treats them like any other: routed, held, parked, sent again. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import type { ClientRequest, ClientResponse } from '../../gateway/client-exchange.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import { parseRequestHead } from '../../gateway/upstream/decide/request-head.ts';

/** A client of this process whose work needs such requests. */
export interface InnerCaller {
  readonly gateway: Pick<Gateway, 'handle'>;
  readonly socket: Socket;
  /** The caller's; each request id begins with it. */
  readonly requestId: string;
}

const Failure = z.object({
  error: z.object({ message: z.string(), type: z.string().nullish(), code: z.string().nullish(), param: z.string().nullish() }),
});

/** The error in the body of an answer. `otherwise`: the message if there is none. */
export function errorOf(json: unknown, otherwise: string) {
  const { message = otherwise, type, code, param } = Failure.safeParse(json).data?.error ?? {};
  return { type: type ?? 'upstream_error', code: code ?? null, message, param: param ?? null };
}

interface InnerRequest {
  readonly path: InferencePath;
  readonly contentType: string;
  readonly body: readonly Buffer[];
  /** Gets the body of an answer with status 200 instead of `text`. The next piece waits until it resolves. */
  readonly onPiece?: (piece: Buffer) => Promise<void>;
}

/** A transcript of an hour has about 60 KB. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Rejects if the signal aborts, or if the answer is cut. Errors of the gateway are answers. */
export async function askGateway({ gateway, socket, requestId: callerId }: InnerCaller, request: InnerRequest, signal: AbortSignal) {
  signal.throwIfAborted();
  const { path, contentType, onPiece } = request;
  const requestId = `${callerId}.${randomUUID().slice(0, 8)}`;
  const length = String(request.body.reduce((bytes, piece) => bytes + piece.length, 0));
  const rawHeaders = ['content-type', contentType, 'content-length', length];
  const req = new MemoryRequest(request, rawHeaders, socket);
  const res = new MemoryResponse(onPiece);
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
  if (!res.writableFinished) throw new Error('The answer was cut: try again');
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

  constructor({ path, body }: InnerRequest, rawHeaders: readonly string[], socket: Socket) {
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
  readonly #onPiece: InnerRequest['onPiece'];
  #bytes = 0;

  constructor(onPiece: InnerRequest['onPiece']) {
    super();
    this.#onPiece = onPiece;
  }

  setHeader(): void {}

  writeContinue(): void {}

  writeHead(status: number): void {
    this.headersSent = true;
    this.status = status;
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    if (this.status === 200 && this.#onPiece !== undefined) return void this.#pass(this.#onPiece(piece), done);
    this.#bytes += piece.length;
    if (this.#bytes > ANSWER_BYTES) this.destroy();
    else this.pieces.push(piece);
    done();
  }

  async #pass(passed: Promise<void>, done: (error?: Error) => void): Promise<void> {
    try {
      await passed;
    } catch (error) {
      return done(error instanceof Error ? error : new Error(String(error)));
    }
    done();
  }
}
