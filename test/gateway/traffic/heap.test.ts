import { expect, test } from '@jest/globals';
import { createHeap, type HeapItem } from '../../../src/gateway/traffic/heap.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';

interface Numbered extends HeapItem {
  value: number;
}

test('the first item is always the least one, while items are added, moved and removed', () => {
  const random = createRandom(1);
  const heap = createHeap<Numbered>((one, other) => one.value < other.value);
  const known = new Set<Numbered>();
  for (let step = 0; step < 5000; step += 1) {
    const drawn = random.next();
    const some = [...known][random.int(0, known.size)];
    if (drawn < 0.5 || some === undefined) {
      const item = { value: random.int(0, 50), heapIndex: -1 };
      heap.add(item);
      known.add(item);
    } else if (drawn < 0.7) {
      some.value = random.int(0, 50);
      heap.move(some);
    } else {
      heap.remove(some);
      known.delete(some);
      if (some.heapIndex !== -1) throw new Error('A removed item is in the heap');
    }
    const least = Math.min(...[...known].map(({ value }) => value));
    if ((heap.first()?.value ?? Number.POSITIVE_INFINITY) !== least)
      throw new Error(`Step ${step}: ${heap.first()?.value} instead of ${least}`);
  }
  expect(new Set(heap.items())).toEqual(known);
  for (const item of heap.items().toReversed()) heap.remove(item);
  expect(heap.first()).toBeUndefined();
});
