import { describe, expect, test } from '@jest/globals';
import { cosine, unmetExpectations, wordErrorRate, type Judged } from '../../../src/evaluation/decide/judge-expectations.ts';
import { NOTHING } from '../../../src/evaluation/decide/read-answer.ts';
import type { Expectations } from '../../../src/schema/slot/evaluation-case.ts';

const text = (words: string): Partial<Judged> => ({ text: words });
const call = (name: string, given: unknown): Partial<Judged> => ({
  calls: [{ name, arguments: typeof given === 'string' ? given : JSON.stringify(given) }],
});
const SCHEMA = { type: 'object', properties: { age: { type: 'integer', minimum: 0 } }, required: ['age'], additionalProperties: false };
const seen = (width: number, height: number, isBlank: boolean | undefined = false): Partial<Judged> => ({
  seen: [{ width, height, isBlank }],
});

describe('unmetExpectations()', () => {
  test.each<[Expectations, Partial<Judged>]>([
    [{ contains: 'Paris' }, text('It is Paris.')],
    [{ matches: '^\\d+$' }, text('42')],
    [{ matches: '(?i)paris' }, text('PARIS')],
    [{ schema: SCHEMA }, text(' {"age": 3}\n')],
    [{ schema: { type: 'string', pattern: '^[a-z]+$', format: 'email' } }, text('"abc"')],
    [{ tool: { name: 'weather' } }, call('weather', '')],
    [
      { tool: { name: 'weather', arguments: { city: 'Oslo', days: { from: 1, to: 2 } } } },
      call('weather', { days: { to: 2, from: 1 }, city: 'Oslo', unit: 'C' }),
    ],
    [{ similar: { to: 'a', atLeast: 0.8 } }, { similarity: 0.8 }],
    [
      { dimension: 3 },
      {
        vectors: [
          [1, 2, 3],
          [4, 5, 6],
        ],
      },
    ],
    [{ best: 1 }, { ranking: [1, 0] }],
    [{ transcript: { reference: 'Hello, world!', atMost: 0 } }, text('hello world')],
    [{ transcript: { reference: 'Hello', atMost: 0 } }, { text: '', heard: 'hello' }],
    [{ image: {} }, seen(64, 32)],
    [{ image: { width: 64, height: 32 } }, seen(64, 32, undefined)],
  ])('%j is met by %j', (expectations, answer) => {
    expect(unmetExpectations(expectations, { ...NOTHING, ...answer })).toEqual([]);
  });

  test.each<[Expectations, Partial<Judged>, string]>([
    [{ contains: 'Paris' }, text('paris'), 'contains "Paris"'],
    [{ matches: '^\\d+$' }, text('42 apples'), 'matches "^\\\\d+$"'],
    [{ matches: 'a' }, text(`a${' '.repeat(70_000)}`), 'matches "a"'],
    [{ schema: SCHEMA }, text('{"age": -1}'), 'satisfies the JSON Schema: answer/age must be >= 0'],
    [{ schema: SCHEMA }, text('```json\n{"age": 1}\n```'), 'satisfies the JSON Schema: it is not JSON'],
    [{ schema: { type: 'array' } }, text(`[${' '.repeat(70_000)}]`), 'satisfies the JSON Schema: it is too long'],
    [{ tool: { name: 'weather' } }, text('weather()'), 'calls the tool "weather"'],
    [
      { tool: { name: 'weather', arguments: { city: 'Oslo' } } },
      call('weather', { city: 'Bergen' }),
      'calls the tool "weather" with {"city":"Oslo"}',
    ],
    [{ tool: { name: 'weather', arguments: { toString: 1 } } }, call('weather', {}), 'calls the tool "weather" with {"toString":1}'],
    [{ tool: { name: 'weather' } }, call('weather', '{"city": '), 'calls the tool "weather"'],
    [{ similar: { to: 'b', atLeast: 0.8 } }, { similarity: 0.7991 }, 'is similar to "b": 0.799, less than 0.8'],
    [{ similar: { to: 'b', atLeast: 0.8 } }, {}, 'is similar to "b": 0.000, less than 0.8'],
    [
      { dimension: 3 },
      {
        vectors: [
          [1, 2, 3],
          [1, 2],
        ],
      },
      'has embeddings of dimension 3, not 2',
    ],
    [{ dimension: 3 }, {}, 'has embeddings of dimension 3, not none'],
    [{ best: 1 }, { ranking: [0, 1] }, 'ranks document 1 first, not 0'],
    [{ best: 0 }, {}, 'ranks document 0 first, not none'],
    [
      { transcript: { reference: 'one two three four', atMost: 0.2 } },
      text('one too three four'),
      'says "one two three four": word error rate 0.250, more than 0.2',
    ],
    [{ transcript: { reference: 'one', atMost: 0.5 } }, { text: 'one', heard: '' }, 'says "one": word error rate 1.000, more than 0.5'],
    [{ image: { width: 64 } }, seen(32, 32), 'shows an image of 64 x any pixels that is not blank: it has 32 x 32'],
    [{ image: {} }, seen(32, 32, true), 'shows an image of any x any pixels that is not blank: it has one colour'],
    [{ image: {} }, { seen: [undefined] }, 'shows an image of any x any pixels that is not blank: it is no PNG, JPEG or WebP image'],
    [{ image: {} }, { seen: [] }, 'shows an image of any x any pixels that is not blank: there is none'],
  ])('%j is not met by %j', (expectations, answer, unmet) => {
    expect(unmetExpectations(expectations, { ...NOTHING, ...answer })).toEqual([unmet]);
  });

  test('names every expectation that is not met', () => {
    expect(unmetExpectations({ contains: 'a', matches: 'b', schema: {} }, NOTHING)).toEqual([
      'contains "a"',
      'matches "b"',
      'satisfies the JSON Schema: it is not JSON',
    ]);
  });
});

describe('wordErrorRate()', () => {
  test.each([
    ['one two three', 'one two three', 0],
    ["It's 5 o'clock — now!", 'its 5 oclock now', 0],
    ['caf\u00e9', 'cafe\u0301', 0],
    ['one two three', 'one three', 1 / 3],
    ['one two three', 'one two two three', 1 / 3],
    ['one two three', 'two three one', 2 / 3],
    ['one two', '', 1],
    ['', 'one', 1],
    ['…', '', 0],
    ['one', 'a b c d e', 4],
    ['今日は晴れ', '今日は雨', 0.4],
    ['a b c d', 'b c d e f', 0.75],
  ])('%j heard as %j is %d', (reference, heard, rate) => expect(wordErrorRate(reference, heard)).toBeCloseTo(rate, 10));
});

describe('cosine()', () => {
  test.each([
    [[1, 0], [2, 0], 1],
    [[1, 0], [0, 1], 0],
    [[1, 2], [-1, -2], -1],
    [[1, 2], [1, 2, 3], 0],
    [[0, 0], [1, 1], 0],
    [[], [], 0],
  ])('of %j and %j is %d', (one, other, expected) => expect(cosine(one, other)).toBeCloseTo(expected, 10));
});
