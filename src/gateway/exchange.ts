/**
 * One inference request from its first byte to the end of its answer. `api/server/hot-path.ts` has found the route, checked the access and calls `Gateway.handle`,
 * which creates an exchange and starts it. From then on each part calls back when its work is done:
 *
 *   start ─► body in        RequestBody reads until `model` is known                       onBodyReady
 *            route          decide/route.ts picks a slot on the board, or refuses
 *            hold or park   slot open: Holds.acquire; slot loading: ParkedRequest.park     onOpen, onFirstBoard
 *            voice          of speech: spoken-voice.ts may first change the body           onFirstBoard
 *            forward        Forward sends to one endpoint and passes the answer on         onAttemptDone
 *            │   └─ lost    no answer came: release the hold, park, and resend             onAttemptLost ─► onOpen
 *            finish         release hold, ticket, body and connection; report once
 *
 * Each part calls `fail` instead if the request cannot go on. Besides, `checkTimeouts` is called about once a second, `onHoldAborted` when the reconciler ends
 * the workload (which loses the attempt), and `#clientGone` when the client disconnects. Whatever happens first, `#finish` runs exactly once and is the only place that
 * releases what the exchange holds.
 */
import type { RoutedSlot } from '../reconciler/board.ts';
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { SlotName } from '../schema/words/names.ts';
import { ClientAnswer } from './answer.ts';
import type { ClientRequest, ClientResponse, RequestBodyOwner } from './client-exchange.ts';
import { RequestBody } from './body/request-body.ts';
import { bodyLimitOf, BODY_SILENCE_MS } from './route/decide/request-limits.ts';
import { OPENAI } from './route/decide/dialects.ts';
import type { InferencePath } from './route/decide/inference-paths.ts';
import type { RequestHead } from './upstream/decide/request-head.ts';
import { route, planForward, type ForwardPlan } from './route/decide/route.ts';
import type { Attempt, AttemptOwner } from './attempt.ts';
import { createBodyScan } from './body/create-body-scan.ts';
import type { ActiveExchange, ExchangeDeps } from './exchange-deps.ts';
import type { Hold, Holder } from './traffic/hold.ts';
import type { Member } from '../platform/dense-set.ts';
import { SpokenVoice, type SpokenVoiceOwner } from './translate/spoken-voice.ts';
import { ParkedRequest, type LostAttempt, type ParkedRequestOwner } from './traffic/parked-request.ts';
import type { InferRequest } from '../providers/provider.ts';
import { Forward, type ForwardRequest } from './forward.ts';
import { TranslatedForward } from './translate/translated-forward.ts';

export interface ExchangeRequest {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly path: InferencePath;
  readonly head: RequestHead;
  readonly requestId: string;
}

/** Reported, never sent: nginx's code for a client that disconnected before the answer. */
const CLIENT_GONE = 499;

/** A class, because it is a resource with a lifetime on the hot path. */
export class Exchange implements ActiveExchange, RequestBodyOwner, Holder, AttemptOwner, ParkedRequestOwner {
  readonly #deps: ExchangeDeps;
  readonly #request: ExchangeRequest;
  readonly #requestBody: RequestBody;
  readonly #answer: ClientAnswer;
  readonly #startedAt = performance.now();
  readonly #member: Member<ActiveExchange>;
  readonly #voice: SpokenVoice | undefined;
  #finished = false;
  #bodyReady = false;
  /** Coarse milliseconds at which the last piece of the body arrived. */
  #bodyAt: number;
  #slot: SlotName | undefined;
  #hold: Hold | undefined;
  #attempt: Attempt | undefined;
  /** Undefined until the request waits for the first time. */
  #parked: ParkedRequest | undefined;

