import { expect, test } from '@jest/globals';
import { rankMatches } from '../../dashboard/src/decide/rank-matches.ts';

const TEXTS = ['Slots', 'Settings', 'primary', 'Load primary', 'Unload primary', 'Restart small-primary', 'tts', 'Theme: Dark'];
const ENTRIES = TEXTS.map((text) => ({ text }));
const found = (typed: string, most = 10): string =>
  rankMatches(typed, ENTRIES, most)
    .map(({ text }) => text)
    .join(', ');

test.each([
  ['', TEXTS.join(', ')],
  ['  ', TEXTS.join(', ')],
  ['load', 'Load primary, Unload primary'],
  ['LOAD p', 'Load primary, Unload primary'],
  ['primary', 'primary, Load primary, Unload primary, Restart small-primary'],
  ['primary load', 'Load primary, Unload primary'],
  ['dark', 'Theme: Dark'],
  ['stg', 'Settings'],
  ['lpr', 'Restart small-primary, Load primary, Unload primary'],
  ['tts', 'tts, Settings, Restart small-primary'],
  ['xyz', ''],
  ['load xyz', ''],
])('"%s" finds "%s"', (typed, expected) => {
  expect(found(typed)).toBe(expected);
});

test('lists no more than asked for', () => {
  expect(found('', 2)).toBe('Slots, Settings');
  expect(found('primary', 1)).toBe('primary');
});
