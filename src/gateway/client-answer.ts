/**
 * Sends the answer of one exchange: the upstream's bytes unchanged, or an error in the form that is still possible. A
 * stream of events may have a head and comments before the answer. They are no part of it: the request can still be
 * sent to another server, and `started` is false.
 */
import { ERROR_CODES, errorBody, type ErrorBody, type ErrorCode } from '../schema/words/error-codes.ts';
import type { ClientRequest, ClientResponse } from './client-exchange.ts';
import { errorAnswer, JSON_TYPE, type Dialect, type ErrorAnswer } from './route/decide/dialects.ts';
import { isUpstreamFailure } from './route/decide/fall-back.ts';
import { textOf, type ResponseHead } from './upstream/decide/response-head.ts';
import { errorEventOf, translateStreamErrors } from './upstream/decide/judge-answer.ts';
import { AnswerWriter, type WriteBatcher } from './batch-streams.ts';

/** The rest of an unwanted body is read up to this size, which is faster than a new connection. */
const DISCARDED_BYTES = 1024 * 1024;
/** How long the rest of a larger one is read, so that the client can read the answer before the connection closes. */
const LINGER_MS = 2000;
const NEW_LINE = 0x0a;
const NO_STREAM = 'The model server sent no stream, although the request asks for one: send "stream": false';
const RETRY_HEADERS: ReadonlySet<string> = new Set(['retry-after', 'retry-after-ms', 'x-should-retry']);

/** Upstreams choose theirs freely. */
const MOST_CODE_LENGTH = 64;

interface AnswerRequest {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly requestId: string;
  readonly dialect: Dialect;
}

export class ClientAnswer {
  /** Status sent; 0 before `begin` or an error. */
  status = 0;
  /** The code of the error that was sent, if it has one. */
  code: string | undefined;
  #blockedMs: number | undefined;
  #blockedSince: number | undefined;
  readonly #req: ClientRequest;
  readonly #res: ClientResponse;
  readonly #requestId: string;
  readonly dialect: Dialect;
  /** The answer is a stream of events. */
  streamed = false;
  readonly #writer: AnswerWriter;
  /** Head and comments went out before the answer. */
  #isEarly = false;
  /** The answer ended with an error, so the rest of the upstream's is left out. */
  #isOver = false;
  /** Header lines about limits of the caller, each with its line end. */
  limitLines = '';
  /** Headers that every answer gets, also an error. */
  headers: Readonly<Record<string, string>> | undefined;
  /** An upstream's error that another slot may do better than is not sent, but kept. */
  keepsErrors = false;
  /** Sends the error that is kept. */
  kept: (() => void) | undefined;
  /** Number of line ends at the end of what was sent; two end an event. */
  #lineEnds = 2;

  constructor({ req, res, requestId, dialect }: AnswerRequest, batcher: WriteBatcher) {
    this.#writer = new AnswerWriter(res, batcher);
    this.#req = req;
    this.#res = res;
    this.#requestId = requestId;
    this.dialect = dialect;
  }

  get started(): boolean {
    return this.status !== 0;
  }

  /** Milliseconds for which the client did not read what was ready; undefined if it always did. */
  get blockedMs(): number | undefined {
    return this.#blockedSince === undefined ? this.#blockedMs : (this.#blockedMs ?? 0) + performance.now() - this.#blockedSince;
  }

