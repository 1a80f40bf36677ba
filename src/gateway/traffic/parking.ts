/**
 * The queues of requests that wait for their slot: one per slot, first come, first served, limited in number and time.
 * Parking starts nothing itself.
 *
 *   enter() ──► queue of the slot ──► the board is published with the slot
 *                 │                     open: onOpen       refused or removed: fail       still to wait: stays
 *                 ├─► the deadline passes: fail("slot.loading")
 *                 └─► leave(): the client has left, or the request goes on without the queue
 *
 * The reconciler sees the number of waiting requests as demand (`demand()`), loads the slot if it may, and publishes
 * the result on the board.
 */
import type { RoutedBoard, RoutedSlot, RoutedView } from '../../reconciler/board.ts';
import type { Demand } from '../../reconciler/ports.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { RequestEvents } from '../request-events.ts';
import type { Refusal } from '../route/decide/route.ts';
import type { QueuePlace } from './decide/wait-text.ts';

/** Called while the board is published. `onRoutable`, for the first board, is for waiters without a slot. */
export interface Waiter extends Pick<RequestEvents, 'onOpen' | 'fail'>, Partial<Pick<RequestEvents, 'onRoutable'>> {
  /** Returns whether the open slot is worth a try for a request that has just failed on it. Default: yes. */
  accepts?(slot: RoutedSlot): boolean;
  /** A board has been published on which the slot is not open. The waiter stays. */
  onClosed?(): void;
}

export interface Ticket {
  readonly kind: 'parked';
  leave(): void;
  /** Looks through the queue. Only before `leave`. */
  place(): QueuePlace;
}

export type Parking = ReturnType<typeof createParking>;

export interface ParkingDeps {
  readonly board: RoutedBoard;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly settings: Pick<Settings, 'SVC_PARK_LIMIT' | 'SVC_PARK_TIMEOUT'>;
  /** Called when a request starts to wait for a slot, and when the last one has left. */
  readonly onDemand: () => void;
}

interface Parked {
  readonly waiter: Waiter;
  /** Monotonic milliseconds. */
  readonly since: number;
  readonly timer: NodeJS.Timeout;
}

/** A load by hand ends when the slot is loaded, stalled or disabled; a model of 100 GB may take most of a day. */
const ASK_MS = 24 * 3_600_000;
/** Limit for the time between an edit, after which a slot is no longer refused, and the board that shows it. */
const EDIT_MS = 5000;

/** The key undefined holds the requests that wait for the first board. */
type QueueKey = SlotName | undefined;

