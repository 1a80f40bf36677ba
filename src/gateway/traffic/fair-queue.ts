/** A queue in which callers take turns, as `decide/turns.ts` says. It knows no clock. */
import { PRIORITIES } from '../../schema/words/access.ts';
import { MOST_PASSED, type Claim } from './decide/turns.ts';
import { createHeap, type HeapItem } from './heap.ts';

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
  /** Time at which its first request is served. */
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
