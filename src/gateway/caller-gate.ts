/** What the limits of its caller mean for one request: whether it is admitted, what it sees, how long its answer is. */
import type { RoutedView } from '../reconciler/board.ts';
import type { RequestBody } from './body/request-body.ts';
import type { ClientAnswer } from './client-answer.ts';
import type { ExchangeDeps, ExchangeRequest } from './exchange-deps.ts';
import type { RequestEvents } from './request-events.ts';
import type { AdmittedRequest, RefusedRequest } from './traffic/admit-caller.ts';
import { estimateWork, type Claim } from './traffic/decide/turns.ts';

type GateDeps = Pick<ExchangeDeps, 'board' | 'admitCaller' | 'applyPreset' | 'outputCap' | 'visibleTo'>;

export class CallerGate {
  readonly #deps: GateDeps;
  readonly #request: Pick<ExchangeRequest, 'caller' | 'head' | 'path' | 'direct'>;
  readonly #answer: ClientAnswer;
  /** Undefined before the limits were looked at; null if there are none that count. */
  #admitted: AdmittedRequest | null | undefined;
  #isAsking = false;
  #isOver = false;
  #isCapped = false;

  constructor(deps: GateDeps, request: ExchangeRequest, answer: ClientAnswer) {
    this.#deps = deps;
    this.#request = request;
    this.#answer = answer;
  }

  /** Undefined: all. */
  get models(): readonly string[] | undefined {
    return this.#request.caller?.limits?.models;
  }

  claim(receivedBytes: number): Claim {
    const { caller, head } = this.#request;
    const { weight = 1, priority = 'normal' } = caller?.limits ?? {};
    return { caller: caller?.key ?? '', weight, priority, work: estimateWork(head.contentLength ?? receivedBytes) };
  }

  /** The board without what the caller may not use. */
  view(): RoutedView {
    return this.#deps.visibleTo(this.#deps.board.current(), this.models);
  }

  /** Returns false if `onRoutable` follows, or if the request has failed. */
  admits(body: RequestBody, events: Pick<RequestEvents, 'onRoutable' | 'fail'>): boolean {
    if (this.#admitted !== undefined) return true;
    if (this.#isAsking) return false;
    const { caller, head } = this.#request;
    const admitted = this.#deps.admitCaller(caller, head.contentLength ?? body.received);
    if (!(admitted instanceof Promise)) return this.#take(admitted, events);
    this.#isAsking = true;
    admitted.then(
      (late) => {
        if (this.#take(late, events)) events.onRoutable();
      },
      (error: unknown) => events.fail('server.internal', `The limits of the caller cannot be read: ${String(error)}`),
    );
    return false;
  }

  /** Returns false if the rest of the body must be read first, or the request has failed. */
  capOutput(body: RequestBody): boolean {
    const { caller, path, direct } = this.#request;
    const most = caller?.limits?.max_output_tokens;
    if (most === undefined || this.#isCapped || direct !== undefined) return true;
    const { outputCap, applyPreset } = this.#deps;
    const cap = outputCap(path.path, most);
    this.#isCapped = cap === undefined || body.give(cap, 'A form has no limit of output tokens', applyPreset);
    return this.#isCapped;
  }

  /** The request has ended. Call this once. */
  settle(use: Parameters<AdmittedRequest['settle']>[0]): void {
    this.#isOver = true;
    this.#admitted?.settle(use);
  }

  #take(admitted: AdmittedRequest | RefusedRequest | null, events: Pick<RequestEvents, 'fail'>): boolean {
    if (this.#isOver) {
      if (admitted?.kind === 'admitted') admitted.settle({ tokens: undefined, isServed: false });
      return false;
    }
    if (admitted !== null) this.#answer.limitLines = admitted.headerLines;
    if (admitted?.kind === 'refuse') {
      events.fail(admitted.code, admitted.message);
      return false;
    }
    this.#admitted = admitted;
    return true;
  }
}
