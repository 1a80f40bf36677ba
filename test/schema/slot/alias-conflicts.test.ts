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

  test('finds names of presets that mean something else', () => {
    const presets = (...named: readonly (readonly [string, ...string[]])[]) =>
      Object.fromEntries(named.map(([name, ...aliases]) => [name, { set: {}, force: {}, aliases }]));
    expect(
      conflictsOf(
        { ...slot('a', 'x', 'gpt'), presets: presets(['think', 'gpt', 'fast', 'b'], ['quick', 'fast']) },
        { ...slot('b', 'y', 'a:quick'), presets: presets(['think', 'x']) },
      ),
    ).toEqual({
      a: [
        'Requests for "gpt" get the slot without its preset "think": use another alias',
        'Requests for "fast" get the preset "think", not "quick": use another alias',
        'Requests for "b" go to the slot of that name: use another alias',
        'Requests for "a:quick" go to this slot or to "b": use another alias',
      ],
      b: [
        'Requests for "a:quick" go to this slot or to "a": use another alias',
        'Requests for "x" go to this slot or to "a": use another alias',
      ],
    });
    expect(conflictsOf({ ...slot('a', 'x'), presets: presets(['think', 'fast']) })).toEqual({});
  });
});