  constructor(deps: ExchangeDeps, request: ExchangeRequest) {
    this.#deps = deps;
    this.#request = request;
    this.#answer = openAnswer(deps, request);
    ({ requestBody: this.#requestBody, voice: this.#voice } = openBody(deps, request, this));
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
    if (this.#attempt !== undefined) this.#attempt.checkTimeouts(now);
    else if (!this.#bodyReady && now - this.#bodyAt > BODY_SILENCE_MS) {
      this.fail('request.timeout', `Send the body without pauses of more than ${BODY_SILENCE_MS / 1000} s`);
    }
  }

  abandon(): void {
    this.#answer.destroy();
    this.#clientGone();
  }

  onBodyReady(): void {
    this.#bodyReady = true;
    this.#route();
  }

  onBodyProgress(): void {
    this.#bodyAt = this.#deps.tick();
    this.#attempt?.noteProgress();
  }

  onFirstBoard(): void {
    this.#route();
  }

  #route(): void {
    const { path } = this.#request;
    const { board, traffic, now } = this.#deps;
    const decision = route(path.capability, path.path, this.#requestBody.model, board.current());
    if (decision.kind === 'refuse') {
      this.fail(decision.code, decision.message, 'model');
      return;
    }
    if (decision.kind === 'unknown') {
      this.#park(undefined);
      return;
    }
    const { slot } = decision;
    this.#slot = slot.name;
    traffic.parking.noteDemand(slot.name, now());
    if (slot.admission.kind === 'open') this.onOpen(slot);
    else if (slot.admission.kind === 'park') this.#park(slot.name);
    else this.fail(slot.admission.code, slot.admission.message);
  }

  onOpen(slot: RoutedSlot): void {
    const { path, head, requestId } = this.#request;
    const { providers, traffic } = this.#deps;
    const asked = { method: 'POST', path: path.canonical ?? path.path, capability: path.capability };
    const plan = planForward(providers[slot.spec.provider], asked, slot);
    if (plan.kind === 'refuse') {
      this.fail(plan.code, plan.message, plan.param);
      return;
    }
    if (this.#voice?.delays(slot) === true) return;
    const hold = traffic.holds.acquire(slot, this, this.#parked?.failedOn);
    if (hold === undefined) {
      this.#park(slot.name);
      return;
    }
    this.#hold = hold;
    this.#attempt = createAttempt(
      plan,
      {
        deps: this.#deps,
        hold,
        requestId,
        requestBody: this.#requestBody,
        answer: this.#answer,
        startedAt: this.#startedAt,
        asked,
        headerLines: head.forwarded,
      },
      this,
    );
    this.#attempt.start();
  }

  onHoldAborted(): void {
    this.#attempt?.giveUp('Send the request again: its workload was stopped before the answer was complete');
  }

  onAttemptDone(): void {
    this.#finish(this.#answer.status);
  }

  onAttemptLost(lost: LostAttempt): void {
    this.#attempt = undefined;
    lost.hold.release();
    this.#parked ??= new ParkedRequest(this.#deps, this);
    this.#parked.retry(lost);
    this.#requestBody.keepReading();
  }

  /** Sends the error in the way that is still possible: as the answer, inside a stream that has begun, or by cutting the connection. */
  fail(code: ErrorCode, message: string, param: string | null = null): void {
    if (this.#finished) return;
    if (this.#answer.started) this.#answer.abort(code, message);
    else this.#answer.refuse(code, message, param);
    this.#finish(this.#answer.status);
  }

  #park(slot: SlotName | undefined): void {
    this.#parked ??= new ParkedRequest(this.#deps, this);
    this.#parked.park(slot);
    this.#requestBody.keepReading();
  }

  #clientGone(): void {
    if (!this.#finished) this.#finish(this.#answer.started ? this.#answer.status : CLIENT_GONE);
  }

  #finish(status: number): void {
    if (this.#finished) return;
    this.#finished = true;
    const { active, report } = this.#deps;
    active.remove(this.#member);
    this.#parked?.leave();
    const hold = this.#hold;
    const leaving = this.#attempt?.destroy();
    if (leaving === undefined) hold?.release();
    else void leaving.finally(() => hold?.release());
    this.#requestBody.release();
    report({
      slot: this.#slot,
      route: this.#request.path.path,
      status,
      seconds: (performance.now() - this.#startedAt) / 1000,
      parkedSeconds: secondsOf(this.#parked?.waitedMs),
      ttftSeconds: this.#answer.streamed ? secondsOf(this.#attempt?.ttftMs) : undefined,
      tokens: this.#attempt?.usage(),
    });
  }
}

function openAnswer({ batcher }: ExchangeDeps, { req, res, requestId, path }: ExchangeRequest): ClientAnswer {
  return new ClientAnswer({ req, res, requestId, dialect: path.dialect ?? OPENAI }, batcher);
}

function openBody(deps: ExchangeDeps, { req, head, path }: ExchangeRequest, owner: RequestBodyOwner & SpokenVoiceOwner) {
  const scan = createBodyScan(path, head, deps.settings);
  const requestBody = new RequestBody({ req, head, scan, limit: bodyLimitOf(path, deps.settings) }, deps, owner);
  const voice = path.capability === 'speech' ? new SpokenVoice({ scan, requestBody }, deps, owner) : undefined;
  return { requestBody, voice };
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

/** Creates the kind of attempt that the provider has planned. */

function createAttempt(
  plan: Exclude<ForwardPlan, { kind: 'refuse' }>,
  request: ForwardRequest & { readonly asked: InferRequest },
  owner: AttemptOwner,
): Attempt {
  return plan.kind === 'forward' ? new Forward(request, plan.path, owner) : new TranslatedForward({ ...request, plan }, owner);
}
