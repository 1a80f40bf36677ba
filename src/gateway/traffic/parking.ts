/**
 * The queues of requests that wait for their slot, one per slot, limited in number and time. Callers take turns
 * (`decide/turns.ts`), and requests of one caller are served in the order in which they came. Parking starts
 * nothing itself.
 *
 *   enter() ──► queue of the slot ──► the board is published with the slot
 *                 │                     open: onOpen, if it is not full     refused or removed: fail     else: stays
 *                 ├─► a request of the slot has ended, so that it is not full any more: onOpen, for the next one
 *                 ├─► the deadline passes: fail("slot.loading"), or fail("slot.queue_full") where the slot is full
 *                 └─► leave(): the client has left, or the request goes on without the queue
 *
 * The reconciler sees the number of waiting requests as demand (`demand()`), loads the slot if it may, and publishes
 * the result on the board. While the slot is open, they keep it in use.
 */
import type { RoutedBoard, RoutedSlot, RoutedView } from '../../reconciler/board.ts';
import type { Demand } from '../../reconciler/ports.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { Refusal } from '../route/decide/route.ts';
import { partOf, type Claim } from './decide/turns.ts';
import { SlotQueue, type Outlook, type Parked, type Waiter } from './slot-queue.ts';

export interface Ticket {
  readonly kind: 'parked';
  leave(): void;
  outlook(): Outlook;
}

export type Parking = ReturnType<typeof createParking>;

export interface ParkingDeps {
  readonly board: RoutedBoard;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** `shares`: among how many processes the limits of a slot are divided. Default: 1. */
  readonly settings: Pick<Settings, 'SVC_PARK_LIMIT' | 'SVC_PARK_TIMEOUT'> & { readonly shares?: number };
  /** Whether the slot takes no more requests for now. Default: never. */
  readonly isFull?: (slot: RoutedSlot) => boolean;
  /** Called when a request starts to wait for a slot, and when the last one has left. */
  readonly onDemand: () => void;
}

interface Entrance {
  readonly deadline: number;
  /** Admitted before, so the limit does not apply. */
  readonly again: boolean;
  /** Default: that of a caller who is not known. */
  readonly claim?: Claim;
}

const NOBODY: Claim = { caller: '', weight: 1, priority: 'normal', work: 1 };
/** A load by hand ends when the slot is loaded, stalled or disabled; a model of 100 GB may take most of a day. */
const ASK_MS = 24 * 3_600_000;
/** Limit for the time between an edit, after which a slot is no longer refused, and the board that shows it. */
const EDIT_MS = 5000;

/** The key undefined holds the requests that wait for the first board. */
type QueueKey = SlotName | undefined;