  /**
   * Sends a comment, the first one with the head of a stream of events. Only before `begin` or an error, to a client
   * that expects a stream. Does nothing for HTTP/1.0, where the end of a body without a length may be a cut as well.
   */
  comment(text: string): void {
    if (this.started || this.#res.destroyed || this.#req.httpVersionMinor !== 1) return;
    if (!this.#isEarly) this.#beginEarly();
    this.#writer.writeNow(`: ${text}\n\n`);
  }

  /** Sets status and headers, which are sent with the first bytes of the body. */
  begin(head: ResponseHead, processingMs: number): void {
    this.status = head.status;
    const isStream = head.contentType?.startsWith('text/event-stream') === true;
    if (this.#isEarly) return this.#beginLate(isStream);
    this.streamed = isStream;
    const isFramed = !hasLength(head) && this.#req.httpVersionMinor === 1;
    this.#writeHead(head, `${linesOf(head, processingMs, this.headers)}${this.limitLines}`, isFramed);
  }

  /** Returns false if the caller should wait for `onceDrained`. */
  write(piece: Buffer): boolean {
    if (piece.length === 0 || this.#isOver) return true;
    const bytes = this.#inDialect(piece);
    if (this.streamed) this.#countLineEnds(bytes);
    return this.#writer.write(bytes);
  }

  end(piece: Buffer): void {
    if (this.#isOver) return;
    this.#writer.end(this.#inDialect(piece));
  }

  /** Sends an error of the gateway. Only before `begin`. */
  refuse(code: ErrorCode, message: string, param: string | null): void {
    this.code = code;
    this.#error(errorAnswer(code, message, { param, requestId: this.#requestId, dialect: this.dialect }));
  }

  translated(status: number, body: object, processingMs: number): void {
    const bytes = Buffer.from(JSON.stringify(body));
    const framing = { kind: 'length', bytes: bytes.length } as const;
    this.begin(
      { status, headers: ['content-type', JSON_TYPE], contentType: JSON_TYPE, framing, keepAlive: true, keepAliveSeconds: undefined },
      processingMs,
    );
    this.end(bytes);
  }

  /** Sends an upstream's normalised error, with its headers about retries. Only before `begin`. */
  upstreamError(head: Pick<ResponseHead, 'status' | 'headers'>, error: ErrorBody['error']): void {
    const { requestIdHeader } = this.dialect;
    const ids = requestIdHeader === undefined ? {} : { [requestIdHeader]: this.#requestId };
    const headers = { 'content-type': JSON_TYPE, 'x-request-id': this.#requestId, ...ids, ...retryHeadersIn(head.headers) };
    const body = JSON.stringify(this.dialect.errorBody(error, head.status, this.#requestId));
    const send = (): void => {
      this.code = error.code?.slice(0, MOST_CODE_LENGTH);
      this.#error({ status: head.status, headers, body });
    };
    if (this.keepsErrors && isUpstreamFailure(head.status)) this.kept = send;
    else send();
  }

  onceDrained(callback: () => void): void {
    this.#blockedSince = performance.now();
    this.#res.once('drain', () => {
      this.#blockedMs = this.blockedMs;
      this.#blockedSince = undefined;
      callback();
    });
  }

  /** Ends an answer that cannot be completed: a stream with an error event, any other body by a cut. */
  abort(code: ErrorCode, message: string): void {
    this.code = code;
    if (!this.streamed || this.#res.destroyed) return this.destroy();
    const body = this.dialect.errorBody(errorBody(code, message).error, ERROR_CODES[code].status, this.#requestId);
    this.#endWith(JSON.stringify(body));
  }

  destroy(): void {
    this.#res.destroy();
  }

  /** `added`: header lines besides those of the head. */
  #writeHead(head: AnswerHead, added: string, framed: boolean): void {
    const { requestIdHeader } = this.dialect;
    let lines = `${added}x-request-id: ${this.#requestId}\r\n`;
    if (requestIdHeader !== undefined) lines += `${requestIdHeader}: ${this.#requestId}\r\n`;
    if (this.streamed && !hasHeader(head.headers, 'x-accel-buffering')) lines += 'x-accel-buffering: no\r\n';
    if (framed) lines += 'transfer-encoding: chunked\r\n';
    writeHead(this.#res, head, lines);
    // Node writes a chunk in four pieces, this class in one.
    if (framed) this.#res.chunkedEncoding = false;
    this.#writer.framed = framed;
  }

  #beginEarly(): void {
    this.#isEarly = true;
    this.streamed = true;
    const known = Object.entries(this.headers ?? {}).filter(([name]) => !isOfSlot(name));
    const headers = ['content-type', 'text/event-stream', 'cache-control', 'no-cache', ...known.flat()];
    this.#writeHead({ status: 200, headers }, this.limitLines, true);
  }

  /** The client has a head. Where the request went is known only now, and only events can follow. */
  #beginLate(isStream: boolean): void {
    const lines = Object.entries(this.headers ?? {}).flatMap(([name, value]) => (isOfSlot(name) ? [`: ${name}: ${value}\n`] : []));
    if (lines.length > 0) this.#writer.writeNow(`${lines.join('')}\n`);
    if (isStream) return;
    this.status = ERROR_CODES['upstream.failed'].status;
    this.abort('upstream.failed', NO_STREAM);
    this.#isOver = true;
  }

  /** `body`: the error as JSON. */
  #endWith(body: string): void {
    const res = this.#res;
    const gap = '\n'.repeat(2 - this.#lineEnds);
    res.once('finish', () => res.destroy());
    this.end(Buffer.from(`${gap}${errorEventOf(this.dialect, body)}`));
  }

  #inDialect(piece: Buffer): Buffer {
    if (!this.streamed || this.dialect.errorEvent === undefined || !piece.includes('{"error"')) return piece;
    const events = piece.toString('utf8');
    const translated = translateStreamErrors(events, this.dialect, this.#requestId);
    return translated === events ? piece : Buffer.from(translated);
  }

  #error(answer: ErrorAnswer): void {
    this.status = answer.status;
    if (this.#isEarly) return this.#endWith(answer.body);
    answerError(this.#req, this.#res, {
      ...answer,
      headers: { ...answer.headers, ...Object.fromEntries(pairsOf(this.limitLines)), ...this.headers },
    });
  }

  #countLineEnds(bytes: Buffer): void {
    const { length } = bytes;
    if (bytes[length - 1] !== NEW_LINE) this.#lineEnds = 0;
    else if (length > 1)
      this.#lineEnds = bytes[length - 2] === NEW_LINE ? 2 : bytes[length - 2] === 0x0d && bytes[length - 3] === NEW_LINE ? 2 : 1;
    else this.#lineEnds = Math.min(2, this.#lineEnds + 1);
  }
}

type AnswerHead = Pick<ResponseHead, 'status' | 'headers' | 'text'>;

const hasLength = ({ framing: { kind } }: ResponseHead): boolean => kind === 'length' || kind === 'none';

/** `headers`: those that every answer gets. */
function linesOf({ framing }: ResponseHead, processingMs: number, headers: ClientAnswer['headers']): string {
  const length = framing.kind === 'length' ? `content-length: ${framing.bytes}\r\n` : '';
  const own = headers === undefined ? '' : textOf(Object.entries(headers).flat()).lines;
  return `${length}openai-processing-ms: ${Math.round(processingMs)}\r\n${own}`;
}

/** As text where the client's connection takes it, which costs less. */
function writeHead(res: ClientResponse, { status, headers, text }: AnswerHead, added: string): void {
  const known = res.writeText === undefined ? undefined : (text ?? textOf(headers));
  const isWritten = known !== undefined && res.writeText?.(status, { lines: known.lines + added, hasDate: known.hasDate });
  if (isWritten !== true) res.writeHead(status, [...headers, ...pairsOf(added).flat()]);
}

const retryHeadersIn = (headers: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    headers.flatMap((text, index) => {
      const name = text.toLowerCase();
      return index % 2 === 0 && RETRY_HEADERS.has(name) ? [[name, headers[index + 1] ?? '']] : [];
    }),
  );

const pairsOf = (lines: string): readonly (readonly [string, string])[] =>
  lines
    .split('\r\n')
    .slice(0, -1)
    .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);

/**
 * Sends an error. Node reads the rest of a small body. With a larger one, the connection is closed once the client has
 * had time to read the answer; until then the body is discarded.
 */
export function answerError(req: ClientRequest, res: ClientResponse, answer: ErrorAnswer): void {
  if (res.headersSent || res.destroyed) return void res.destroy();
  // A client that was too slow with its body gets no more time for the rest.
  const bodyRead = req.complete || (answer.status !== ERROR_CODES['request.timeout'].status && !hasMuchBody(req));
  const length = Buffer.byteLength(answer.body);
  res.writeHead(answer.status, { ...answer.headers, 'content-length': length, ...(bodyRead ? {} : { connection: 'close' }) });
  if (bodyRead || isWithheld(req)) return void res.end(answer.body);
  res.write(answer.body);
  const finish = (): void => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(finish, LINGER_MS);
  res.on('close', () => clearTimeout(timer));
  req.on('end', finish);
  req.resume();
}

/** Headers that say which slot answers. They change while a request waits. */
const isOfSlot = (name: string): boolean => name.startsWith('x-svc-');

/** The client waits for "100 Continue" before it sends its body, and did not get it. */
const isWithheld = (req: ClientRequest): boolean => req.headers.expect !== undefined && !req.readableDidRead;

function hasMuchBody(req: ClientRequest): boolean {
  return req.headers['transfer-encoding'] !== undefined || isWithheld(req) || Number(req.headers['content-length'] ?? 0) > DISCARDED_BYTES;
}

function hasHeader(headers: readonly string[], name: string): boolean {
  return headers.some((text, index) => index % 2 === 0 && text.length === name.length && text.toLowerCase() === name);
}
