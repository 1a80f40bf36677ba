/**
 * One request while it waits: its place in the queue, its deadline, and after a failed attempt the timer of the next
 * one. `Exchange` creates it when a request waits for the first time, because most requests never do, and keeps it
 * until the request ends:
 *
 *   park ──► Parking.enter ──► the slot opens, refuses or is removed; the deadline passes    onOpen, fail, onRoutable
 *   retry ─► the same, and a timer that tries the slot again in case the failure was temporary      onOpen
 *
 * The board may offer a dead server for a while, and a proxy in front of it may accept connections meanwhile. So
 * failures on a target that the board has offered all the time count as one death, and the request waits for the board;
 * the timer only covers failures that the board never shows. A target that accepts the request three times and never
 * answers has a fault of its own.
 */
import type { RoutedSlot, Target } from '../../reconciler/board.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { ExchangeDeps, ExchangeRequest } from '../exchange-deps.ts';
import type { LostAttempt, RequestEvents } from '../request-events.ts';
import type { FallbackCause } from '../route/decide/fall-back.ts';
import type { Claim } from './decide/turns.ts';
import { isSameTarget } from './hold.ts';
import type { Ticket } from './parking.ts';
import { WaitProgress, type CommentedAnswer } from './wait-progress.ts';
import type { Outlook, Waiter } from './slot-queue.ts';

/** Deaths after which a request is sent again. With more, one prompt that crashes the server could stall a slot. */
const RESENDS = 2;
const RETRY_FIRST_MS = 50;
/** A connection that is refused costs the upstream nothing. */
const RETRY_REFUSED_MS = 1000;
/** Between looks for a slot that a waiting request may move to, when there was none. */
const MOVE_AGAIN_MS = 1000;
/** After the first and the second try. Within that time, a crash is on the board. */
const RETRY_ACCEPTED_MS = [RETRY_FIRST_MS, 2000] as const;

type ParkedDeps = Pick<ExchangeDeps, 'board' | 'now' | 'settings' | 'traffic'>;
interface ParkedEvents extends Pick<RequestEvents, 'onOpen' | 'onRoutable' | 'fail'> {
  /** What it asks of the queue. */
  readonly claim: Claim;
  /** Milliseconds in the queue of its slot after which the request may move to another one; `Infinity`: never. */
  readonly leavesQueueAfterMs: number;
  /** Undefined while the client is not known to expect a stream. */
  readonly commented: CommentedAnswer | undefined;
  /** Returns true if the request has moved to another slot, and has left the queue of this one. */
  fallBack(cause: FallbackCause): boolean;
}

interface FailedTarget {
  readonly target: Target;
  /** How often it has accepted the request. */
  readonly tries: number;
}

export class ParkedRequest implements Waiter {
  /** How long the request has waited so far, up to the last time it left the queue; undefined if it never waited. */
  waitedMs: number | undefined;
  readonly #deps: ParkedDeps;
  readonly #events: ParkedEvents;
  readonly #trace: ExchangeRequest['trace'];
  readonly #progress: WaitProgress;
  #since = 0;
  #ticket: Ticket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #moveTimer: NodeJS.Timeout | undefined;
  /** `waitedMs` when it moved to its slot. */
  #waitedBeforeMs = 0;
  #retries = 0;
  #deaths = 0;
  /** The targets on which attempts failed, the last one at the end, while the board goes on offering them. */
  #failed: readonly FailedTarget[] = [];
  #lost: LostAttempt | undefined;
  /** The failed target is to be tried again, as soon as the slot has room. */
  #isDue = false;

  constructor(deps: ParkedDeps, events: ParkedEvents, trace?: ExchangeRequest['trace']) {
    this.#deps = deps;
    this.#events = events;
    this.#trace = trace;
    this.#progress = new WaitProgress(deps, () => events.commented);
  }

  /** The targets on which attempts failed, the last one at the end. */
  get failedOn(): readonly Target[] {
    return this.#failed.map(({ target }) => target);
  }

