/** Keeps the last `capacity` items. */
export function createRingBuffer<T>(capacity: number) {
  const kept: T[] = [];
  let next = 0;
  return {
    push(item: T): void {
      kept[next] = item;
      next = (next + 1) % capacity;
    },
    /** A copy, oldest first. */
    items: (): T[] => [...kept.slice(next), ...kept.slice(0, next)],
  };
}
