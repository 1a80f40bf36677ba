/** Checks answers against `answer-shapes.json`, generated from `answers.ts`. Unlisted fields pass through. */
import SHAPES from './answer-shapes.json' with { type: 'json' };
import type { Answer, AnswerName } from './api-answers.ts';

/**
 * The name of a type, `any`, the shape of each item of an array, or the shapes of fields. A field `name?` may be
 * missing or null; `*` stands for every field of a record.
 */
export type Shape = string | readonly Shape[] | { readonly [field: string]: Shape };

const ALL: Readonly<Record<AnswerName, Shape>> = SHAPES;

export function isAnswer<N extends AnswerName>(name: N, value: unknown): value is Answer<N> {
  return answerProblem(name, value) === undefined;
}

export function answerProblem(name: AnswerName, value: unknown): string | undefined {
  return shapeProblem(ALL[name], value);
}

/** Returns the first problem, such as `"slots.0.name": expected a string`. `at`: keys from the answer to the value. */
export function shapeProblem(shape: Shape, value: unknown, at: readonly string[] = []): string | undefined {
  if (shape === 'any') return undefined;
  if (typeof shape === 'string') return typeof value === shape ? undefined : expected(`a ${shape}`, at);
  if (isList(shape)) {
    if (!Array.isArray(value)) return expected('an array', at);
    return first(value.entries().map(([index, item]) => shapeProblem(shape[0] ?? 'any', item, [...at, String(index)])));
  }
  if (!isObject(value)) return expected('an object', at);
  const { '*': every } = shape;
  const fields = every === undefined ? Object.entries(shape) : Object.keys(value).map((key) => [key, every] as const);
  return first(
    fields.values().map(([field, inner]) => {
      const key = every === undefined ? field.replace(/\?$/, '') : field;
      const isOptional = key !== field && (value[key] === undefined || value[key] === null);
      return isOptional ? undefined : shapeProblem(inner, value[key], [...at, key]);
    }),
  );
}

function first(problems: IteratorObject<string | undefined>): string | undefined {
  return problems.find((problem) => problem !== undefined);
}

function isList(shape: Exclude<Shape, string>): shape is readonly Shape[] {
  return Array.isArray(shape);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function expected(what: string, at: readonly string[]): string {
  return `"${at.join('.')}": expected ${what}`;
}
