/**
 * One inference request from its first byte to the end of its answer. `api/server/hot-path.ts` has found the route,
 * checked the access and calls `Gateway.handle`, which creates an exchange and starts it. From then on each part
 * reports an event of `RequestEvents` when its work is done:
 *
 *   start ─► body in        RequestBody reads until `model` is known                       onRoutable
 *            route          decide/route.ts picks a slot on the board, or refuses
 *            hold or park   slot open: Holds.acquire; loading, full: ParkedRequest.park    onOpen, onRoutable
 *            attempt        Forward sends to one endpoint and passes the answer on         onDone
 *            │   └─ lost    no answer came: release the hold, park, and resend             onLost ─► onOpen
 *            │   └─ cause fall-back.ts names another slot: leave this one, and hold or park there
 *            finish         release hold, ticket, body and connection; report once
 *
 * Each part calls `fail` instead if the request cannot go on. Besides, `checkTimeouts` is called about once a second,
 * `onStopping` when the reconciler ends the workload (which loses the attempt), and `#clientGone` when the client
 * disconnects. Whatever happens first, `#finish` runs exactly once and is the only place that releases what the
 * exchange holds.
 */
import type { Member } from '../platform/dense-set.ts';
import type { RoutedSlot } from '../reconciler/board.ts';
import type { ErrorCode } from '../schema/words/error-codes.ts';
import { isPassedOn } from '../remote/decide/judge-remote.ts';
import { presetOf } from '../schema/slot/presets.ts';
import type { SlotName } from '../schema/words/names.ts';
import { createAttempt } from './upstream/forward.ts';
import { CallerGate } from './caller-gate.ts';
import { ClientAnswer } from './client-answer.ts';
import { opaqueBody, type BodyScan } from './body/body-scan.ts';
import { JsonBody } from './body/json-body.ts';
import { givePreset, isNamed } from './body/apply-preset.ts';
import { conversationOf } from './body/conversation-start.ts';
import { RequestBody } from './body/request-body.ts';
import { CLIENT_GONE, describeRunning, secondsOf, STOPPED, type ActiveExchange, type RunningRequest } from './exchange-deps.ts';
import { LEAST_ERROR, LEAST_SERVER_ERROR, type ExchangeDeps, type ExchangeRequest } from './exchange-deps.ts';
import { FallbackJourney } from './fallback-journey.ts';
import type { Attempt, Hold, LostAttempt, RequestEvents } from './request-events.ts';
import { OPENAI } from './route/decide/dialects.ts';
import { causeOf, CROWDED, NOT_LOADED, type FallbackCause } from './route/decide/fall-back.ts';
import { bodyLimitOf, slowBody } from './route/decide/request-limits.ts';
import { planRequest, refuseUse, routeRequest } from './route/decide/route.ts';
import type { Claim } from './traffic/decide/turns.ts';
import { ParkedRequest } from './traffic/parked-request.ts';

// oxlint-disable-next-line house/function-length -- One state machine over a request on its way through slots: every event may meet every state
export class Exchange implements ActiveExchange, RequestEvents {
  readonly #deps: ExchangeDeps;
  readonly #request: ExchangeRequest;
  readonly #scan: BodyScan;
  readonly #requestBody: RequestBody;
  readonly #answer: ClientAnswer;
  readonly #startedAt = performance.now();
  readonly #member: Member<ActiveExchange>;
  #finished = false;
  #bodyReady = false;
  /** Coarse milliseconds at which the last piece of the body arrived. */
  #bodyAt: number;
  #slot: SlotName | undefined;
  #hold: Hold | undefined;
  #attempt: Attempt | undefined;
  #parked: ParkedRequest | undefined;
  /** Undefined where the slot declares no fallback. */
  #journey: FallbackJourney | undefined;
  readonly #caller: CallerGate;

  constructor(deps: ExchangeDeps, request: ExchangeRequest) {
    this.#deps = deps;
    this.#request = request;
    const { req, res, path, head, requestId, direct } = request;
    this.#answer = new ClientAnswer({ req, res, requestId, dialect: path.dialect ?? OPENAI }, deps.batcher);
    this.#caller = new CallerGate(deps, request, this.#answer);
    const scan = direct === undefined ? (deps.extensions.scanBody(path, head) ?? new JsonBody()) : opaqueBody(direct.model);
    this.#scan = scan;
    this.#requestBody = new RequestBody({ req, head, scan, limit: bodyLimitOf(path, deps.settings) }, deps, this);
    this.#bodyAt = deps.tick();
    this.#member = deps.active.add(this);
  }

