/** Keeps the last `capacity` items. */
export interface RingBuffer<T> {
  push(item: T): void;
  /** A copy, oldest first. */
  items(): T[];
}

export function createRingBuffer<T>(capacity: number): RingBuffer<T> {
  const kept: T[] = [];
  let oldest = 0;
  return {
    push(item) {
      if (kept.length < capacity) kept.push(item);
      else {
        kept[oldest] = item;
        oldest = (oldest + 1) % capacity;
      }
    },
    items: () => [...kept.slice(oldest), ...kept.slice(0, oldest)],
  };
}
