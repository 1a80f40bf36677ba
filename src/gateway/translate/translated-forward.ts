/**
 * An attempt to answer a request by a translation of the provider. It begins when the whole body has been read, and
 * ends in one of these ways:
 *
 *   start ─► body complete ─► run the steps ─┬─► the translation ends                                    onDone, fail
 *                                            ├─► the server dies before anything was written: run again   onLost
 *                                            ├─► it throws, breaks a rule, or times out: `upstream.failed` fail
 *                                            └─► the client leaves                                        destroy
 *
 * In the last two ways the server is sent what the translation named in `on-leave`, and a request that must finish is
 * read to its end. In all of them but the second, it is then sent what the translation named in `on-end`. The hold
 * lasts until then.
 */
import { randomBytes } from 'node:crypto';
import type { TranslationEnd, UpstreamAnswer, UpstreamRequest } from '../../providers/translation.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { TranslatedRequest } from '../exchange-deps.ts';
import type { Attempt, AttemptEvents } from '../request-events.ts';
import type { BufferBudget } from '../traffic/traffic.ts';
import { judgeAnswer } from '../upstream/decide/judge-answer.ts';
import { originOf } from '../upstream/decide/request-head.ts';
import { passedLimit } from '../route/decide/request-limits.ts';
import { readTranslatableBody, TranslatedAnswer } from './translated-answer.ts';
import { bufferOf } from '../../platform/read-body.ts';
import { TranslationRun, type KeepImage } from './translation-run.ts';
import { UpstreamBroken, UpstreamLost, UpstreamCall, type UpstreamCallDeps } from './upstream-call.ts';
import type { Settings } from '../../schema/settings/settings.ts';

export interface TranslationDeps {
  readonly keepImage: KeepImage;
  readonly onFault: (fault: unknown, requestId: string) => void;
}

const EMPTY = Buffer.alloc(0);

export class TranslatedForward implements Attempt {
  readonly #request: TranslatedRequest;
  readonly #deps: TranslationDeps;
  readonly #events: AttemptEvents;
  readonly #ending = new AbortController();
  readonly #leaving = new AbortController();
  readonly #answer: TranslatedAnswer;
  readonly #memory: ReturnType<typeof createReservation>;
  readonly #callDeps: UpstreamCallDeps;
  readonly #run: TranslationRun;
  #bodyAt: number | undefined;
  #progressAt: number;
  #completed = false;

