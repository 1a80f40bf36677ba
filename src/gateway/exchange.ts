/**
 * One request from its first byte to the end of its answer: body in, slot chosen, hold or parking, bytes through, hold back. Whatever happens,
 * it ends once: `#finish` is the only place that gives back what the exchange holds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BoardSlot, Target } from '../reconciler/board.ts';
import type { ErrorCode } from '../schema/error-codes.ts';
import type { SlotName } from '../schema/names.ts';
import { ClientAnswer } from './answer.ts';
import { RequestBody, type RequestBodyOwner } from './request-body.ts';
import type { InferencePath } from './decide/inference-paths.ts';
import type { RequestHead } from './decide/request-head.ts';
import { route } from './decide/route.ts';
import { Forward, type ForwardOwner } from './forward.ts';
import type { ActiveExchange, ExchangeDeps } from './exchange-deps.ts';
import { isSameTarget, type Hold, type Holder } from './hold.ts';
import type { Member } from './dense-set.ts';
import type { Refusal, Ticket, Waiter } from './parking.ts';

export interface ExchangeRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: InferencePath;
  readonly head: RequestHead;
  readonly requestId: string;
}

/** Times a request is sent again after a workload took it and died: more would let one poisonous prompt stall a slot. */
const RESENDS = 2;
const RETRY_FIRST_MS = 50;
const RETRY_LAST_MS = 1000;
/** A body may pause this long on its way in. */
const BODY_SILENCE_MS = 60_000;
const CLIENT_GONE = 499;

/** A class, because it is a resource with a lifetime on the hot path. */
export class Exchange implements ActiveExchange, RequestBodyOwner, Holder, ForwardOwner, Waiter {
  readonly #deps: ExchangeDeps;
  readonly #request: ExchangeRequest;
  readonly #requestBody: RequestBody;
  readonly #answer: ClientAnswer;
  readonly #startedAt = performance.now();
  readonly #member: Member<ActiveExchange>;
  #done = false;
  #bodyReady = false;
  /** Coarse milliseconds of the last piece of the body. */
  #bodyAt: number;
  #deadline = 0;
  #slot: SlotName | undefined;
  #hold: Hold | undefined;
  #forward: Forward | undefined;
  #ticket: Ticket | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #retries = 0;
  #resends = 0;
  #failedOn: Target | undefined;

  constructor(deps: ExchangeDeps, request: ExchangeRequest) {
    const { req, res, head, requestId } = request;
    this.#deps = deps;
    this.#request = request;
    this.#answer = new ClientAnswer(req, res, requestId, deps.batcher);
    this.#requestBody = new RequestBody(req, head, deps.settings, deps.budget, this);
    this.#bodyAt = deps.tick();
    this.#member = deps.active.add(this);
  }

