import { describe, expect, test } from '@jest/globals';
import { findAliasConflicts, type NamedSlot } from '../../../src/schema/slot/slot-rules.ts';

const slot = (name: string, model: string, ...aliases: readonly string[]): NamedSlot => ({ name, enabled: true, model, aliases });
const conflictsOf = (...slots: readonly NamedSlot[]) => Object.fromEntries(findAliasConflicts(slots));

describe('findAliasConflicts()', () => {
  test('finds an alias of two slots, for both of them', () => {
    expect(conflictsOf(slot('a', 'x', 'gpt'), slot('b', 'y', 'gpt'), slot('c', 'z', 'other'))).toEqual({
      a: ['Requests for "gpt" go to this slot or to "b": use another alias'],
      b: ['Requests for "gpt" go to this slot or to "a": use another alias'],
    });
  });

  test('finds an alias that is the name of another slot, which gets all requests for it', () => {
    expect(conflictsOf(slot('a', 'x', 'b'), slot('b', 'y'))).toEqual({
      a: ['Requests for "b" go to the slot of that name: use another alias'],
    });
  });

  test('finds an alias that is the model of another slot', () => {
    expect(conflictsOf(slot('a', 'x', 'y'), slot('b', 'y'))).toEqual({
      a: ['Requests for "y" go to this slot or to "b": use another alias'],
    });
  });

  test('finds none between slots with the same model, with their own names, or with slots that are not enabled', () => {
    expect(conflictsOf(slot('a', 'x'), slot('b', 'x'))).toEqual({});
    expect(conflictsOf(slot('a', 'x', 'a', 'x', 'gpt', 'gpt'), slot('b', 'y'))).toEqual({});
    expect(conflictsOf(slot('a', 'x', 'gpt'), { ...slot('b', 'y', 'gpt'), enabled: false })).toEqual({});
  });
});
