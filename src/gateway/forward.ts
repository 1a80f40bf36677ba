/**
 * One attempt to have a workload answer: request out, answer through to the client as it comes, with back-pressure. It knows nothing of slots and queues;
 * what the client has not seen anything of is reported as lost and may be tried again elsewhere.
 */
import type { ErrorCode } from '../schema/error-codes.ts';
import type { ClientAnswer } from './answer.ts';
import type { RequestBody } from './request-body.ts';
import { readUsage, type Usage } from './decide/read-usage.ts';
import type { ResponseHead } from './decide/response-head.ts';
import { isStillLoading, normaliseUpstreamError } from './decide/upstream-error.ts';
import type { Hold } from './hold.ts';
import type { Breakage, UpstreamConnection, UpstreamSink } from './upstream-connection.ts';
import type { Upstreams } from './upstreams.ts';

export interface ForwardOwner {
  onForwardDone(): void;
  /** Nothing of an answer came, or the upstream said that it still loads. `taken`: it had the request in its hands when it died. */
  onForwardLost(loss: { readonly taken: boolean; readonly message: string }): void;
  onForwardFailed(code: ErrorCode, message: string): void;
}

export interface ForwardRequest {
  readonly upstreams: Upstreams;
  readonly hold: Hold;
  readonly path: string;
  /** Header lines that go on, each with its line end. */
  readonly headerLines: string;
  readonly requestId: string;
  readonly requestBody: RequestBody;
  readonly answer: ClientAnswer;
  /** `performance.now()` of the request's arrival. */
  readonly startedAt: number;
  /** Coarse milliseconds. */
  readonly tick: () => number;
  readonly firstByteMs: number;
  readonly silenceMs: number;
}

/** An upstream's error is a few hundred bytes of JSON; of a longer one the end is not looked at. */
const ERROR_BODY_BYTES = 64 * 1024;
const TAIL_BYTES = 4096;
const CONNECT_MS = 5000;

/** A class, because it is a resource with a lifetime on the hot path. */
export class Forward implements UpstreamSink {
  ttftMs: number | undefined;
  readonly #request: ForwardRequest;
  readonly #owner: ForwardOwner;
  #connection: UpstreamConnection | undefined;
  #progressAt: number;
  #answering = false;
  #over = false;
  #clientStalled = false;
  #errorHead: ResponseHead | undefined;
  #errorBody: Buffer[] = [];
  #errorBytes = 0;
  #tail: Buffer | undefined;
  #beforeTail: Buffer | undefined;

  constructor(request: ForwardRequest, owner: ForwardOwner) {
    this.#request = request;
    this.#owner = owner;
    this.#progressAt = request.tick();
  }

  start(fresh = false): void {
    const { upstreams, hold, path, headerLines, requestId, requestBody } = this.#request;
    const { host, port } = hold.endpoint;
    const connection = upstreams.connect(hold.endpoint, this, { fresh });
    this.#connection = connection;
    const authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    const head = `POST ${path} HTTP/1.1\r\nhost: ${authority}\r\n${headerLines}x-request-id: ${requestId}\r\n${requestBody.lengthHeader()}`;
    if (requestBody.whole) {
      connection.send(head, requestBody.chunks, requestBody.received);
      return;
    }
    connection.write(head);
    if (connection.connected) requestBody.flowTo(connection);
  }

