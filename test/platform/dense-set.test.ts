import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createDenseSet, type Member } from '../../src/platform/dense-set.ts';

test('createDenseSet() holds every member that was added and not removed, also if one is removed twice', () => {
  const step = fc.record({ add: fc.boolean(), which: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const denseSet = createDenseSet<number>();
      const members: Member<number>[] = [];
      const present = new Set<number>();
      for (const [index, { add, which }] of steps.entries()) {
        const member = members[which % Math.max(1, members.length)];
        if (add || member === undefined) {
          members.push(denseSet.add(index));
          present.add(index);
        } else {
          denseSet.remove(member);
          present.delete(member.item);
        }
        expect(denseSet.items().toSorted((a, b) => a - b)).toEqual([...present]);
        expect(denseSet.size).toBe(present.size);
      }
    }),
  );
});
