/**
 * One attempt to get an answer from one endpoint. `Exchange` creates and starts it with a hold; it sends the request,
 * passes the answer on to the client as it arrives, with back-pressure, and reports the end to the exchange exactly
 * once. It knows no slots and no queues.
 *
 *   start ─► connect ─► send ─► head ─┬─► below 300: await the first byte of the body, then pipe ─► end   onDone
 *              │          │       │    └─► an error, or to be translated: collect, then (re)send         onDone, onLost
 *              └──────────┴───────┴─ broken before that byte: a reused connection is replaced once, else  onLost
 *                                    broken after it, not HTTP, or a time limit passed                    fail
 *
 * "Lost" means that the client has received nothing and the body can be sent again, so that another endpoint may
 * answer. The head waits for the body, because a server that dies between the two would otherwise take the request with
 * it.
 */
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { ClientMistake } from '../../providers/provider.ts';
import { judgeRefusal } from '../../remote/decide/judge-remote.ts';
import type { AttemptRequest, ExchangeDeps, ExchangeRequest } from '../exchange-deps.ts';
import type { Attempt, AttemptEvents, Breakage, UpstreamEvents } from '../request-events.ts';
import { CONNECT_MS } from '../route/decide/request-limits.ts';
import { askedOf, authorityOf, type ForwardPlan } from '../route/decide/route.ts';
import { AnswerTail } from './answer-tail.ts';
import type { AnswerCounts } from './decide/count-media.ts';
import { judgeAnswer } from './decide/judge-answer.ts';
import type { ResponseHead } from './decide/response-head.ts';
import type { UpstreamConnection } from './upstream-connection.ts';

/** An upstream's error is a few hundred bytes of JSON; the rest of a longer one is not read. */
const ERROR_BYTES = 64 * 1024;
/** The scores of 100,000 documents; only answers of this kind are translated. */
const TRANSLATED_BYTES = 8 * 1024 * 1024;
/** Their servers send about one event for each token. */
const TEXT_PATH = /\/(?:completions|messages)$/;
const NO_LIMIT = { timeoutMs: undefined };

export interface ForwardRequest extends AttemptRequest {
  /** Default: `POST`. */
  readonly method?: string | undefined;
  readonly path: string;
  /** Errors are passed on as they are, too. Default: in the form of the path's dialect. */
  readonly isOpaque?: boolean;
  readonly mistakes: readonly ClientMistake[] | undefined;
  readonly capability?: Capability | undefined;
  /** Header lines for the upstream, each with its line end. */
  readonly headerLines: string;
}

export class Forward implements UpstreamEvents, Attempt {
  ttftMs: number | undefined;
  readonly #request: ForwardRequest;
  readonly #events: AttemptEvents;
  #connection: UpstreamConnection | undefined;
  #progressAt: number;
  #head: ResponseHead | undefined;
  #ended = false;
  #clientStalled = false;
  /** The body was not complete when the request was sent, so it follows as it arrives. */
  #flows = false;
  #collected: CollectedAnswer | undefined;
  readonly #tail: AnswerTail;

  constructor(request: ForwardRequest, events: AttemptEvents) {
    this.#request = request;
    this.#events = events;
    this.#progressAt = request.deps.tick();
    this.#tail = new AnswerTail(request.capability);
  }

