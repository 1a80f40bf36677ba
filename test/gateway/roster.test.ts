import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRoster, type Seat } from '../../src/gateway/roster.ts';

test('createRoster() holds who has come and not left, whoever leaves twice', () => {
  const step = fc.record({ come: fc.boolean(), which: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const roster = createRoster<number>();
      const seats: Seat<number>[] = [];
      const present = new Set<number>();
      for (const [index, { come, which }] of steps.entries()) {
        const seat = seats[which % Math.max(1, seats.length)];
        if (come || seat === undefined) {
          seats.push(roster.add(index));
          present.add(index);
        } else {
          roster.remove(seat);
          present.delete(seat.item);
        }
        expect(roster.items().toSorted((a, b) => a - b)).toEqual([...present]);
        expect(roster.size).toBe(present.size);
      }
    }),
  );
});
