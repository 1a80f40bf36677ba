import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { computeBytes, problemInFormula } from '../../../src/schema/slot/engine-template.ts';

const VALUES = { weights: 1000, context: 10, gpus: 2 };

test.each([
  ['weights', 1000],
  ['weights * 1.2 + 2Gi', 1200 + 2 * 2 ** 30],
  ['weights*1.5+context*4k', 1500 + 40_000],
  ['(weights + 500) / gpus', 750],
  ['weights - context * 2', 980],
  ['2 + 3 * 4', 14],
  ['(2 + 3) * 4', 20],
  ['8 / 4 / 2', 1],
  ['-(-5)', 5],
  ['1.5', 2],
])('%s is computed', (text, bytes) => {
  expect(problemInFormula(text)).toBeUndefined();
  expect(computeBytes(text, VALUES)).toBe(bytes);
});

test.each([
  ['', 'Write a number, a size or a name at the end'],
  ['weights *', 'Write a number, a size or a name at the end'],
  ['* weights', 'Write a number, a size or a name before "*"'],
  ['(weights', 'Close the parenthesis with ")"'],
  ['weights)', 'Write + - * or / before ")"'],
  ['weights weights', 'Write + - * or / before "weights"'],
  ['weight * 2', 'Use one of "weights", "context", "gpus", not "weight"'],
  ['process.exit(1)', 'Write numbers, sizes such as "2Gi", names and + - * / ( ), not ".exit(1)"'],
  ['constructor', 'Use one of "weights", "context", "gpus", not "constructor"'],
  ['__proto__ + 1', 'Use one of "weights", "context", "gpus", not "__proto__"'],
  ['2GB', 'Write numbers, sizes such as "2Gi", names and + - * / ( ), not "2GB"'],
  [
    'weights / 0',
    'The formula "weights / 0" gives no size for weights = 1073741824, context = 0, gpus = 1: it divides by zero or is too large',
  ],
  [
    'weights / context',
    'The formula "weights / context" gives no size for weights = 1073741824, context = 0, gpus = 1: it divides by zero or is too large',
  ],
  ['0 / 0', 'The formula "0 / 0" gives no size for weights = 1073741824, context = 0, gpus = 1: it divides by zero or is too large'],
  ['1 - weights', 'The formula "1 - weights" gives no size for weights = 1073741824, context = 0, gpus = 1: it is negative'],
])('"%s" is refused with what is wrong', (text, message) => {
  expect(problemInFormula(text)).toBe(message);
});

test('a formula that divides by zero for one model only fails for that model', () => {
  const text = 'weights / (weights - 7)';
  expect(problemInFormula(text)).toBeUndefined();
  expect(() => computeBytes(text, { ...VALUES, weights: 7 })).toThrow('divides by zero');
});

test('any text is parsed or refused with a message, and nothing is run', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 200 }), fc.stringMatching(/^[-+*/() 0-9.a-zGi]{0,200}$/)), (text) => {
      const problem = problemInFormula(text);
      if (problem === undefined) expect(computeBytes(text, { weights: 2 ** 30, context: 4096, gpus: 1 })).toBeGreaterThanOrEqual(0);
      else expect(problem).not.toMatch(/undefined|call stack/);
    }),
  );
});