  start(fresh = false): void {
    const { deps, hold, method = 'POST', path, headerLines, requestId, requestBody } = this.#request;
    const linked = hold.endpoint.link && deps.upstreams.linesFor(hold.endpoint.link, headerLines);
    if (linked?.ok === false) return this.#fail(linked.code, linked.problem);
    // Only a body that is kept can be sent again if an idle connection turns out to be dead.
    const connection = deps.upstreams.connect(hold.endpoint, this, fresh || !requestBody.isKept);
    this.#connection = connection;
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${authorityOf(hold.endpoint)}\r\n${linked?.lines ?? headerLines}x-request-id: ${requestId}\r\n${requestBody.lengthHeader()}`;
    if (requestBody.inMemory) return connection.send(head, requestBody.chunks, requestBody.received);
    this.#flows = true;
    connection.write(head);
    if (connection.connected) requestBody.flowTo(connection);
  }

  destroy(): undefined {
    this.#ended = true;
    this.#request.requestBody.stopFlow();
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  giveUp(message: string): void {
    this.#lose(false, message);
  }

  noteProgress(): void {
    this.#progressAt = this.#request.deps.tick();
  }

  checkTimeouts(now: number): void {
    const silentMs = now - this.#progressAt;
    const { SVC_FIRST_BYTE_TIMEOUT: ofService, SVC_STREAM_TIMEOUT: silenceMs } = this.#request.deps.settings;
    const { timeoutMs: firstByteMs = ofService } = this.#request.hold.endpoint.link ?? NO_LIMIT;
    if (this.#head !== undefined) {
      if (silentMs <= silenceMs) return;
      const who = this.#clientStalled ? 'client read nothing' : 'upstream sent nothing';
      this.#fail('upstream.timeout', `The ${who} for ${silenceMs / 1000} s ("SVC_STREAM_TIMEOUT")`);
    } else if (this.#connection?.connected === false && silentMs > CONNECT_MS) {
      this.#lose(false, `The upstream did not accept a connection within ${CONNECT_MS / 1000} s`);
    } else if (silentMs > firstByteMs) {
      this.#fail(
        'upstream.timeout',
        `The upstream sent no byte for ${firstByteMs / 1000} s ("${firstByteMs === ofService ? 'SVC_FIRST_BYTE_TIMEOUT' : 'remote.timeout'}")`,
      );
    }
  }

  counts(): AnswerCounts {
    return this.#tail.counts(this.#request.answer.streamed && TEXT_PATH.test(this.#request.path));
  }

  onConnected(): void {
    this.noteProgress();
    if (this.#connection !== undefined && this.#flows) this.#request.requestBody.flowTo(this.#connection);
  }

  onDrain(): void {
    this.noteProgress();
    this.#request.requestBody.resumeFlow();
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    this.noteProgress();
    const { isOpaque = false, answer } = this.#request;
    if ((head.status >= 300 && !isOpaque) || answer.dialect.translateAnswer !== undefined) this.#collected = new CollectedAnswer(head);
  }

  onBody(bytes: Buffer, last: boolean): void {
    if (this.#ended) return;
    this.noteProgress();
    this.#request.hold.heard();
    this.#tail.add(bytes, this.#head);
    if (this.#collected !== undefined) return this.#collect(this.#collected, bytes, last);
    if (bytes.length === 0 && !last) return;
    this.#begin();
    const { answer } = this.#request;
    if (last) {
      // Not destroyed: the connection itself decides whether it is kept for the next request.
      this.#connection = undefined;
      answer.end(bytes);
      this.#done();
    } else if (!answer.write(bytes)) this.#waitForClient();
  }

  onBroken({ kind, reused, message }: Breakage): void {
    this.#connection = undefined;
    const { resendable } = this.#request.requestBody;
    // The upstream closed an idle connection, or left bytes of another answer on it: the workload may be well.
    if (reused && resendable && this.#head === undefined) this.start(true);
    else if (kind === 'protocol') this.#fail('upstream.failed', message);
    else this.#lose(kind === 'closed', message);
  }

  /** Passes the head on. Nothing is sent again from here on, so the body's memory can be released. */
  #begin(): void {
    if (this.ttftMs !== undefined || this.#head === undefined) return;
    const { requestBody, answer, startedAt } = this.#request;
    requestBody.releaseIfSent(this.#connection?.hasWrittenAll === true);
    this.ttftMs = performance.now() - startedAt;
    answer.begin(this.#head, this.ttftMs);
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

  #collect(collected: CollectedAnswer, bytes: Buffer, last: boolean): void {
    collected.add(bytes);
    if (!last && !collected.isFull) return;
    if (!last) this.#connection?.destroy();
    this.#connection = undefined;
    const { head } = collected;
    const { answer, hold, requestBody, requestId, startedAt, mistakes } = this.#request;
    const verdict =
      (hold.endpoint.link && judgeRefusal(head)) ??
      judgeAnswer({ status: head.status, text: collected.text(), mistakes }, answer.dialect, requestId);
    if (verdict.kind === 'unusable') this.#fail('upstream.failed', verdict.message);
    else if (verdict.kind === 'loading' && requestBody.resendable) this.#lose(false, verdict.body.error.message);
    else {
      this.ttftMs = performance.now() - startedAt;
      if (verdict.kind === 'translated') answer.translated(head.status, verdict.body, this.ttftMs);
      else answer.upstreamError(verdict.kind === 'error' ? { ...head, status: verdict.status } : head, verdict.body.error);
      this.#done();
    }
  }

  #done(): void {
    this.#ended = true;
    this.#events.onDone();
  }

  #lose(accepted: boolean, message: string): void {
    if (this.#ended) return;
    this.destroy();
    if (this.#request.requestBody.resendable) this.#events.onLost({ hold: this.#request.hold, accepted, message });
    else this.#events.fail('upstream.failed', message);
  }

  #fail(code: ErrorCode, message: string): void {
    if (this.#ended) return;
    this.destroy();
    this.#events.fail(code, message);
  }
}

/** An answer that is kept until it is complete, because it is an error or must be translated. */
class CollectedAnswer {
  readonly head: ResponseHead;
  readonly #pieces: Buffer[] = [];
  readonly #limitBytes: number;
  #bytes = 0;

  constructor(head: ResponseHead) {
    this.head = head;
    this.#limitBytes = head.status >= 300 ? ERROR_BYTES : TRANSLATED_BYTES;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#limitBytes;
  }

  add(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString('utf8', 0, Math.min(this.#bytes, this.#limitBytes));
  }
}

type SentRequest = Pick<ExchangeRequest, 'requestId' | 'head' | 'path' | 'direct' | 'trace'>;
type SentWith = Omit<AttemptRequest, 'deps' | 'requestId'> & { readonly deps: AttemptRequest['deps'] & Pick<ExchangeDeps, 'extensions'> };

/** Creates the attempt that a plan asks for: the request as it is, or a translation. */
export function createAttempt(
  plan: Exclude<ForwardPlan, { kind: 'refuse' }>,
  { requestId, head, path, direct, trace }: SentRequest,
  { deps, hold, requestBody, answer, startedAt }: SentWith,
  events: AttemptEvents,
): Attempt {
  trace?.begin('attempt', hold.slot, hold.endpoint);
  if (plan.kind === 'translate') {
    const request = { deps, hold, requestId, requestBody, answer, startedAt };
    const traceLines = trace?.linesFor('') ?? '';
    return deps.extensions.translate({ ...request, plan, asked: askedOf(path), head, traceLines }, events);
  }
  // Named one by one: spreading other objects into this one takes ten times as long.
  const forwarded: ForwardRequest = {
    deps,
    hold,
    requestId,
    requestBody,
    answer,
    startedAt,
    method: direct?.method,
    isOpaque: direct?.target !== undefined,
    mistakes: plan.mistakes,
    headerLines: trace?.linesFor(head.forwarded) ?? head.forwarded,
    path: plan.path,
    capability: path.capability,
  };
  return new Forward(forwarded, events);
}