export function createParking({ board, now, settings, onDemand }: ParkingDeps) {
  const { SVC_PARK_LIMIT: limit, SVC_PARK_TIMEOUT: timeoutMs } = settings;
  /** Sets keep the order of arrival and remove in constant time. */
  const queues = new Map<QueueKey, Set<Parked>>();
  const lastAskedAt = new Map<SlotName, number>();

  /** Returns false if the request has left the queue already. */
  function dequeue(key: QueueKey, queue: Set<Parked>, parked: Parked): boolean {
    if (!queue.delete(parked)) return false;
    clearTimeout(parked.timer);
    if (queue.size === 0) queues.delete(key);
    return true;
  }

  function releaseWaiters(view: RoutedView): void {
    for (const [key, queue] of queues.entries().toArray()) {
      const slot = key === undefined ? undefined : view.slots.get(key);
      if (key === undefined && view.version === 0) continue;
      if (slot?.admission.kind === 'park') {
        for (const { waiter } of queue) waiter.onClosed?.();
        continue;
      }
      // A copy: a released request may enter again at once, and must not be visited twice.
      for (const parked of queue.values().toArray()) {
        const stays = slot?.admission.kind === 'open' && parked.waiter.accepts?.(slot) === false;
        if (!stays && dequeue(key, queue, parked)) notify(parked.waiter, key, slot);
      }
    }
    for (const name of lastAskedAt.keys()) if (view.version > 0 && !view.slots.has(name)) lastAskedAt.delete(name);
  }
  board.subscribe(releaseWaiters);

  const parking = {
    /** `key` undefined: waits for the first board. `again`: admitted before, so the limit does not apply. */
    enter(key: QueueKey, waiter: Waiter, { deadline, again }: { readonly deadline: number; readonly again: boolean }): Ticket | Refusal {
      const leftMs = deadline - now();
      if (leftMs <= 0) return refusal('slot.loading', lateness(key, timeoutMs, board.current()));
      const queue = queues.get(key) ?? new Set<Parked>();
      if (!again && queue.size >= limit)
        return refusal('slot.queue_full', `${describe(key)} has ${limit} waiting requests already ("SVC_PARK_LIMIT"): try again later`);
      queues.set(key, queue);
      const expire = (): void => {
        if (dequeue(key, queue, parked)) waiter.fail('slot.loading', lateness(key, timeoutMs, board.current()));
      };
      const parked: Parked = { waiter, since: now(), timer: setTimeout(expire, leftMs) };
      queue.add(parked);
      if (key !== undefined) onDemand();
      const leave = (): void => {
        if (!dequeue(key, queue, parked) || key === undefined) return;
        lastAskedAt.set(key, now());
        if (queue.size === 0) onDemand();
      };
      const place = (): QueuePlace => ({ position: [...queue].indexOf(parked) + 1, waiting: queue.size });
      return { kind: 'parked', leave, place };
    },
    /** Loads a slot that rests until a request asks for it: waits as a request does, without one. Returns at once. */
    ask(name: SlotName): void {
      const editedBy = now() + EDIT_MS;
      const join = (): void => {
        const admission = board.current().slots.get(name)?.admission.kind ?? 'refuse';
        if (admission === 'refuse' && now() < editedBy) return;
        unsubscribe();
        if (admission === 'park')
          parking.enter(name, { onOpen: () => undefined, fail: () => undefined }, { deadline: now() + ASK_MS, again: true });
      };
      lastAskedAt.set(name, now());
      const unsubscribe = board.subscribe(join);
      join();
    },
    noteDemand: (slot: SlotName, at: number): void => void lastAskedAt.set(slot, at),
    demand: (): ReadonlyMap<SlotName, Demand> => new Map([...lastAskedAt].map(([slot, at]) => [slot, demandOf(queues.get(slot), at)])),
    /** Number of requests that wait for a slot, or for the first board if undefined. */
    waiting: (slot: QueueKey): number => queues.get(slot)?.size ?? 0,
    close(message: string) {
      for (const [key, queue] of queues.entries().toArray()) {
        for (const parked of queue.values().toArray()) if (dequeue(key, queue, parked)) parked.waiter.fail('slot.loading', message);
      }
    },
  };
  return parking;
}

function demandOf(queue: ReadonlySet<Parked> | undefined, lastAskedAt: number): Demand {
  const oldest = queue?.values().next().value;
  return oldest === undefined ? { waiting: 0, lastAskedAt } : { waiting: queue?.size ?? 0, waitingSince: oldest.since, lastAskedAt };
}

function notify(waiter: Waiter, key: QueueKey, slot: RoutedSlot | undefined): void {
  if (key === undefined) waiter.onRoutable?.();
  else if (slot === undefined) waiter.fail('slot.not_found', `Slot "${key}" was removed: use another model`);
  else if (slot.admission.kind === 'open') waiter.onOpen(slot);
  else if (slot.admission.kind === 'refuse') waiter.fail(slot.admission.code, slot.admission.message);
}

function lateness(key: QueueKey, timeoutMs: number, { slots }: RoutedView): string {
  const admission = key === undefined ? undefined : slots.get(key)?.admission;
  const because = admission?.kind === 'park' && admission.because !== undefined ? `${admission.because}; ` : '';
  return `${describe(key)} did not become ready within ${timeoutMs / 1000} s ("SVC_PARK_TIMEOUT"): ${because}try again later`;
}

const refusal = (code: ErrorCode, message: string): Refusal => ({ kind: 'refuse', code, message });

const describe = (key: QueueKey): string => (key === undefined ? 'The service' : `Slot "${key}"`);
