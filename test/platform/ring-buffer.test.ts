import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRingBuffer } from '../../src/platform/ring-buffer.ts';

test('a ring buffer keeps the last items in their order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.integer(), { maxLength: 20 }), (capacity, pushed) => {
      const buffer = createRingBuffer<number>(capacity);
      for (const [index, item] of pushed.entries()) {
        buffer.push(item);
        expect(buffer.items()).toEqual(pushed.slice(Math.max(0, index + 1 - capacity), index + 1));
      }
    }),
  );
});
