import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { shapeOf } from '../../scripts/generate/publish-answer-shapes.ts';
import { answerProblem, isAnswer, shapeProblem } from '../../src/cli/connect/answer-shape.ts';

const Model = z.object({
  name: z.string().min(3),
  size: z.int().min(0).nullable(),
  kind: z.enum(['chat', 'embed']),
  parts: z.array(z.object({ path: z.string().nullable() })),
  more: z.unknown().optional(),
});
const model = shapeOf(Model);
const counts = shapeOf(z.record(z.string(), z.number()));
const GOOD = { name: 'm', size: 1, kind: 'chat', parts: [{ path: 'a' }, { path: null }] };

test('A shape keeps of a schema what an answer of any version must have', () => {
  expect(model).toEqual({ name: 'string', 'size?': 'number', kind: 'string', parts: [{ 'path?': 'string' }], 'more?': 'any' });
});

test('A schema that the checks do not know is refused', () => {
  expect(() => shapeOf(z.union([z.string(), z.number()]))).toThrow(/Teach "svcctl" to check a value of this schema/);
});

describe('An answer has its shape', () => {
  test.each<[string, typeof model, unknown]>([
    ['with all fields', model, GOOD],
    ['without a field that can be null', model, { name: 'm', kind: 'chat', parts: [{}] }],
    ['with null for such a field', model, { ...GOOD, size: null }],
    ['with fields that a newer service sends', model, { ...GOOD, other: true }],
    ['with a string that only a newer schema lists', model, { ...GOOD, kind: 'rerank' }],
    ['as a record', counts, { a: 1, 'b?': 2 }],
    ['as true or false', shapeOf(z.boolean()), false],
    ['if anything is allowed', shapeOf(z.unknown()), undefined],
  ])('%s', (_, shape, value) => {
    expect(shapeProblem(shape, value)).toBeUndefined();
  });
});

describe('An answer has another shape, and the first problem is named', () => {
  test.each<[unknown, typeof model, string]>([
    [undefined, model, '"": expected an object'],
    [[], model, '"": expected an object'],
    [{}, model, '"name": expected a string'],
    [{ ...GOOD, size: '1' }, model, '"size": expected a number'],
    [{ ...GOOD, parts: {} }, model, '"parts": expected an array'],
    [{ ...GOOD, parts: [{ path: 'a' }, { path: 1 }] }, model, '"parts.1.path": expected a string'],
    [{ a: 1, b: null }, counts, '"b": expected a number'],
    [null, counts, '"": expected an object'],
    ['true', shapeOf(z.boolean()), '"": expected a boolean'],
  ])('%j', (value, shape, problem) => {
    expect(shapeProblem(shape, value)).toBe(problem);
  });
});

test('Answers of the service are checked by name', () => {
  const slots = { slots: [{ name: 'img', in_flight: 0, parked: 0 }] };
  expect(isAnswer('status', { version: '1.0.0', ...slots })).toBe(true);
  expect(answerProblem('status', slots)).toBe('"version": expected a string');
  expect(isAnswer('status', slots)).toBe(false);
});