  constructor(request: TranslatedRequest, deps: TranslationDeps, events: AttemptEvents) {
    this.#request = request;
    this.#deps = deps;
    this.#events = events;
    this.#answer = new TranslatedAnswer(request);
    this.#memory = createReservation(request.deps.budget);
    this.#progressAt = request.deps.tick();
    this.#callDeps = callDepsOf(request, (what) => this.#onProgress(what));
    this.#run = new TranslationRun({
      ...this.#callDeps,
      begin: (head) => this.#answer.begin(head),
      write: (bytes) => this.#answer.write(bytes),
      ...this.#memory,
      keepImage: (next, status) => deps.keepImage(next, status, originOf(request.head)),
      onReport: (progress) => request.hold.report(progress),
      signal: this.#ending.signal,
    });
  }

  get ttftMs(): number | undefined {
    return this.#answer.ttftMs;
  }

  start(): void {
    this.#request.requestBody.whenWhole(() => {
      this.#bodyAt = this.#request.deps.tick();
      this.#perform().catch((error: unknown) => this.#onError(error));
    });
  }

  noteProgress(): void {
    this.#progressAt = this.#request.deps.tick();
  }

  counts() {
    return this.#answer.counts();
  }

  giveUp(message: string): void {
    if (this.#isEnded()) this.#leaving.abort();
    else this.#lose(false, message);
  }

  destroy(): Promise<void> | undefined {
    if (this.#isEnded()) return undefined;
    this.#end();
    const { call, onLeave, onEnd } = this.#run;
    const rest = { settings: this.#request.deps.settings, signal: this.#leaving.signal };
    if (this.#completed) call?.destroy();
    const left = this.#completed ? { call: undefined, requests: onEnd } : { call, requests: [...onLeave, ...onEnd] };
    return leaveUpstream(this.#callDeps, { ...left, ...rest });
  }

  checkTimeouts(now: number): void {
    const state = { bodyAt: this.#bodyAt, wroteAt: this.#answer.wroteAt, isConnecting: this.#run.call?.isConnected === false };
    const passed = passedLimit({ now, progressAt: this.#progressAt, ...state }, this.#request.deps.settings);
    if (passed?.kind === 'lost') this.#lose(false, passed.message);
    else if (passed !== undefined) this.#fail(passed.code, passed.message);
  }

  async #perform(): Promise<void> {
    const { plan, asked, requestBody, requestId } = this.#request;
    const body = await readTranslatableBody(requestBody, plan.maxJsonBytes);
    if (body === undefined || this.#isEnded()) return;
    if (body.kind === 'refuse') return this.#finish(body);
    const boundary = `svc-${randomBytes(18).toString('hex')}`;
    const end = await this.#run.perform(plan.run({ ...asked, requestId, receivedAt: Math.floor(Date.now() / 1000), boundary, body }));
    if (end !== undefined && !this.#isEnded()) this.#finish(end);
  }

  #finish(end: TranslationEnd): void {
    switch (end.kind) {
      case 'answer': {
        const bytes = bufferOf(end.body);
        this.#answer.begin(end, bytes.length);
        return this.#complete(bytes);
      }
      case 'written':
        return this.#complete(EMPTY);
      case 'upstream-error':
        return this.#upstreamError(end.answer);
      case 'refuse':
      case 'failed':
        // The translation itself has ended, so nothing is left to be cleaned up.
        this.#completed = true;
        if (end.kind === 'failed') this.#events.fail('upstream.failed', end.message);
        else this.#events.fail(end.code, end.message, end.param);
        return;
      default:
        end satisfies never;
    }
  }

  #upstreamError({ status, headers, body }: UpstreamAnswer): void {
    const { answer, requestId, requestBody, plan } = this.#request;
    const { mistakes } = plan;
    const verdict = judgeAnswer({ status, text: Buffer.from(body).toString('utf8'), mistakes }, answer.dialect, requestId);
    if (verdict.kind !== 'error' && verdict.kind !== 'loading')
      throw new TypeError(`An answer with status ${status} is no error of the upstream`);
    const { error } = verdict.body;
    this.#completed = true;
    if (answer.started) this.#events.fail('upstream.failed', error.message);
    else if (verdict.kind === 'loading' && requestBody.resendable) this.#lose(false, error.message);
    else {
      answer.upstreamError({ status: verdict.kind === 'error' ? verdict.status : status, headers: [...headers].flat() }, error);
      this.#events.onDone();
    }
  }

  #complete(last: Buffer): void {
    this.#answer.end(last);
    this.#completed = true;
    this.#events.onDone();
  }

  #onProgress(what: 'sent' | 'heard'): void {
    this.noteProgress();
    if (what === 'heard') this.#request.hold.heard();
  }

  #onError(error: unknown): void {
    if (this.#isEnded()) return;
    const { requestId } = this.#request;
    if (error instanceof UpstreamLost) this.#lose(error.accepted, error.message);
    else if (error instanceof UpstreamBroken) this.#fail('upstream.failed', error.message);
    else {
      this.#deps.onFault(error, requestId);
      this.#fail('upstream.failed', `The request or its answer could not be translated: report this with the request id "${requestId}"`);
    }
  }

  #lose(accepted: boolean, message: string): void {
    if (this.#isEnded()) return;
    this.#end();
    this.#run.call?.destroy();
    const { requestBody, answer, hold } = this.#request;
    if (requestBody.resendable && !answer.started) this.#events.onLost({ hold, accepted, message });
    else this.#events.fail('upstream.failed', message);
  }

  #fail(code: ErrorCode, message: string): void {
    // The exchange destroys the attempt.
    if (!this.#isEnded()) this.#events.fail(code, message);
  }

  #isEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  #end(): void {
    this.#ending.abort();
    this.#memory.release();
  }
}

function callDepsOf(
  { deps, hold, requestId, requestBody, traceLines }: TranslatedRequest,
  onProgress: UpstreamCallDeps['onProgress'],
): UpstreamCallDeps {
  const readBody: UpstreamCallDeps['readBody'] = (from, bytes) => requestBody.read(from, bytes);
  return { upstreams: deps.upstreams, endpoint: hold.endpoint, requestId, traceLines, readBody, onProgress };
}

/** Bytes of a budget that are reserved step by step, and released at the end at the latest. */
function createReservation(budget: BufferBudget) {
  let reserved = 0;
  const unreserve = (bytes: number): void => {
    const released = Math.min(bytes, reserved);
    reserved -= released;
    budget.release(released);
  };
  return {
    reserve(bytes: number): boolean {
      const isReserved = budget.reserve(bytes);
      if (isReserved) reserved += bytes;
      return isReserved;
    },
    unreserve,
    release: () => unreserve(reserved),
  };
}

/** Leaves the server: reads a request that must finish, then sends what the translation set. */

interface Leaving {
  readonly call: UpstreamCall | undefined;
  readonly requests: readonly UpstreamRequest[];
  readonly settings: Pick<Settings, 'SVC_FIRST_BYTE_TIMEOUT'>;
  readonly signal: AbortSignal;
}

/** Requests that cancel or forget something are answered at once. */
const LEAVE_MS = 5000;

/** Returns undefined if there is nothing to do. The promise never rejects. */
function leaveUpstream(deps: UpstreamCallDeps, { call, requests, settings, signal }: Leaving): Promise<void> | undefined {
  const mustFinish = call?.request.mustFinish === true && call.isSent ? call : undefined;
  if (mustFinish === undefined) call?.destroy();
  if (mustFinish === undefined && requests.length === 0) return undefined;
  const withinMs = mustFinish === undefined ? LEAVE_MS : settings.SVC_FIRST_BYTE_TIMEOUT;
  const others = requests.values().map((request) => new UpstreamCall(request, deps));
  return finish(mustFinish, others, AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
}

async function finish(mustFinish: UpstreamCall | undefined, others: Iterable<UpstreamCall>, stop: AbortSignal): Promise<void> {
  let current = mustFinish;
  const stopped = Promise.withResolvers<void>();
  const end = (): void => {
    current?.destroy();
    stopped.resolve();
  };
  stop.addEventListener('abort', end, { once: true });
  if (stop.aborted) end();
  if (current !== undefined) await Promise.race([stopped.promise, readAll(current)]);
  for (const call of others) {
    if (stop.aborted) break;
    current = call;
    await Promise.race([stopped.promise, readAll(call, true)]);
  }
  stop.removeEventListener('abort', end);
}

/** Never rejects: if the server is gone, or the request is malformed, nothing is left to be cancelled. */
async function readAll(call: UpstreamCall, isNew = false): Promise<void> {
  try {
    if (isNew) call.start();
    while ((await call.next()) !== undefined);
  } catch {}
}