export function createParking({ board, now, settings, onDemand, isFull = () => false }: ParkingDeps) {
  const { SVC_PARK_LIMIT, SVC_PARK_TIMEOUT: timeoutMs, shares = 1 } = settings;
  const queues = new Map<QueueKey, SlotQueue>();
  const serving = new Set<QueueKey>();
  const lastAskedAt = new Map<SlotName, number>();

  const slotOf = (key: QueueKey): RoutedSlot | undefined => (key === undefined ? undefined : board.current().slots.get(key));

  /** Returns false if the request has left the queue already. */
  function dequeue(key: QueueKey, queue: SlotQueue, parked: Parked): boolean {
    if (!queue.remove(parked)) return false;
    clearTimeout(parked.timer);
    if (queue.size === 0) queues.delete(key);
    return true;
  }

  /** Serves whoever's turn it is while the slot has room. What enters again meanwhile is not visited twice. */
  function serve(key: SlotName, queue: SlotQueue, slot: RoutedSlot): void {
    if (serving.has(key)) return;
    serving.add(key);
    try {
      for (let left = queue.turns; left > 0 && !isFull(slot); left -= 1) {
        const parked = queue.next(slot);
        if (parked !== undefined && dequeue(key, queue, parked)) parked.waiter.onOpen(slot);
      }
    } finally {
      serving.delete(key);
    }
  }

  function releaseWaiters(view: RoutedView): void {
    for (const [key, queue] of queues.entries().toArray()) {
      const slot = key === undefined ? undefined : view.slots.get(key);
      if (key === undefined && view.version === 0) continue;
      if (key !== undefined && slot?.admission.kind === 'open') {
        queue.open(slot, takesTurns(slot));
        serve(key, queue, slot);
      } else if (slot?.admission.kind === 'park') queue.close(slot, now());
      else {
        // A copy: a released request may enter again at once, and must not be visited twice.
        for (const parked of queue.all()) if (dequeue(key, queue, parked)) notify(parked.waiter, key, slot);
      }
    }
    for (const name of lastAskedAt.keys()) if (view.version > 0 && !view.slots.has(name)) lastAskedAt.delete(name);
  }
  board.subscribe(releaseWaiters);

  function limitOf(key: QueueKey): { readonly limit: number; readonly name: string } {
    const own = slotOf(key)?.spec.limits?.maxQueue;
    return own === undefined ? { limit: SVC_PARK_LIMIT, name: 'SVC_PARK_LIMIT' } : { limit: partOf(own, shares), name: 'max_queue' };
  }

  const waiting = (key: QueueKey): number => queues.get(key)?.size ?? 0;

  function late(key: QueueKey): Refusal {
    const slot = slotOf(key);
    if (slot === undefined || !takesTurns(slot) || !isFull(slot)) return refusal('slot.loading', lateness(key, timeoutMs, slot));
    const because = `${describe(key)} had too many requests for ${timeoutMs / 1000} s ("SVC_PARK_TIMEOUT")`;
    return refusal('slot.queue_full', `${because}: try again later`);
  }

  const parking = {
    /** `key` undefined: waits for the first board. */
    enter(key: QueueKey, waiter: Waiter, { deadline, again, claim = NOBODY }: Entrance): Ticket | Refusal {
      const leftMs = deadline - now();
      if (leftMs <= 0) return late(key);
      const { limit, name } = limitOf(key);
      if (!again && waiting(key) >= limit)
        return refusal('slot.queue_full', `${describe(key)} has ${limit} waiting requests already ("${name}"): try again later`);
      const slot = slotOf(key);
      const queue = queues.get(key) ?? new SlotQueue(takesTurns(slot) ? undefined : 0);
      queues.set(key, queue);
      const expire = (): void => {
        const { code, message } = late(key);
        if (dequeue(key, queue, parked)) waiter.fail(code, message);
      };
      const parked: Parked = { waiter, claim, since: now(), timer: setTimeout(expire, leftMs), place: undefined };
      queue.add(parked, slot);
      // Whoever waits for a turn needs nothing of the reconciler.
      if (key !== undefined && queue.isLoading) onDemand();
      const leave = (): void => {
        if (!dequeue(key, queue, parked) || key === undefined) return;
        lastAskedAt.set(key, now());
        if (queue.size === 0) onDemand();
      };
      return { kind: 'parked', leave, outlook: () => queue.outlook(parked, now()) };
    },
    /** A request of the slot has ended: whoever waits takes its place. */
    serve(name: SlotName): void {
      const queue = queues.size === 0 ? undefined : queues.get(name);
      const slot = queue === undefined ? undefined : slotOf(name);
      if (queue === undefined || slot === undefined || !takesTurns(slot)) return;
      queue.noteTurn(now());
      serve(name, queue, slot);
    },
    /**
     * Loads a slot that rests until a request asks for it: waits as a request does, without one. Returns at once.
     * `caller`: whose request has gone to another slot instead.
     */
    ask(name: SlotName, caller = NOBODY.caller): void {
      const editedBy = now() + EDIT_MS;
      const claim = { ...NOBODY, caller };
      const join = (): void => {
        const admission = board.current().slots.get(name)?.admission.kind ?? 'refuse';
        if (admission === 'refuse' && now() < editedBy) return;
        unsubscribe();
        if (admission === 'park')
          parking.enter(name, { onOpen: () => undefined, fail: () => undefined }, { deadline: now() + ASK_MS, again: true, claim });
      };
      lastAskedAt.set(name, now());
      const unsubscribe = board.subscribe(join);
      join();
    },
    noteDemand: (slot: SlotName, at: number): void => void lastAskedAt.set(slot, at),
    demand: (): ReadonlyMap<SlotName, Demand> =>
      new Map([...lastAskedAt].map(([slot, at]) => [slot, { waiting: 0, ...queues.get(slot)?.demand(), lastAskedAt: at }])),
    /** Number of requests that wait for a slot, or for the first board if undefined. */
    waiting,
    /** Whether another request may wait for the slot. */
    hasRoom: (slot: SlotName): boolean => waiting(slot) < limitOf(slot).limit,
    close(message: string) {
      for (const [key, queue] of queues.entries().toArray()) {
        for (const parked of queue.all()) if (dequeue(key, queue, parked)) parked.waiter.fail('slot.loading', message);
      }
    },
  };
  return parking;
}

/** Requests wait at the slot although it is open. */
const takesTurns = (slot: RoutedSlot | undefined): boolean =>
  slot?.admission.kind === 'open' && slot.spec.limits?.maxInFlight !== undefined;

function notify(waiter: Waiter, key: QueueKey, slot: RoutedSlot | undefined): void {
  if (key === undefined) waiter.onRoutable?.();
  else if (slot === undefined) waiter.fail('slot.not_found', `Slot "${key}" was removed: use another model`);
  else if (slot.admission.kind === 'open') waiter.onOpen(slot);
  else if (slot.admission.kind === 'refuse') waiter.fail(slot.admission.code, slot.admission.message);
}

function lateness(key: QueueKey, timeoutMs: number, slot: RoutedSlot | undefined): string {
  const because = slot?.admission.kind === 'park' && slot.admission.because !== undefined ? `${slot.admission.because}; ` : '';
  return `${describe(key)} did not become ready within ${timeoutMs / 1000} s ("SVC_PARK_TIMEOUT"): ${because}try again later`;
}

const refusal = (code: ErrorCode, message: string): Refusal => ({ kind: 'refuse', code, message });

const describe = (key: QueueKey): string => (key === undefined ? 'The service' : `Slot "${key}"`);
