/** A binary heap: finds the first of its items at once, and adds, removes and moves one in logarithmic time. */
export interface HeapItem {
  /** Set by the heap; -1: in none. */
  heapIndex: number;
}

/** `isBefore`: a strict order, which changes only with `move`. */
export function createHeap<Item extends HeapItem>(isBefore: (one: Item, other: Item) => boolean) {
  const items: Item[] = [];

  function put(item: Item, index: number): void {
    items[index] = item;
    item.heapIndex = index;
  }

  /** Swaps an item with its parents, then with its children, until it is in order. */
  function settle(item: Item): void {
    let index = item.heapIndex;
    for (;;) {
      const above = items[(index - 1) >> 1];
      if (index === 0 || above === undefined || !isBefore(item, above)) break;
      put(above, index);
      index = (index - 1) >> 1;
    }
    for (;;) {
      const [left, right] = [items[2 * index + 1], items[2 * index + 2]];
      const below = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (below === undefined || !isBefore(below, item)) break;
      const freed = below.heapIndex;
      put(below, index);
      index = freed;
    }
    put(item, index);
  }

  return {
    first: (): Item | undefined => items[0],
    add(item: Item): void {
      put(item, items.length);
      settle(item);
    },
    /** The order of this item has changed. */
    move: settle,
    remove(item: Item): void {
      const last = items.pop();
      if (last !== undefined && last !== item) {
        put(last, item.heapIndex);
        settle(last);
      }
      item.heapIndex = -1;
    },
    items: (): readonly Item[] => items,
  };
}
