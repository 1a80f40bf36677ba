/**
 * Requests that wait for their slot: first come, first served, bounded in number and time. Parking starts nothing. It is a fact that the
 * next pass sees (demand), and what that pass publishes on the board lets the requests go on or refuses them.
 */
import type { Board, BoardSlot, BoardView } from '../reconciler/board.ts';
import type { SlotName } from '../schema/names.ts';

export interface Waiter {
  /** The slot is open. Called in the tick of the board's publication; the waiter has left the queue. */
  onOpen(slot: BoardSlot): void;
  onRefused(refusal: Refusal): void;
  /** The first board is there: look again where to go. Only for those that wait for it. */
  onBoard?(): void;
  /** Whether this state of the slot is worth another try, for one who has just failed on it. Default: yes. */
  wants?(slot: BoardSlot): boolean;
}

export interface Refusal {
  readonly code: 'slot.loading' | 'slot.disabled' | 'slot.stalled' | 'slot.insufficient_memory' | 'slot.not_found' | 'slot.queue_full';
  readonly message: string;
}

export interface Ticket {
  /** The client has left, or the waiter goes on by itself. Twice is once. */
  leave(): void;
}

export interface SlotDemand {
  readonly waiting: number;
  /** Unix milliseconds. */
  readonly lastAskedAt: number;
}

export interface Parking {
  /** `slot` undefined: wait for the first board. `deadline` in Unix milliseconds. `again` marks one who had been let in before: it is never turned away for the number. */
  enter(
    slot: SlotName | undefined,
    waiter: Waiter,
    options: { readonly deadline: number; readonly again: boolean },
  ): Ticket | 'queue-full' | 'too-late';
  /** A request asked for the slot, parked or not. */
  asked(slot: SlotName, at: number): void;
  read(): ReadonlyMap<SlotName, SlotDemand>;
  /** Requests that wait for a slot; undefined: for the first board. */
  waiting(slot: SlotName | undefined): number;
  /** Refuses everyone: the gateway is closing. */
  close(message: string): void;
}

export interface ParkingDeps {
  readonly board: Board;
  readonly now: () => number;
  /** Requests a slot. */
  readonly limit: number;
  readonly timeoutMs: number;
  /** A slot gained a waiting request. */
  readonly onDemand: () => void;
}

interface Parked {
  readonly waiter: Waiter;
  readonly timer: NodeJS.Timeout;
}

export function createParking({ board, now, limit, timeoutMs, onDemand }: ParkingDeps): Parking {
  /** Sets keep the order of arrival and forget in constant time. The key undefined holds those who wait for the first board. */
  const queues = new Map<SlotName | undefined, Set<Parked>>();
  const askedAt = new Map<SlotName, number>();

  function take(key: SlotName | undefined, queue: Set<Parked>, parked: Parked): boolean {
    if (!queue.delete(parked)) return false;
    clearTimeout(parked.timer);
    if (queue.size === 0) queues.delete(key);
    return true;
  }

  function settle(view: BoardView): void {
    for (const [key, queue] of queues.entries().toArray()) {
      const slot = key === undefined ? undefined : view.slots.get(key);
      if (key === undefined ? view.version === 0 : slot?.admission.kind === 'park') continue;
      // A copy: who is let in may come back at once, and would be met again.
      for (const parked of queue.values().toArray()) {
        const stays = slot?.admission.kind === 'open' && parked.waiter.wants?.(slot) === false;
        if (!stays && take(key, queue, parked)) tell(parked.waiter, key, slot);
      }
    }
    for (const name of askedAt.keys()) if (view.version > 0 && !view.slots.has(name)) askedAt.delete(name);
  }
  board.subscribe(settle);

  function expire(key: SlotName | undefined, queue: Set<Parked>, parked: Parked): void {
    if (take(key, queue, parked)) parked.waiter.onRefused(tooLong(key, timeoutMs));
  }

  return {
    enter(slot, waiter, { deadline, again }) {
      const left = deadline - now();
      if (left <= 0) return 'too-late';
      let queue = queues.get(slot);
      if (!again && (queue?.size ?? 0) >= limit) return 'queue-full';
      if (queue === undefined) {
        queue = new Set();
        queues.set(slot, queue);
      }
      const own = queue;
      const parked: Parked = { waiter, timer: setTimeout(() => expire(slot, own, parked), left) };
      own.add(parked);
      if (slot !== undefined) onDemand();
      return { leave: () => void take(slot, own, parked) };
    },
    asked: (slot, at) => void askedAt.set(slot, at),
    read() {
      const demand = new Map<SlotName, SlotDemand>();
      for (const [slot, lastAskedAt] of askedAt) demand.set(slot, { waiting: queues.get(slot)?.size ?? 0, lastAskedAt });
      return demand;
    },
    waiting: (slot) => queues.get(slot)?.size ?? 0,
    close(message) {
      for (const [key, queue] of queues.entries().toArray()) {
        for (const parked of queue.values().toArray())
          if (take(key, queue, parked)) parked.waiter.onRefused({ code: 'slot.loading', message });
      }
    },
  };
}

function tell(waiter: Waiter, key: SlotName | undefined, slot: BoardSlot | undefined): void {
  if (key === undefined) waiter.onBoard?.();
  else if (slot === undefined) waiter.onRefused({ code: 'slot.not_found', message: `Use another model: slot "${key}" has been removed` });
  else if (slot.admission.kind === 'open') waiter.onOpen(slot);
  else if (slot.admission.kind === 'refuse') waiter.onRefused(slot.admission);
}

function tooLong(key: SlotName | undefined, timeoutMs: number): Refusal {
  const what = key === undefined ? 'the service starts' : `slot "${key}" loads`;
  return {
    code: 'slot.loading',
    message: `Try again later: ${what}, which takes longer than the ${timeoutMs / 1000} s a request waits ("SVC_PARK_TIMEOUT")`,
  };
}
