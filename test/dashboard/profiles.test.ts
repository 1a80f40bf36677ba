import { describe, expect, test } from '@jest/globals';
import { differentSlots, nearestProfile } from '../../dashboard/src/decide/slot-facts.ts';
import type { ProfileEntry } from '../../dashboard/src/types.ts';
import { ProfileName, SlotName } from '../../src/schema/words/names.ts';

type Result = ProfileEntry['slots'][number]['result'];

function profile(name: string, results: readonly Result[], isBroken = false): ProfileEntry {
  const slots = results.map((result, index) => ({ name: SlotName.parse(`s${index}`), result }));
  const problem = { key: '', message: 'Correct it', file: null, line: null, column: null };
  const active = !isBroken && results.every((result) => result === 'unchanged');
  return { name: ProfileName.parse(name), active, slots, problems: isBroken ? [problem] : [] };
}

describe('nearestProfile()', () => {
  test.each<[string, string | undefined, readonly ProfileEntry[]]>([
    ['none', undefined, []],
    ['the active one', 'b', [profile('a', ['updated']), profile('b', ['unchanged', 'unchanged'])]],
    ['the first of several active ones', 'a', [profile('a', ['unchanged']), profile('b', ['unchanged'])]],
    ['the one with the fewest differences', 'b', [profile('a', ['updated', 'disabled']), profile('b', ['unchanged', 'created'])]],
    ['not an invalid one if there is a valid one', 'b', [profile('a', [], true), profile('b', ['updated'])]],
    ['an invalid one if there is no other', 'a', [profile('a', [], true)]],
  ])('is %s', (_name, expected, profiles) => {
    expect(nearestProfile(profiles)?.name).toBe(expected);
  });
});

test('a slot differs if a switch creates, changes or disables it', () => {
  expect(differentSlots(profile('a', ['unchanged', 'created', 'updated', 'disabled']))).toEqual(['s1', 's2', 's3']);
});
