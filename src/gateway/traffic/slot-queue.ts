/** The requests that wait for one slot: whose turn it is, and what can be told of the wait. It knows no clock. */
import type { Demand } from '../../reconciler/ports.ts';
import type { RoutedSlot } from '../../reconciler/board.ts';
import type { RequestEvents } from '../request-events.ts';
import type { Claim } from './decide/turns.ts';
import { createFairQueue, type Place } from './fair-queue.ts';

/** Called while the board is published. `onRoutable`, for the first board, is for waiters without a slot. */
export interface Waiter extends Pick<RequestEvents, 'onOpen' | 'fail'>, Partial<Pick<RequestEvents, 'onRoutable'>> {
  /** Returns whether the open slot is worth a try for a request that has just failed on it. Default: yes. */
  accepts?(slot: RoutedSlot): boolean;
  /** A board has been published on which the slot is not open. The waiter stays. */
  onClosed?(): void;
}

export interface Parked {
  readonly waiter: Waiter;
  readonly claim: Claim;
  /** Monotonic milliseconds. */
  readonly since: number;
  readonly timer: NodeJS.Timeout;
  /** Undefined: the slot as it is now is not worth a try for it. */
  place: Place | undefined;
}

export interface Outlook {
  /** How many others will probably be served before. */
  readonly position: number;
  /** All that wait for the slot in this process. */
  readonly waiting: number;
  /** How long it will probably wait; undefined if that cannot be told. */
  readonly waitMs: number | undefined;
}

/** The last turns tell more of the next ones than those before them. */
const LEARNED = 1 / 8;
/** Positions are computed for all together, and not more often: a large queue takes a thousandth of that. */
const POSITIONS_MS = 500;
const POSITIONS_MS_EACH = 0.5;

export class SlotQueue {
  /** In the order of arrival. Sets remove in constant time. */
  readonly #all = new Set<Parked>();
  readonly #turns = createFairQueue<Parked>();
  /** Those without a place. */
  readonly #resting = new Set<Parked>();
  /** Since when its requests wait for a load, at the earliest; undefined: for their turn at an open slot. */
  #loadingSince: number | undefined;
  #servedAt: number | undefined;
  /** Average time between two turns. */
  #turnMs: number | undefined;
  #positions: { readonly until: number; readonly of: ReadonlyMap<Parked, number> } = { until: 0, of: new Map() };

  constructor(loadingSince: number | undefined) {
    this.#loadingSince = loadingSince;
  }

  get size(): number {
    return this.#all.size;
  }

  /** How many could be served. */
  get turns(): number {
    return this.#turns.size();
  }

  get isLoading(): boolean {
    return this.#loadingSince !== undefined;
  }

  /** In the order of arrival; a copy. */
  all(): readonly Parked[] {
    return [...this.#all];
  }

  add(parked: Parked, slot: RoutedSlot | undefined): void {
    this.#all.add(parked);
    this.#queueUp(parked, slot);
  }

  /** Returns false if the request has left already. */
  remove(parked: Parked): boolean {
    if (!this.#all.delete(parked)) return false;
    this.#resting.delete(parked);
    parked.place?.leave();
    return true;
  }

  /** The next one whose turn it is, which stays; undefined if it does not accept the slot as it is. */
  next(slot: RoutedSlot): Parked | undefined {
    const parked = this.#turns.take();
    if (parked === undefined) return undefined;
    parked.place = undefined;
    if (parked.waiter.accepts?.(slot) !== false) return parked;
    this.#resting.add(parked);
    return undefined;
  }

  /** The slot is open. `turns`: not for all at once. */
  open(slot: RoutedSlot, turns: boolean): void {
    if (turns) this.#loadingSince = undefined;
    for (const parked of Array.from(this.#resting)) this.#queueUp(parked, slot);
  }

  /** The slot loads. */
  close(slot: RoutedSlot, now: number): void {
    this.#loadingSince ??= now;
    this.#servedAt = undefined;
    for (const { waiter } of this.#all) waiter.onClosed?.();
    for (const parked of Array.from(this.#resting)) this.#queueUp(parked, slot);
  }

  /** A request of the slot has ended, so that the next one has its turn. */
  noteTurn(now: number): void {
    const ms = now - (this.#servedAt ?? now);
    if (this.#servedAt !== undefined) this.#turnMs = (this.#turnMs ?? ms) + (ms - (this.#turnMs ?? ms)) * LEARNED;
    this.#servedAt = now;
  }

  outlook(parked: Parked, now: number): Outlook {
    if (this.#positions.until <= now) {
      const until = now + Math.max(POSITIONS_MS, POSITIONS_MS_EACH * this.#all.size);
      this.#positions = { until, of: new Map(this.#turns.inOrder().map((each, index) => [each, index])) };
    }
    // One that has come since then is among the last.
    const position = parked.place === undefined ? 0 : (this.#positions.of.get(parked) ?? Math.max(0, this.turns - 1));
    return { position, waiting: this.size, waitMs: this.#turnMs === undefined ? undefined : (position + 1) * this.#turnMs };
  }

  demand(): Pick<Demand, 'waiting' | 'waitingSince' | 'caller'> {
    const [oldest] = this.#all;
    if (oldest === undefined) return { waiting: 0 };
    // Time at an open slot is not time without memory.
    const waitingSince = this.#loadingSince === undefined ? undefined : Math.max(oldest.since, this.#loadingSince);
    return { waiting: this.#all.size, waitingSince, caller: oldest.claim.caller || undefined };
  }

  #queueUp(parked: Parked, slot: RoutedSlot | undefined): void {
    if (slot?.admission.kind === 'open' && parked.waiter.accepts?.(slot) === false) {
      this.#resting.add(parked);
      return;
    }
    this.#resting.delete(parked);
    parked.place ??= this.#turns.add(parked, parked.claim);
  }
}
