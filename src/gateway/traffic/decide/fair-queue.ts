/**
 * The order in which waiting requests are served: priority classes first, and within a class start-time fair queueing
 * over callers (Goyal, Vin and Cheng 1996). Pure: it knows no clock.
 *
 *   add ──► class of the priority ──► queue of the caller, first come, first served
 *   take ◄─ the highest class, or one that was passed over ◄─ the caller with the least virtual time
 *
 * A request that is taken adds work ÷ weight to the virtual time of its caller. A caller that begins to wait has the
 * virtual time of its class, which is that of the caller served last, or its own if that is later. So nobody saves up
 * turns, and nobody gains by leaving and coming again.
 *
 * The bound. Let a request of a caller of weight w wait while its caller has the work A before it: what waits before
 * it, and what was served last. Each other caller, of weight v, is served between the virtual times at which the request
 * began to wait and is served, which differ by at most A ÷ w: work of at most v × A ÷ w, and the one request that goes
 * beyond that (`mostWorkBefore`). Among callers of the weight W together, the others get at most (W − w) × A ÷ w, and
 * one request each. How many requests the others have, and when they came, does not matter.
 *
 * Each class that waits gets at least one of any `TURNS` turns (`mostTurns`), so that the bound of a class holds for all.
 */
import { createHeap, type HeapItem } from '../../../platform/heap.ts';
import { PRIORITIES, type Priority } from '../../../schema/words/caller-limits.ts';

/** What a request may ask of a queue. */
export interface Claim {
  /** Whose turn it takes. */
  readonly caller: string;
  /** The share that a caller gets, compared with others. */
  readonly weight: number;
  readonly priority: Priority;
  /** From 1 to `MOST_WORK`. */
  readonly work: number;
}

/** Longer prompts count as this one, so that a caller can wait for one of them. */
export const MOST_WORK = 16;
/** About 4,000 tokens: computing a prompt of that length takes about as long as an ordinary answer. */
const BYTES_OF_WORK = 16_384;
/** A class that waits gets one of so many turns. */
export const TURNS = 20;
const MOST_PASSED = TURNS - PRIORITIES.length + 1;

/** An answer, and its prompt. How long the answer will be is not known. */
export const estimateWork = (bodyBytes: number): number => Math.min(MOST_WORK, 1 + bodyBytes / BYTES_OF_WORK);

/** Most work of others of the same class that is served before a request. `own.work`: A of the comment above. */
export const mostWorkBefore = (own: Pick<Claim, 'work' | 'weight'>, weightsOfOthers: readonly number[]): number =>
  weightsOfOthers.reduce((sum, weight) => sum + (weight * own.work) / own.weight + MOST_WORK, 0);

/** Most turns of all classes in which a class that waits gets `turns`. */
export const mostTurns = (turns: number, priority: Priority): number =>
  priority === 'high' ? Math.ceil(((turns + 2) * MOST_PASSED) / (MOST_PASSED - 2)) : turns * TURNS;

/** One request in the queue. */
export interface Place {
  /** Gives the place up. Later calls do nothing. */
  leave(): void;
}

interface Link<Item> {
  readonly item: Item;
  readonly claim: Claim;
  /** Undefined once it has left. */
  caller: WaitingCaller<Item> | undefined;
  previous: Link<Item> | undefined;
  next: Link<Item> | undefined;
}

interface WaitingCaller<Item> extends HeapItem {
  readonly key: string;
  /** At which its first request is served. */
  virtualTime: number;
  /** Decides between equal times. */
  sequence: number;
  first: Link<Item> | undefined;
  last: Link<Item> | undefined;
}

export type FairQueue<Item> = ReturnType<typeof createFairQueue<Item>>;