  start(): void {
    const { res, head, path } = this.#request;
    res.on('close', () => this.#clientGone());
    if (head.expectsContinue && (head.contentLength ?? 0) <= bodyLimitOf(path, this.#deps.settings).wholeBytes) res.writeContinue();
    this.#requestBody.start();
  }

  checkTimeouts(now: number): void {
    const slow = this.#slowBody(now);
    if (slow === undefined) this.#attempt?.checkTimeouts(now);
    else this.fail('request.timeout', slow);
  }

  /** Judges the client only while its body is what the request waits for, and not a slot or the upstream. */
  #slowBody(now: number): string | undefined {
    if (this.#requestBody.isHeldBack) this.#bodyAt = now;
    if (
      this.#request.req.complete ||
      this.#answer.started ||
      (this.#bodyReady && !this.#requestBody.isAwaited && this.#attempt === undefined)
    )
      return undefined;
    return slowBody({ now, startedAt: this.#startedAt, lastAt: this.#bodyAt, bytes: this.#requestBody.received });
  }

  abandon(): void {
    this.#answer.destroy();
    this.#clientGone();
  }

  cancel(): void {
    this.fail('request.cancelled', 'An operator has cancelled the request');
  }

  look(): RunningRequest {
    return describeRunning(this.#request, this.#startedAt, { slot: this.#slot, isRead: this.#bodyReady, attempt: this.#attempt });
  }

  onProgress(): void {
    this.#bodyAt = this.#deps.tick();
    this.#attempt?.noteProgress();
  }

  onRoutable(): void {
    this.#bodyReady = true;
    if (this.#caller.admits(this.#requestBody, this)) this.#route();
  }

  #route(): void {
    const { path, direct } = this.#request;
    const { providers, applyPreset } = this.#deps;
    const view = this.#caller.view();
    const chosen = this.#journey && view.slots.get(this.#journey.slot);
    if (chosen !== undefined) return this.#enter(chosen);
    const decision = routeRequest(path, this.#requestBody.model, view, this.#caller.models);
    if (decision.kind === 'refuse') return this.fail(decision.code, decision.message, 'model');
    if (decision.kind === 'unknown') return this.#park(undefined);
    const { slot } = decision;
    this.#slot = slot.name;
    // A preset that is edited later does not change a request that waits.
    const found = direct === undefined && !this.#requestBody.isEdited ? presetOf(slot, this.#requestBody.model) : undefined;
    const refused = refuseUse(this.#scan, { path, slot, found }, view, providers);
    if (refused !== undefined) return this.fail(refused.code, refused.message, refused.param);
    if (found !== undefined && !givePreset(found, this.#requestBody, applyPreset)) return;
    if (!this.#caller.capOutput(this.#requestBody)) return;
    const plan = path.native === true ? planRequest(this.#request, slot, this.#deps) : undefined;
    if (plan?.kind === 'refuse') return this.fail(plan.code, plan.message, plan.param);
    if (slot.spec.fallback === undefined || path.native === true || direct !== undefined) this.#enter(slot);
    else this.#enter(this.#startJourney(slot));
  }

  #startJourney(asked: RoutedSlot): RoutedSlot {
    const { capability } = this.#request.path;
    const isAble = (slot: RoutedSlot): boolean =>
      this.#caller.view().slots.has(slot.name) &&
      slot.capabilities.includes(capability) &&
      planRequest(this.#request, slot, this.#deps).kind !== 'refuse' &&
      refuseUse(this.#scan, { path: this.#request.path, slot }, this.#caller.view(), this.#deps.providers) === undefined;
    this.#journey = new FallbackJourney(this.#deps, asked.name, isAble);
    this.#answer.keepsErrors = true;
    return this.#journey.start(asked, conversationOf(this.#request, this.#scan) ?? this.#request.requestId);
  }

  /** Holds or parks the request at a slot, unless it goes to another one. */
  #enter(slot: RoutedSlot): void {
    const { name, admission } = slot;
    const { traffic, now } = this.#deps;
    this.#slot = name;
    traffic.parking.noteDemand(name, now());
    if (this.#journey !== undefined) {
      this.#answer.headers = this.#journey.headers();
      const isLoading = admission.kind === 'park';
      if (admission.kind !== 'refuse' && (this.fallBack(CROWDED) || (isLoading && this.fallBack(NOT_LOADED)))) return;
    }
    if (admission.kind === 'open') this.onOpen(slot);
    else if (admission.kind === 'park') this.#park(name);
    else this.fail(admission.code, admission.message);
  }

  get claim(): Claim {
    return this.#caller.claim(this.#requestBody.received);
  }

  get leavesQueueAfterMs(): number {
    return this.#journey?.leavesQueueAfterMs ?? Number.POSITIVE_INFINITY;
  }

  /** Not for another service: it may send the request elsewhere, and looks at the status for that. */
  get commented(): ClientAnswer | undefined {
    const { path, head } = this.#request;
    return path.streams === true && this.#scan.isStreamed === true && !isPassedOn(head.forwarded) ? this.#answer : undefined;
  }

  /** Only before the first byte of an answer, and with a body that can be sent again. */
  fallBack(cause: FallbackCause): boolean {
    const from = this.#slot;
    if (this.#journey === undefined || from === undefined || this.#answer.started || !this.#requestBody.resendable) return false;
    const next = this.#journey.next(cause);
    if (next === undefined) return false;
    this.#leaveSlot(cause.kind === 'upstream.failed');
    this.#attempt = undefined;
    this.#hold = undefined;
    this.#parked?.moveOn();
    this.#answer.kept = undefined;
    const { parking } = this.#deps.traffic;
    // The slot goes on loading, although nobody waits for it any more.
    if (cause.kind === 'loading' && parking.waiting(from) === 0) parking.ask(from, this.#request.caller?.key);
    this.#enter(next);
    return true;
  }

  onOpen(slot: RoutedSlot): void {
    const plan = planRequest(this.#request, slot, this.#deps);
    if (plan.kind === 'refuse') return this.fail(plan.code, plan.message, plan.param);
    if (this.#scan.delaysAttempt?.(slot, this.#requestBody, this) === true) return;
    if (slot.spec.remote !== undefined && !isNamed(slot.spec.remote, this.#request.direct, this.#requestBody, this.#deps)) return;
    // The workload of a slot that the request has left concerns only the attempt there.
    const holder = this.#journey === undefined ? this : { onStopping: () => attempt.giveUp(STOPPED) };
    const hold = this.#deps.traffic.holds.acquire(slot, holder, this.#parked?.failedOn, conversationOf(this.#request, this.#scan));
    if (hold === undefined) return this.#park(slot.name);
    this.#hold = hold;
    const sent = { deps: this.#deps, hold, requestBody: this.#requestBody, answer: this.#answer, startedAt: this.#startedAt };
    const attempt = createAttempt(plan, this.#request, sent, this);
    this.#attempt = attempt;
    attempt.start();
  }

  onStopping(): void {
    this.#attempt?.giveUp(STOPPED);
  }

  onDone(): void {
    if (this.#answer.kept !== undefined && this.fallBack({ kind: 'upstream.failed' })) return;
    this.#answer.kept?.();
    this.#finish(this.#answer.status);
  }

  onLost(lost: LostAttempt): void {
    this.#attempt = undefined;
    lost.hold.release(true);
    this.#request.trace?.end(true);
    this.#parked ??= new ParkedRequest(this.#deps, this, this.#request.trace);
    this.#parked.retry(lost);
    this.#requestBody.keepReading();
  }

  /** Sends the error as the answer or inside a stream that has begun, or cuts the connection. */
  fail(code: ErrorCode, message: string, param: string | null = null): void {
    if (this.#finished) return;
    if (this.#journey !== undefined && this.#slot !== undefined) {
      const cause = causeOf(code, this.#deps.board.current().slots.get(this.#slot));
      if (cause !== undefined && (cause.kind === 'stalled' || this.#attempt !== undefined) && this.fallBack(cause)) return;
    }
    if (this.#answer.started) this.#answer.abort(code, message);
    else this.#answer.refuse(code, message, param);
    this.#finish(this.#answer.status);
  }

  #park(slot: SlotName | undefined): void {
    this.#parked ??= new ParkedRequest(this.#deps, this, this.#request.trace);
    this.#parked.park(slot);
    this.#requestBody.keepReading();
  }

  #clientGone(): void {
    if (!this.#finished) this.#finish(this.#answer.started ? this.#answer.status : CLIENT_GONE);
  }

  #finish(status: number): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#deps.active.remove(this.#member);
    this.#leaveSlot(status >= LEAST_SERVER_ERROR);
    this.#requestBody.release();
    const counts = this.#attempt?.counts();
    this.#caller.settle({ tokens: counts?.tokens, isServed: this.#attempt !== undefined && status < LEAST_ERROR });
    this.#deps.report({
      slot: this.#slot,
      requestId: this.#request.requestId,
      caller: this.#request.caller?.key,
      route: this.#request.path.path,
      status,
      code: this.#answer.code,
      seconds: (performance.now() - this.#startedAt) / 1000,
      parkedSeconds: secondsOf(this.#parked?.waitedMs),
      ttftSeconds: this.#answer.streamed && status < LEAST_ERROR ? secondsOf(this.#attempt?.ttftMs) : undefined,
      blockedSeconds: secondsOf(this.#answer.blockedMs),
      tokens: counts?.tokens,
      media: counts?.media,
      moves: this.#journey?.moves,
      trace: this.#request.trace?.finish(this.#request.req.method, this.#requestBody.model),
    });
  }

  #leaveSlot(failed: boolean): void {
    this.#parked?.leave();
    this.#request.trace?.end();
    const hold = this.#hold;
    const leaving = this.#attempt?.destroy();
    if (leaving === undefined) hold?.release(failed);
    else void leaving.finally(() => hold?.release(failed));
  }
}
