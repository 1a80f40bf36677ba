/** The client's side of one exchange: the upstream's answer as it is, or an error of the contract; what can still be said depends on what was sent. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorBody, type ErrorCode } from '../schema/error-codes.ts';
import { BATCH_MS, type WriteBatch, type WriteBatcher } from './write-batcher.ts';
import { errorAnswer, type ErrorAnswer } from './decide/error-answer.ts';
import type { ResponseHead } from './decide/response-head.ts';

/** A body that comes whole goes out in one write with its head, as a string of one character a byte, up to this size. */
const JOINED_BODY_BYTES = 64 * 1024;
/** Larger pieces go out by themselves, and no more than this waits. */
const BURST_BYTES = 16 * 1024;
/** How long the rest of a body that nobody wants is read, so that the client gets to read the answer instead of a reset. */
const LINGER_MS = 2000;
const NEW_LINE = 0x0a;

export class ClientAnswer implements WriteBatch {
  /** Status sent; 0 before. */
  status = 0;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #requestId: string;
  #stream = false;
  /** We write the chunks' frames ourselves. */
  #framed = false;
  readonly #batcher: WriteBatcher;
  #held = '';
  #wroteAt = 0;
  /** Line ends at the end of what was sent: two close an event. */
  #lineEnds = 2;

  constructor(req: IncomingMessage, res: ServerResponse, requestId: string, batcher: WriteBatcher) {
    this.#batcher = batcher;
    this.#req = req;
    this.#res = res;
    this.#requestId = requestId;
  }

  get started(): boolean {
    return this.status !== 0;
  }

  /** Takes the upstream's headers; they go out with the first bytes of the body, or with `flush`. */
  head(head: ResponseHead, processingMs: number): void {
    const { headers } = head;
    this.status = head.status;
    this.#stream = head.contentType?.startsWith('text/event-stream') === true;
    headers.push('x-request-id', this.#requestId, 'openai-processing-ms', String(Math.round(processingMs)));
    if (this.#stream) withoutProxyBuffers(headers);
    this.#framed = head.framing.kind !== 'length' && head.framing.kind !== 'none' && this.#req.httpVersionMinor === 1;
    if (this.#framed) headers.push('transfer-encoding', 'chunked');
    this.#res.writeHead(head.status, headers);
    // Node writes a chunk in four pieces; we write it in one.
    if (this.#framed) this.#res.chunkedEncoding = false;
  }

  flush(): void {
    this.#res.flushHeaders();
  }

  /** False: wait until it is drained. */
  body(bytes: Buffer): boolean {
    if (bytes.length === 0) return true;
    if (this.#stream) this.#countLineEnds(bytes);
    const res = this.#res;
    if (!this.#framed) return res.write(bytes);
    if (bytes.length <= BURST_BYTES) return this.#writeFrame(frameOf(bytes));
    this.flushBatch();
    res.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
    res.write(bytes);
    return res.write('\r\n', 'latin1');
  }

  flushBatch(): void {
    if (this.#held === '') return;
    const held = this.#held;
    this.#held = '';
    if (!this.#res.destroyed) this.#res.write(held, 'latin1');
  }

  end(bytes: Buffer): void {
    const res = this.#res;
    if (this.#framed) {
      const large = bytes.length > BURST_BYTES;
      if (large) this.body(bytes);
      const last = large ? '' : frameOf(bytes);
      res.end(`${this.#held}${last}0\r\n\r\n`, 'latin1');
      this.#held = '';
    } else if (bytes.length === 0) res.end();
    else if (bytes.length <= JOINED_BODY_BYTES) res.end(bytes.toString('latin1'), 'latin1');
    else res.end(bytes);
  }

  /** Only before `head`. */
  refuse(code: ErrorCode, message: string, param: string | null): void {
    this.#error(errorAnswer(code, message, { param, requestId: this.#requestId }));
  }

  /** Only before `head`. `text`: the body in the contract's shape. Of the upstream's headers only those that steer retries go on. */
  upstreamError(head: ResponseHead, text: string): void {
    const headers = ['content-type', 'application/json; charset=utf-8', 'content-length', String(Buffer.byteLength(text))];
    headers.push('x-request-id', this.#requestId);
    for (let index = 0; index < head.headers.length; index += 2) {
      const name = head.headers[index] ?? '';
      if (/^(?:retry-after|retry-after-ms|x-should-retry)$/i.test(name)) headers.push(name, head.headers[index + 1] ?? '');
    }
    this.#error({ status: head.status, headers, body: text });
  }

  onceDrained(callback: () => void): void {
    this.#res.once('drain', callback);
  }

  /** The upstream died in the middle. A stream is told so in its own language; of any other body the client sees that it is cut. */
  cut(code: ErrorCode, message: string): void {
    const res = this.#res;
    if (!this.#stream || res.destroyed) {
      res.destroy();
      return;
    }
    const gap = '\n'.repeat(2 - this.#lineEnds);
    res.once('finish', () => res.destroy());
    this.end(Buffer.from(`${gap}data: ${JSON.stringify(errorBody(code, message))}\n\n`));
  }

  destroy(): void {
    this.#res.destroy();
  }

  #writeFrame(frame: string): boolean {
    const now = performance.now();
    const soon = now - this.#wroteAt < BATCH_MS;
    this.#wroteAt = now;
    if (!soon && this.#held === '') return this.#res.write(frame, 'latin1');
    if (this.#held === '') this.#batcher.hold(this);
    this.#held += frame;
    if (this.#held.length > BURST_BYTES) this.flushBatch();
    return !this.#res.writableNeedDrain;
  }

  #error(answer: ErrorAnswer): void {
    this.status = answer.status;
    answerError(this.#req, this.#res, answer);
  }

  #countLineEnds(bytes: Buffer): void {
    const { length } = bytes;
    if (length === 0) return;
    if (bytes[length - 1] !== NEW_LINE) this.#lineEnds = 0;
    else if (length > 1)
      this.#lineEnds = bytes[length - 2] === NEW_LINE ? 2 : bytes[length - 2] === 0x0d && bytes[length - 3] === NEW_LINE ? 2 : 1;
    else this.#lineEnds = Math.min(2, this.#lineEnds + 1);
  }
}

/**
 * Sends an error. When the request's body has not been read to its end, the connection ends after the answer, but not before the client
 * could read it: what still comes is read and thrown away for a while.
 */
export function answerError(req: IncomingMessage, res: ServerResponse, answer: ErrorAnswer): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  if (req.complete || !hasBody(req) || isWithheld(req)) {
    const close = req.complete || !hasBody(req) ? [] : ['connection', 'close'];
    res.writeHead(answer.status, [...answer.headers, ...close]);
    res.end(answer.body);
    return;
  }
  res.writeHead(answer.status, [...answer.headers, 'connection', 'close']);
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

/** The client waits to be asked for its body, and was not. */
function isWithheld(req: IncomingMessage): boolean {
  return req.headers.expect !== undefined && !req.readableDidRead;
}

function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** A chunk of HTTP/1.1, one character a byte; nothing for no bytes, since an empty chunk would end the body. */
function frameOf(bytes: Buffer): string {
  return bytes.length === 0 ? '' : `${bytes.length.toString(16)}\r\n${bytes.toString('latin1')}\r\n`;
}

function withoutProxyBuffers(headers: string[]): void {
  for (let index = 0; index < headers.length; index += 2) if (headers[index]?.toLowerCase() === 'x-accel-buffering') return;
  headers.push('x-accel-buffering', 'no');
}