  /** `slot` undefined: waits for the first board. Returns false if the request was refused. */
  park(slot: SlotName | undefined): boolean {
    this.#since = this.#deps.now();
    // The time of its attempts does not count.
    const deadline = this.#since + this.#deps.settings.SVC_PARK_TIMEOUT - (this.waitedMs ?? 0);
    const options = { deadline, again: this.#lost !== undefined, claim: this.#events.claim };
    const entered = this.#deps.traffic.parking.enter(slot, this, options);
    if (entered.kind === 'refuse') this.fail(entered.code, entered.message);
    else {
      this.#ticket = entered;
      this.#trace?.begin('wait', slot);
      this.#progress.start(slot, entered);
      this.#watchLoading(this.#events.leavesQueueAfterMs);
    }
    return entered.kind === 'parked';
  }

  /** Parks until a healthy workload is published, and retries with back-off in case the failure was temporary. */
  retry(lost: LostAttempt): void {
    const { hold, accepted, message } = lost;
    this.#lost = lost;
    this.#isDue = false;
    const before = this.#failed.find(({ target }) => isSameTarget(target, hold))?.tries ?? 0;
    const tries = accepted ? before + 1 : before;
    if (accepted && before === 0) this.#deaths += 1;
    if (this.#deaths > RESENDS || tries > RESENDS) return this.#events.fail('upstream.failed', message);
    this.#failed = [...this.#failed.filter(({ target }) => !isSameTarget(target, hold)), { target: hold, tries }];
    this.#deps.traffic.noteFailure();
    const slot = this.#deps.board.current().slots.get(hold.slot);
    const hasReplica = slot?.admission.kind === 'open' && this.accepts(slot);
    if (!hasReplica && this.#events.fallBack({ kind: 'upstream.failed' })) return;
    if (!this.park(hold.slot)) return;
    // The board may have shown the death before the connection did.
    if (slot?.admission.kind === 'open') this.#forgetReplaced(slot);
    else this.onClosed();
    // Every other replica is tried once without a delay.
    const others = (slot?.targets.length ?? 0) - 1;
    const refusedMs = Math.min(RETRY_REFUSED_MS, RETRY_FIRST_MS * 2 ** Math.min(this.#retries, 10));
    const delay = this.#retries < others ? 0 : accepted ? (RETRY_ACCEPTED_MS[tries - 1] ?? RETRY_REFUSED_MS) : refusedMs;
    this.#retries += 1;
    this.#timer = setTimeout(() => this.#tryAgain(hold.slot), delay);
  }

  /** Gives up the place in the queue. Later calls do nothing. */
  leave(): void {
    if (this.#ticket === undefined) return;
    this.#ticket.leave();
    this.#ticket = undefined;
    this.#trace?.end();
    this.#progress.stop();
    this.waitedMs = (this.waitedMs ?? 0) + this.#deps.now() - this.#since;
    clearTimeout(this.#timer);
    clearTimeout(this.#moveTimer);
  }

  /** Undefined unless it waits. */
  outlook(): Outlook | undefined {
    return this.#ticket?.outlook();
  }

  /** The request goes to another slot. Deaths count on. */
  moveOn(): void {
    this.onClosed();
    this.#lost = undefined;
    this.#waitedBeforeMs = this.waitedMs ?? 0;
  }

  onOpen(slot: RoutedSlot): void {
    this.leave();
    this.#events.onOpen(slot);
  }

  /** At the deadline, a slot that is open has not been loading all the time: its server has failed. */
  fail(code: ErrorCode, message: string): void {
    const lost = this.#lost;
    const isOpen = lost !== undefined && this.#deps.board.current().slots.get(lost.hold.slot)?.admission.kind === 'open';
    if (code === 'slot.loading' && isOpen && lost.accepted) this.#events.fail('upstream.failed', lost.message);
    else this.#events.fail(code, message);
  }

  onRoutable(): void {
    this.leave();
    this.#events.onRoutable();
  }

  onClosed(): void {
    this.#failed = [];
    this.#retries = 0;
  }

  /** Only another endpoint is worth an immediate try after a failure; the timer tries the same one again. */
  accepts(slot: RoutedSlot): boolean {
    this.#forgetReplaced(slot);
    return this.#isDue || slot.targets.some((offered) => !this.#failed.some(({ target }) => isSameTarget(offered, target)));
  }

  #forgetReplaced({ targets }: RoutedSlot): void {
    this.#failed = this.#failed.filter(({ target }) => targets.some((offered) => isSameTarget(offered, target)));
  }

  #watchLoading(afterMs: number): void {
    if (afterMs === Number.POSITIVE_INFINITY) return;
    const waitedMs = (): number => (this.waitedMs ?? 0) - this.#waitedBeforeMs + this.#deps.now() - this.#since;
    const look = (): void => {
      // Timers may be early by a millisecond or two.
      const cause = { kind: 'loading', waitedMs: Math.max(afterMs, waitedMs()) } as const;
      if (!this.#events.fallBack(cause)) this.#moveTimer = setTimeout(look, MOVE_AGAIN_MS);
    };
    this.#moveTimer = setTimeout(look, Math.max(0, afterMs - waitedMs()));
  }

  /** If the slot is not open, the publication that opens it releases this request. */
  #tryAgain(name: SlotName): void {
    this.#isDue = true;
    const slot = this.#deps.board.current().slots.get(name);
    if (slot?.admission.kind === 'open') this.onOpen(slot);
  }
}