  /** Ends it without a word to the owner. */
  destroy(): void {
    this.#over = true;
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  noteProgress(): void {
    this.#progressAt = this.#request.tick();
  }

  checkTime(now: number): void {
    const silentMs = now - this.#progressAt;
    const { firstByteMs, silenceMs } = this.#request;
    if (this.#answering) {
      if (silentMs <= silenceMs) return;
      const who = this.#clientStalled ? 'client read nothing' : 'upstream was silent';
      this.#fail('upstream.timeout', `The ${who} for ${silenceMs / 1000} s ("SVC_STREAM_TIMEOUT")`);
    } else if (this.#connection?.connected === false && silentMs > CONNECT_MS) {
      this.#lose({ taken: false, message: `The upstream does not accept connections: it took more than ${CONNECT_MS / 1000} s` });
    } else if (silentMs > firstByteMs) {
      this.#fail('upstream.timeout', `The upstream sent no byte for ${firstByteMs / 1000} s ("SVC_FIRST_BYTE_TIMEOUT")`);
    }
  }

  /** The token counts the answer ended with: in its last piece, or before a `[DONE]` that came alone. */
  usage(): Usage | undefined {
    if (this.#tail === undefined) return undefined;
    return readUsage(endOf(this.#tail)) ?? (this.#beforeTail === undefined ? undefined : readUsage(endOf(this.#beforeTail)));
  }

  onConnected(): void {
    this.noteProgress();
    const { requestBody } = this.#request;
    if (this.#connection !== undefined && !requestBody.whole) requestBody.flowTo(this.#connection);
  }

  onDrain(): void {
    this.noteProgress();
    this.#request.requestBody.onDrain();
  }

  onHead(head: ResponseHead): void {
    this.#answering = true;
    this.noteProgress();
    if (head.status >= 300) this.#errorHead = head;
    else {
      // An answer begins: from here on nothing is sent again, and the body's memory can go.
      if (this.#request.requestBody.whole) this.#request.requestBody.release();
      this.#request.answer.head(head, performance.now() - this.#request.startedAt);
    }
  }

  onBody(bytes: Buffer, last: boolean): void {
    if (this.#over) return;
    this.noteProgress();
    if (this.#errorHead !== undefined) {
      this.#collectError(this.#errorHead, bytes, last);
      return;
    }
    this.ttftMs ??= performance.now() - this.#request.startedAt;
    if (bytes.length > 0) {
      this.#beforeTail = this.#tail;
      this.#tail = bytes;
    }
    const { answer } = this.#request;
    if (last) {
      // Not destroyed at the end: it may carry the next request, and decides that itself.
      this.#connection = undefined;
      answer.end(bytes);
      this.#done();
    } else if (!answer.body(bytes)) this.#waitForClient();
  }

  onReadEnd(): void {
    if (this.#answering && this.ttftMs === undefined && this.#errorHead === undefined) this.#request.answer.flush();
  }

  onBroken(breakage: Breakage): void {
    this.#connection = undefined;
    if (this.#answering || breakage.kind === 'protocol') this.#fail('upstream.failed', breakage.message);
    // An idle connection was closed while the request was on its way: nothing says that the workload is ill.
    else if (breakage.reused && this.#request.requestBody.resendable) this.start(true);
    else this.#lose({ taken: breakage.kind === 'closed', message: breakage.message });
  }

  #waitForClient(): void {
    if (this.#clientStalled) return;
    this.#clientStalled = true;
    this.#connection?.pause();
    this.#request.answer.onceDrained(() => {
      this.#clientStalled = false;
      this.noteProgress();
      this.#connection?.resume();
    });
  }

  #collectError(head: ResponseHead, bytes: Buffer, last: boolean): void {
    this.#errorBody.push(bytes);
    this.#errorBytes += bytes.length;
    if (!last && this.#errorBytes < ERROR_BODY_BYTES) return;
    if (!last) this.#connection?.destroy();
    // After a complete answer the connection may carry the next request, and decides that itself.
    this.#connection = undefined;
    if (head.status < 400) {
      this.#fail('upstream.failed', `The upstream answered ${head.status}, which is no answer to a request for inference`);
      return;
    }
    const text = Buffer.concat(this.#errorBody).toString('utf8', 0, Math.min(this.#errorBytes, ERROR_BODY_BYTES));
    const body = normaliseUpstreamError(head.status, text);
    if (isStillLoading(head.status, body) && this.#request.requestBody.resendable) {
      this.#lose({ taken: false, message: body.error.message });
      return;
    }
    this.#request.answer.upstreamError(head, JSON.stringify(body));
    this.#done();
  }

  #done(): void {
    this.#over = true;
    this.#owner.onForwardDone();
  }

  #lose(loss: { readonly taken: boolean; readonly message: string }): void {
    if (this.#over) return;
    this.#dropConnection();
    if (this.#request.requestBody.resendable) this.#owner.onForwardLost(loss);
    else this.#owner.onForwardFailed('upstream.failed', loss.message);
  }

  #fail(code: ErrorCode, message: string): void {
    if (this.#over) return;
    this.#dropConnection();
    this.#owner.onForwardFailed(code, message);
  }

  #dropConnection(): void {
    this.#over = true;
    this.#connection?.destroy();
    this.#connection = undefined;
  }
}

function endOf(bytes: Buffer): string {
  return bytes.toString('latin1', Math.max(0, bytes.length - TAIL_BYTES));
}
