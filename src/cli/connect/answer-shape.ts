/** Checks answers against `answer-shapes.json`, generated from `answers.ts`. Unlisted fields pass through. */
import SHAPES from './answer-shapes.json' with { type: 'json' };
import { isTable } from '../../schema/words/key-case.ts';
import type { Answer, AnswerName } from './api-answers.ts';

/**
 * The name of a type, `any`, the shape of each item of an array, or the shapes of fields. A field `name?` may be
 * missing or null; `*` stands for every field of a record.
 */
export type Shape = string | readonly Shape[] | { readonly [field: string]: Shape };

const ALL: Readonly<Record<AnswerName, Shape>> = SHAPES;

export const isAnswer = <N extends AnswerName>(name: N, value: unknown): value is Answer<N> => answerProblem(name, value) === undefined;

export const answerProblem = (name: AnswerName, value: unknown): string | undefined => shapeProblem(ALL[name], value);

/** Returns the first problem, such as `"slots.0.name": expected a string`. `at`: keys from the answer to the value. */
export function shapeProblem(shape: Shape, value: unknown, at: readonly string[] = []): string | undefined {
  if (shape === 'any') return undefined;
  if (typeof shape === 'string') return typeof value === shape ? undefined : expected(`a ${shape}`, at);
  if (isList(shape)) {
    if (!Array.isArray(value)) return expected('an array', at);
    const problems = value.entries().map(([index, item]) => shapeProblem(shape[0] ?? 'any', item, [...at, String(index)]));
    return problems.find((problem) => problem !== undefined);
  }
  if (!isTable(value)) return expected('an object', at);
  const { '*': every } = shape;
  const fields = every === undefined ? Object.entries(shape) : Object.keys(value).map((key) => [key, every] as const);
  const problems = fields.values().map(([field, inner]) => {
    const key = every === undefined ? field.replace(/\?$/, '') : field;
    const isOptional = key !== field && (value[key] === undefined || value[key] === null);
    return isOptional ? undefined : shapeProblem(inner, value[key], [...at, key]);
  });
  return problems.find((problem) => problem !== undefined);
}

const isList = (shape: Exclude<Shape, string>): shape is readonly Shape[] => Array.isArray(shape);

const expected = (what: string, at: readonly string[]): string => `"${at.join('.')}": expected ${what}`;
