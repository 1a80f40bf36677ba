import { describe, expect, test } from '@jest/globals';
import {
  anything,
  count,
  each,
  fields,
  flag,
  hasShape,
  maybe,
  named,
  oneOf,
  orNull,
  text,
  type Shape,
} from '../../src/cli/connect/answer-shape.ts';

const model = fields({ name: text, size: maybe(count), parts: each(fields({ path: orNull(text) })) });

describe('An answer has its shape', () => {
  test.each<[string, Shape<unknown>, unknown]>([
    ['with all fields', model, { name: 'm', size: 1, parts: [{ path: 'a' }, { path: null }] }],
    ['without a field that may be missing', model, { name: 'm', parts: [] }],
    ['with null for such a field', model, { name: 'm', size: null, parts: [] }],
    ['with fields that a newer service sends', model, { name: 'm', parts: [], more: true }],
    ['as a table of names', named(count), { a: 1, b: 2 }],
    ['as one of a few texts', oneOf(['api', 'admin']), 'admin'],
    ['as true or false', flag, false],
    ['if anything is allowed', anything, undefined],
  ])('%s', (_, shape, value) => {
    expect(shape.problem(value)).toBeUndefined();
    expect(hasShape(shape, value)).toBe(true);
  });
});

describe('An answer has another shape, and the first problem is named', () => {
  test.each<[unknown, Shape<unknown>, string]>([
    [undefined, model, '"": expected an object'],
    [[], model, '"": expected an object'],
    [{}, model, '"name": expected a text'],
    [{ name: 'm', size: '1', parts: [] }, model, '"size": expected a number'],
    [{ name: 'm', parts: {} }, model, '"parts": expected a list'],
    [{ name: 'm', parts: [{ path: 'a' }, {}] }, model, '"parts.1.path": expected a text'],
    [{ a: 1, b: null }, named(count), '"b": expected a number'],
    [null, named(count), '"": expected an object'],
    ['root', oneOf(['api', 'admin']), '"": expected one of api, admin'],
    ['true', flag, '"": expected true or false'],
  ])('%j', (value, shape, problem) => {
    expect(shape.problem(value)).toBe(problem);
    expect(hasShape(shape, value)).toBe(false);
  });
});
