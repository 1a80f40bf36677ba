/**
 * Describes what an answer of the service must contain for `svcctl` to read it. Other fields pass through. Not for what users write: these checks name the first problem alone, and
 * correct nothing. Loading a package for schemas would take longer than the rest of most verbs.
 */

/** `T` is the type of the values that have the shape. */
export interface Shape<T> {
  /** Returns undefined for a value of this shape, otherwise the first problem: `"slots.0.name": expected a text`. `at`: keys from the whole answer to the value. */
  problem(value: unknown, at?: readonly string[]): string | undefined;
  /** Only for the compiler; never set. */
  readonly type?: T;
}

/** The type of values of a shape. */
export type Read<S> = S extends Shape<infer T> ? T : never;

type Shapes = Readonly<Record<string, Shape<unknown>>>;
type MaybeKeys<S extends Shapes> = { [Key in keyof S]: undefined extends Read<S[Key]> ? Key : never }[keyof S];
type Fields<S extends Shapes> = { readonly [Key in Exclude<keyof S, MaybeKeys<S>>]: Read<S[Key]> } & {
  readonly [Key in MaybeKeys<S>]?: Read<S[Key]>;
};

export const text = scalar<string>('a text', (value) => typeof value === 'string');
export const count = scalar<number>('a number', (value) => typeof value === 'number');
export const flag = scalar<boolean>('true or false', (value) => typeof value === 'boolean');
export const anything: Shape<unknown> = { problem: () => undefined };

function scalar<T>(what: string, matches: (value: unknown) => boolean): Shape<T> {
  return { problem: (value, at = []) => (matches(value) ? undefined : expected(what, at)) };
}

/** One of these texts. */
export function oneOf<const T extends string>(texts: readonly T[]): Shape<T> {
  return scalar(`one of ${texts.join(', ')}`, (value) => texts.some((each) => each === value));
}

export function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return { problem: (value, at = []) => (value === null ? undefined : shape.problem(value, at)) };
}

/** The field may also be null, or missing. */
export function maybe<T>(shape: Shape<T>): Shape<T | null | undefined> {
  return { problem: (value, at = []) => (value === null || value === undefined ? undefined : shape.problem(value, at)) };
}

export function each<T>(shape: Shape<T>): Shape<readonly T[]> {
  return { problem: (value, at = []) => (Array.isArray(value) ? first(value.entries(), () => shape, at) : expected('a list', at)) };
}

/** An object in which every value has the shape. */
export function named<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return { problem: (value, at = []) => (isObject(value) ? first(Object.entries(value), () => shape, at) : expected('an object', at)) };
}

export function fields<S extends Shapes>(shapes: S): Shape<Fields<S>> {
  const wanted = Object.entries(shapes);
  return {
    problem(value, at = []) {
      if (!isObject(value)) return expected('an object', at);
      return first(
        wanted.map(([key]) => [key, value[key]] as const),
        (key) => shapes[key] ?? anything,
        at,
      );
    },
  };
}

function first(
  entries: Iterable<readonly [string | number, unknown]>,
  shapeOf: (key: string) => Shape<unknown>,
  at: readonly string[],
): string | undefined {
  for (const [key, value] of entries) {
    const problem = shapeOf(String(key)).problem(value, [...at, String(key)]);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Whether a value has the shape. */
export function hasShape<T>(shape: Shape<T>, value: unknown): value is T {
  return shape.problem(value) === undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function expected(what: string, at: readonly string[]): string {
  return `"${at.join('.')}": expected ${what}`;
}