export function createFairQueue<Item>() {
  const classes = PRIORITIES.map((priority) => ({ priority, passed: 0, queue: createClass<Item>() }));

  /** The class that was passed over most often, once that is often enough; else the highest. */
  function nextClass() {
    const waiting = classes.filter(({ queue }) => queue.size() > 0);
    const due = waiting.filter(({ passed }) => passed >= MOST_PASSED);
    return due.length === 0 ? waiting[0] : due.reduce((most, each) => (each.passed >= most.passed ? each : most));
  }

  return {
    size: (): number => classes.reduce((sum, { queue }) => sum + queue.size(), 0),
    add(item: Item, claim: Claim): Place {
      const chosen = classes[PRIORITIES.indexOf(claim.priority)];
      if (chosen === undefined) throw new Error(`There is no priority "${claim.priority}"`);
      if (chosen.queue.size() === 0) chosen.passed = 0;
      return chosen.queue.add(item, claim);
    },
    /** Removes the request whose turn it is; undefined if none waits. */
    take(): Item | undefined {
      const chosen = nextClass();
      for (const each of classes) each.passed = each === chosen || each.queue.size() === 0 ? 0 : each.passed + 1;
      return chosen?.queue.take();
    },
    /** All that wait, in the order in which they will probably be served. */
    inOrder: (): readonly Item[] => classes.flatMap(({ queue }) => queue.inOrder()),
    /** Callers that something is remembered of. */
    callers: (): number => classes.reduce((sum, { queue }) => sum + queue.callers(), 0),
  };
}

/** One priority class. */
function createClass<Item>() {
  const callers = new Map<string, WaitingCaller<Item>>();
  const heap = createHeap<WaitingCaller<Item>>(
    (one, other) => one.virtualTime < other.virtualTime || (one.virtualTime === other.virtualTime && one.sequence < other.sequence),
  );
  let virtualTime = 0;
  let sequence = 0;
  let size = 0;

  /** The caller begins to wait. One that is remembered is ahead of the class, or level with it. */
  function enter(key: string): WaitingCaller<Item> {
    const known = callers.get(key);
    const caller = known ?? { key, virtualTime, sequence: 0, first: undefined, last: undefined, heapIndex: -1 };
    caller.sequence = sequence += 1;
    callers.set(key, caller);
    if (known === undefined) heap.add(caller);
    else heap.move(caller);
    return caller;
  }

  function forget(caller: WaitingCaller<Item>): void {
    heap.remove(caller);
    callers.delete(caller.key);
  }

  /** Returns false if it was removed before. */
  function unlink(link: Link<Item>): boolean {
    const { caller, previous, next } = link;
    if (caller === undefined) return false;
    link.caller = undefined;
    if (previous === undefined) caller.first = next;
    else previous.next = next;
    if (next === undefined) caller.last = previous;
    else next.previous = previous;
    size -= 1;
    return true;
  }

  /** A caller that does not wait is remembered until the others have caught up with it. */
  function forgetIdle(caller: WaitingCaller<Item>): void {
    if (caller.first === undefined && caller.virtualTime <= virtualTime) forget(caller);
    if (size > 0) return;
    for (const each of heap.items().toReversed()) forget(each);
    [virtualTime, sequence] = [0, 0];
  }

  /** The caller whose turn it is. The virtual time will be its own, so those before it need not be remembered. */
  function firstWaiting(): WaitingCaller<Item> | undefined {
    for (let first = heap.first(); first !== undefined; first = heap.first()) {
      if (first.first !== undefined) return first;
      forget(first);
    }
    return undefined;
  }

  return {
    size: (): number => size,
    callers: (): number => callers.size,
    add(item: Item, claim: Claim): Place {
      const known = callers.get(claim.caller);
      const caller = known?.first === undefined ? enter(claim.caller) : known;
      const { last } = caller;
      const link: Link<Item> = { item, claim, caller, previous: last, next: undefined };
      if (last === undefined) caller.first = link;
      else last.next = link;
      caller.last = link;
      size += 1;
      const leave = (): void => {
        if (unlink(link)) forgetIdle(caller);
      };
      return { leave };
    },
    take(): Item | undefined {
      const caller = firstWaiting();
      const link = caller?.first;
      if (caller === undefined || link === undefined) return undefined;
      virtualTime = caller.virtualTime;
      caller.virtualTime += link.claim.work / link.claim.weight;
      caller.sequence = sequence += 1;
      heap.move(caller);
      unlink(link);
      forgetIdle(caller);
      return link.item;
    },
    inOrder(): readonly Item[] {
      const found: { readonly item: Item; readonly at: number; readonly sequence: number }[] = [];
      for (const caller of callers.values()) {
        let at = caller.virtualTime;
        for (let link = caller.first; link !== undefined; link = link.next) {
          found.push({ item: link.item, at, sequence: caller.sequence });
          at += link.claim.work / link.claim.weight;
        }
      }
      return found.toSorted((one, other) => one.at - other.at || one.sequence - other.sequence).map(({ item }) => item);
    },
  };
}
