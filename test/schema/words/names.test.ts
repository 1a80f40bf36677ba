import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MODEL_ID_PATTERN } from '../../../src/schema/words/name-rules.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';

describe('SlotName', () => {
  test.each(['img', 'a', 'a-b-1', 'x'.repeat(40)])('accepts "%s"', (name) => expect(SlotName.safeParse(name).success).toBe(true));
  test.each(['', 'Img', '1a', 'a--b', 'a-', '-a', 'a_b', 'x'.repeat(41), `a${'-b'.repeat(20)}`, 'a\n', '../a'])('refuses %j', (name) =>
    expect(SlotName.safeParse(name).success).toBe(false),
  );
});

describe('ModelId', () => {
  test('refuses empty parts, "." and "..", and accepts everything else in its alphabet', () => {
    const byHand = (id: string) =>
      /^[A-Za-z0-9_.]/.test(id) &&
      /^[A-Za-z0-9_.:@+/-]*$/.test(id) &&
      id.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '.', '/', ':', '-', '_', ' ', '\n'), maxLength: 9 }), (id) => {
        expect(ModelId.safeParse(id).success).toBe(byHand(id));
      }),
      { numRuns: 5000 },
    );
  });

  test('uses no look-ahead, which Kubernetes does not support', () => {
    expect(MODEL_ID_PATTERN).not.toMatch(/\(\?[=!<]/);
  });
});
