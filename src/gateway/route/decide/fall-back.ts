/**
 * Decides whether a request leaves its slot for another one (`[fallback]`), and for which. Where each cause is noticed:
 *
 *   stalled           exchange.ts: the slot's admission refuses, at arrival or while the request waits
 *   queue             exchange.ts: at arrival, before the request is held or parked
 *   loading           exchange.ts: at arrival; traffic/parked-request.ts: a timer while it waits
 *   upstream.failed   exchange.ts: the attempt failed before the first byte, and the body can be sent again
 *
 * `stalled` and `upstream.failed` of all slots that the request has left stay in force, so a chain goes on where its
 * targets declare nothing. A slot is left once at most, and no request moves more than `MOST_MOVES` times. Pure.
 */
import type { RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import type { FallbackSpec } from '../../../schema/slot/fallback.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { hashText } from './pick-replica.ts';

export type FallbackCause =
  | { readonly kind: 'stalled' | 'upstream.failed' | 'queue' }
  /** `waitedMs`: in the queue of this slot. */
  | { readonly kind: 'loading'; readonly waitedMs: number };

export const CROWDED: FallbackCause = { kind: 'queue' };
export const NOT_LOADED: FallbackCause = { kind: 'loading', waitedMs: 0 };

export interface Move {
  readonly from: SlotName;
  readonly to: SlotName;
  readonly reason: FallbackCause['kind'] | 'split';
}

/** Where a request is, and the moves that led it there. */
export interface Place {
  readonly slot: SlotName;
  readonly moves: readonly Move[];
}

export interface FallbackFacts {
  /** Other requests that are in flight at the slot or wait for it. */
  readonly load: (slot: SlotName) => number;
  /** Whether the queue of the slot has room. */
  readonly hasRoom: (slot: SlotName) => boolean;
  /** Whether requests wait at the slot although it is open. */
  readonly isFull: (slot: RoutedSlot) => boolean;
  /** Whether the slot can do what the request asks for. */
  readonly isAble: (slot: RoutedSlot) => boolean;
}

export const MOST_MOVES = 4;

/** Returns the slot that the request moves to: the first that is open and not full, else the first to wait for. */
export function fallBack(
  cause: FallbackCause,
  { slot, moves }: Place,
  { slots }: RoutedView,
  facts: FallbackFacts,
): RoutedSlot | undefined {
  if (moves.length >= MOST_MOVES) return undefined;
  const left = leftSlots(moves);
  const sources = cause.kind === 'queue' || cause.kind === 'loading' ? [] : moves.map(({ from }) => from).toReversed();
  let waitable: RoutedSlot | undefined;
  for (const source of [slot, ...sources]) {
    const fallback = slots.get(source)?.spec.fallback;
    if (fallback === undefined || !isDue(cause, fallback, isCrowded(slots.get(slot), fallback, facts))) continue;
    // The slot that a request was split off from comes before its targets.
    for (const name of [source, ...fallback.to]) {
      const target = slots.get(name);
      if (target === undefined || name === slot || left.has(name) || !facts.isAble(target)) continue;
      if (cause.kind === 'queue' && isCrowded(target, fallback, facts)) continue;
      if (target.admission.kind === 'open' && !facts.isFull(target)) return target;
      if (target.admission.kind !== 'refuse' && facts.hasRoom(name)) waitable ??= target;
    }
  }
  return waitable;
}

/** Returns the slot that a request of this `key` is split off to. Equal keys give equal slots. */
export function splitOff(
  slot: RoutedSlot,
  key: string,
  { slots }: RoutedView,
  { isAble, hasRoom, isFull }: FallbackFacts,
): RoutedSlot | undefined {
  let share = hashText(`split ${key}`) % 100;
  for (const [name, percent] of slot.spec.fallback?.split ?? []) {
    share -= percent;
    if (share >= 0) continue;
    const target = slots.get(name);
    if (target === undefined || name === slot.name || !isAble(target)) return undefined;
    const isFree = target.admission.kind === 'open' && !isFull(target);
    return isFree || (target.admission.kind !== 'refuse' && hasRoom(name)) ? target : undefined;
  }
  return undefined;
}

/** The cause that ends a request with this error. `slot`: as the board shows it. */
export function causeOf(code: ErrorCode, slot: RoutedSlot | undefined): FallbackCause | undefined {
  if (code === 'upstream.failed' || code === 'upstream.timeout') return { kind: 'upstream.failed' };
  return slot?.admission.kind === 'refuse' && slot.admission.code === code ? { kind: 'stalled' } : undefined;
}

/** Whether another slot may do better than an upstream that answered with this status. */
export const isUpstreamFailure = (status: number): boolean => status >= 500 || status === 429;

/** A slot that only split the request off has not been tried. */
const leftSlots = (moves: readonly Move[]): ReadonlySet<SlotName> =>
  new Set(moves.filter(({ reason }) => reason !== 'split').map(({ from }) => from));

function isDue(cause: FallbackCause, fallback: FallbackSpec, crowded: boolean): boolean {
  switch (cause.kind) {
    case 'stalled':
      return fallback.stalled;
    case 'upstream.failed':
      return fallback.upstreamFailed;
    case 'queue':
      return crowded;
    case 'loading':
      return cause.waitedMs >= fallback.loadingMs;
    default:
      return cause satisfies never;
  }
}

/** With one request more, each server of the slot has more than the fallback allows. */
const isCrowded = (slot: RoutedSlot | undefined, { queue }: FallbackSpec, { load }: FallbackFacts): boolean =>
  slot !== undefined && load(slot.name) >= queue * Math.max(1, slot.targets.length);
