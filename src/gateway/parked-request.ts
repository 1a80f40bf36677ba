/**
 * One request while it waits: its place in the queue, its deadline, and after a failed attempt the timer of the next one. `Exchange` creates it when a
 * request waits for the first time, because most requests never do, and keeps it until the request ends:
 *
 *   park ──► Parking.enter ──► the slot opens, refuses or is removed; the deadline passes           onOpen, fail, onFirstBoard
 *   retry ─► the same, and a timer that tries the slot again in case the failure was temporary      onOpen
 */
import type { BoardSlot, Target } from '../reconciler/board.ts';
import type { ErrorCode } from '../schema/error-codes.ts';
import type { SlotName } from '../schema/names.ts';
import type { Refusal } from './decide/route.ts';
import type { ExchangeDeps } from './exchange-deps.ts';
import { isSameTarget, type Hold } from './hold.ts';
import type { Ticket, Waiter } from './parking.ts';

export interface ParkedRequestOwner extends Pick<Waiter, 'onOpen' | 'onFirstBoard'> {
  fail(code: ErrorCode, message: string): void;
}

/** An attempt that ended before any part of an answer arrived, or because the upstream is still loading its model. */
export interface LostAttempt {
  readonly hold: Hold;
  /** The upstream had accepted the connection when it died. */
  readonly accepted: boolean;
  readonly message: string;
}

/** Number of times a request is sent again after a workload accepted it and died. With more, one prompt that crashes the server could stall a slot. */
const RESENDS = 2;
const RETRY_FIRST_MS = 50;
const RETRY_LAST_MS = 1000;

/** A class, because it is a resource with a lifetime. */
export class ParkedRequest implements Waiter {
  /** The target of the last attempt that failed. */
  failedOn: Target | undefined;
  /** How long the request has waited so far, up to the last time it left the queue; undefined if it never waited. */
  waitedMs: number | undefined;
  readonly #deps: ExchangeDeps;
  readonly #owner: ParkedRequestOwner;
  /** Monotonic milliseconds until which the request may wait, over all its attempts. */
  readonly #deadline: number;
  #ticket: Ticket | undefined;
  /** `performance.now()` since which the request waits. */
  #since: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retries = 0;
  #resends = 0;

  constructor(deps: ExchangeDeps, owner: ParkedRequestOwner) {
    this.#deps = deps;
    this.#owner = owner;
    this.#deadline = deps.now() + deps.settings.SVC_PARK_TIMEOUT;
  }

  /** `slot` undefined: waits for the first board. `again` marks a request that was admitted before. Returns false if the request was refused. */
  park(slot: SlotName | undefined, again = false): boolean {
    const entered = this.#deps.traffic.parking.enter(slot, this, { deadline: this.#deadline, again });
    if (entered.kind === 'refuse') this.onRefused(entered);
    else {
      this.#ticket = entered;
      this.#since ??= performance.now();
    }
    return entered.kind === 'parked';
  }

  /** Parks until a healthy workload is published, and retries with back-off in case the failure was temporary. */
  retry({ hold, accepted, message }: LostAttempt): void {
    if (accepted) this.#resends += 1;
    if (this.#resends > RESENDS) {
      this.#owner.fail('upstream.failed', message);
      return;
    }
    this.failedOn = hold;
    this.#deps.traffic.noteFailure();
    if (!this.park(hold.slot, true)) return;
    // Every other replica is tried once without a delay.
    const others = (this.#deps.board.current().slots.get(hold.slot)?.targets.length ?? 0) - 1;
    const delay = this.#retries < others ? 0 : Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** Math.min(this.#retries, 10));
    this.#retries += 1;
    this.#timer = setTimeout(() => this.#tryAgain(hold.slot), delay);
  }

  /** Gives up the place in the queue. Later calls do nothing. */
  leave(): void {
    this.#ticket?.leave();
    this.#ticket = undefined;
    if (this.#since !== undefined) this.waitedMs = (this.waitedMs ?? 0) + performance.now() - this.#since;
    this.#since = undefined;
    clearTimeout(this.#timer);
  }

  onOpen(slot: BoardSlot): void {
    this.leave();
    this.#owner.onOpen(slot);
  }

  onRefused({ code, message }: Refusal): void {
    this.#owner.fail(code, message);
  }

  onFirstBoard(): void {
    this.leave();
    this.#owner.onFirstBoard?.();
  }

  /** After a failure, only another endpoint is worth an immediate try; the timer tries the same one again. */
  accepts(slot: BoardSlot): boolean {
    const { failedOn } = this;
    return failedOn === undefined || slot.targets.some((target) => !isSameTarget(target, failedOn));
  }

  #tryAgain(name: SlotName): void {
    const slot = this.#deps.board.current().slots.get(name);
    if (slot?.admission.kind === 'open') this.onOpen(slot);
    // Not open: the publication that opens the slot releases this request, whichever workload serves then.
    else this.failedOn = undefined;
  }
}