  start(): void {
    const { res, head } = this.#request;
    res.on('close', () => this.#clientGone());
    if (head.expectsContinue && (head.contentLength ?? 0) <= this.#deps.settings.SVC_BODY_LIMIT) res.writeContinue();
    this.#requestBody.start();
  }

  /** Called about once a second with the coarse clock. */
  checkTime(now: number): void {
    if (this.#forward !== undefined) this.#forward.checkTime(now);
    else if (!this.#bodyReady && now - this.#bodyAt > BODY_SILENCE_MS) {
      this.#fail('request.timeout', `Send the body without pauses of more than ${BODY_SILENCE_MS / 1000} s`);
    }
  }

  /** Ends it because the gateway ends. */
  abandon(): void {
    this.#answer.destroy();
    this.#clientGone();
  }

  onBodyReady(): void {
    this.#bodyReady = true;
    this.onBoard();
  }

  onBodyProblem(code: ErrorCode, message: string, param: string | null): void {
    this.#fail(code, message, param);
  }

  onBodyProgress(): void {
    this.#bodyAt = this.#deps.tick();
    this.#forward?.noteProgress();
  }

  onBoard(): void {
    const { path } = this.#request;
    const { board, parking, now } = this.#deps;
    this.#ticket = undefined;
    const decision = route(path.capability, path.path, this.#requestBody.model, board.current());
    if (decision.kind === 'refuse') {
      this.#fail(decision.code, decision.message, 'model');
      return;
    }
    if (decision.kind === 'unknown') {
      this.#park(undefined, false);
      return;
    }
    const { slot } = decision;
    this.#slot = slot.name;
    parking.asked(slot.name, now());
    if (slot.admission.kind === 'open') this.onOpen(slot);
    else if (slot.admission.kind === 'park') this.#park(slot.name, false);
    else this.onRefused(slot.admission);
  }

  onOpen(slot: BoardSlot): void {
    this.#unpark();
    const { path, head, requestId } = this.#request;
    const { providers, holds, upstreams, tick, settings } = this.#deps;
    const plan = providers[slot.provider]?.infer({ method: 'POST', path: path.canonical, capability: path.capability }, slot.capabilities);
    if (plan?.kind !== 'forward') {
      this.#fail('model.unsupported', plan?.message ?? `Provider "${slot.provider}" takes no requests in this build`, 'model');
      return;
    }
    const hold = holds.acquire(slot, this, this.#failedOn);
    if (hold === undefined) {
      this.#park(slot.name, false);
      return;
    }
    this.#hold = hold;
    this.#forward = new Forward(
      {
        upstreams,
        hold,
        path: plan.path,
        headerLines: head.forwarded,
        requestId,
        requestBody: this.#requestBody,
        answer: this.#answer,
        startedAt: this.#startedAt,
        tick,
        firstByteMs: settings.SVC_FIRST_BYTE_TIMEOUT,
        silenceMs: settings.SVC_STREAM_TIMEOUT,
      },
      this,
    );
    this.#forward.start();
  }

  /** One who has just failed on an endpoint waits for another one; its own timer looks again at the same. */
  wants(slot: BoardSlot): boolean {
    const failedOn = this.#failedOn;
    return failedOn === undefined || slot.targets.some((target) => !isSameTarget(target, failedOn));
  }

  onRefused(refusal: Refusal): void {
    this.#fail(refusal.code, refusal.message);
  }

  onHoldAborted(): void {
    this.#fail('upstream.failed', 'The request was ended because its workload had to go; send it again');
  }

  onForwardDone(): void {
    this.#finish(this.#answer.status);
  }

  onForwardFailed(code: ErrorCode, message: string): void {
    this.#fail(code, message);
  }

  /** The workload is gone or going: wait for the healed one, and look again by ourselves in case it was a hiccup. */
  onForwardLost({ taken, message }: { readonly taken: boolean; readonly message: string }): void {
    const hold = this.#hold;
    if (taken) this.#resends += 1;
    if (hold === undefined || this.#resends > RESENDS) {
      this.#fail('upstream.failed', message);
      return;
    }
    this.#forward = undefined;
    this.#hold = undefined;
    this.#failedOn = hold;
    hold.release();
    this.#deps.suspect();
    this.#park(hold.slot, true);
    if (this.#done) return;
    // Another replica answers, if there is one: each is tried once without a pause.
    const others = (this.#deps.board.current().slots.get(hold.slot)?.targets.length ?? 0) - 1;
    const delay = this.#retries < others ? 0 : Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** Math.min(this.#retries, 10));
    this.#retries += 1;
    this.#retryTimer = setTimeout(() => this.#lookAgain(hold.slot), delay);
  }

  #lookAgain(name: SlotName): void {
    const slot = this.#deps.board.current().slots.get(name);
    if (slot?.admission.kind === 'open') this.onOpen(slot);
    // Not open: the publication that opens it lets this one in, whichever workload answers then.
    else this.#failedOn = undefined;
  }

  #park(slot: SlotName | undefined, again: boolean): void {
    const { parking, now, settings } = this.#deps;
    if (this.#deadline === 0) this.#deadline = now() + settings.SVC_PARK_TIMEOUT;
    const ticket = parking.enter(slot, this, { deadline: this.#deadline, again });
    const what = slot === undefined ? 'the service' : `slot "${slot}"`;
    if (ticket === 'queue-full') {
      this.#fail('slot.queue_full', `Try again later: ${settings.SVC_PARK_LIMIT} requests wait for ${what} already ("SVC_PARK_LIMIT")`);
    } else if (ticket === 'too-late') {
      this.#fail(
        'slot.loading',
        `Try again later: ${what} did not come back within ${settings.SVC_PARK_TIMEOUT / 1000} s ("SVC_PARK_TIMEOUT")`,
      );
    } else this.#ticket = ticket;
  }

  #unpark(): void {
    this.#ticket?.leave();
    this.#ticket = undefined;
    if (this.#retryTimer !== undefined) clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
  }

  #clientGone(): void {
    if (!this.#done) this.#finish(this.#answer.started ? this.#answer.status : CLIENT_GONE);
  }

  /** Says what went wrong in whatever way is left. */
  #fail(code: ErrorCode, message: string, param: string | null = null): void {
    if (this.#done) return;
    if (this.#answer.started) this.#answer.cut(code, message);
    else this.#answer.refuse(code, message, param);
    this.#finish(this.#answer.status);
  }

  #finish(status: number): void {
    if (this.#done) return;
    this.#done = true;
    const { active, report } = this.#deps;
    active.remove(this.#member);
    this.#unpark();
    this.#forward?.destroy();
    this.#hold?.release();
    this.#requestBody.release();
    report({
      slot: this.#slot,
      path: this.#request.path.path,
      status,
      seconds: (performance.now() - this.#startedAt) / 1000,
      ttftSeconds: this.#forward?.ttftMs === undefined ? undefined : this.#forward.ttftMs / 1000,
      tokens: this.#forward?.usage(),
    });
  }
}
