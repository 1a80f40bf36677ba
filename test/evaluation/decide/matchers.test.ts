import { describe, expect, test } from '@jest/globals';
import { compilePattern, compileSchema } from '../../../src/evaluation/decide/matchers.ts';

describe('patterns', () => {
  test('that would never end as those of JavaScript, end', () => {
    const { test: matches } = compilePattern('^(?:(?:a|a)*)*b$');
    expect(matches?.('a'.repeat(60_000))).toBe(false);
    expect(matches?.(`${'a'.repeat(60_000)}b`)).toBe(true);
  });

  test.each(['((x{100}){100}){100}', '(a', '[z-a]', '\\1', '(?<!a)b', '.{1000}.{10}'])('refuses %j', (pattern) => {
    expect(compilePattern(pattern)).toEqual({ mistake: expect.any(String) });
  });
});

describe('JSON Schemas', () => {
  test('use the same patterns, each its own', () => {
    const { test: problemOf } = compileSchema({
      properties: { a: { type: 'string', pattern: '^(a|a)*$' }, b: { type: 'string', pattern: '^b$' } },
    });
    expect(problemOf?.(JSON.stringify({ a: 'a'.repeat(50_000), b: 'b' }))).toBeUndefined();
    expect(problemOf?.(JSON.stringify({ a: `${'a'.repeat(50_000)}!` }))).toMatch(/answer\/a must match pattern/);
    expect(problemOf?.(JSON.stringify({ a: 'a', b: 'a' }))).toMatch(/answer\/b must match pattern/);
    expect(problemOf?.('1')).toBeUndefined();
  });

  test('may name properties of objects, but do not refer', () => {
    const { test: problemOf } = compileSchema({ properties: { constructor: { type: 'string' } }, required: ['constructor'] });
    expect(problemOf?.('{}')).toMatch(/must have required property 'constructor'/);
    expect(problemOf?.('{"constructor": "a"}')).toBeUndefined();
    for (const key of ['$ref', '$dynamicRef', '$recursiveRef', '$async', 'uniqueItems'])
      expect(compileSchema({ anyOf: [{ items: { [key]: '#' } }] }).mistake).toContain(`Remove "${key}"`);
  });

  test.each([{ type: 'strin' }, { properties: [] }, { minimum: 'a' }])('refuses %j', (schema) => {
    expect(compileSchema(schema).mistake).toMatch(/^Correct the JSON Schema: /);
  });
});
