import { describe, expect, test } from '@jest/globals';
import { formatToml, formatValue, whyNotToml } from '../../../../src/files/toml/decide/toml-text.ts';

const HALF = '\uD83D';

describe('whyNotToml()', () => {
  test.each<[unknown]>([['text'], [1.5], [Number.NaN], [true], [new Date(0)], [[]], [['a', [1]]], [{}], [{ a: { b: [{ c: 'text' }] } }]])(
    'knows a form of %j',
    (value) => {
      expect(whyNotToml(value)).toBeUndefined();
    },
  );

  test.each<[unknown, string]>([
    [null, 'TOML has no "null"; remove it from lists'],
    [[1, [null]], 'TOML has no "null"; remove it from lists'],
    [{ a: { b: [null] } }, 'TOML has no "null"; remove it from lists'],
    [HALF, 'A string contains half of a surrogate pair; write valid Unicode'],
    [{ a: [{ b: HALF }] }, 'A string contains half of a surrogate pair; write valid Unicode'],
    [{ a: { [HALF]: 1 } }, 'A string contains half of a surrogate pair; write valid Unicode'],
    [{ a: 1n }, 'A bigint has no TOML form; write a string, number, boolean, list or table'],
  ])('says why there is none, wherever it is: case %#', (value, expected) => {
    expect(whyNotToml(value)).toBe(expected);
  });
});

describe('formatToml()', () => {
  test.each<[unknown, string]>([
    ['a "text"\u007f', String.raw`"a \"text\"\u007f"`],
    [-0, '-0.0'],
    [2 ** 53, '9007199254740992.0'],
    [Number.NEGATIVE_INFINITY, '-inf'],
    [[1, 'a', { b: true }], '[1, "a", { b = true }]'],
    [{}, '{}'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
  ])('writes the value %#', (value, text) => {
    expect(formatValue(value)).toBe(text);
  });

  test('writes a header for each table with values of its own, and for an empty one', () => {
    expect(formatToml({ a: 1, b: { c: { 'd e': 2 } }, f: {} })).toBe('a = 1\n\n[b.c]\n"d e" = 2\n\n[f]\n');
  });
});
