/** The rules about the shape of the code: no state in `decide/`, few parameters, short factories and classes, a small `platform/`, one term for each concept. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { lint, type Finding } from './lint-fixtures.ts';

const lines = (count: number, line: (index: number) => string) => Array.from({ length: count }, (_, index) => line(index)).join('\n');

/** What holds state between two calls, by what it is. */
const STATEFUL: Readonly<Record<string, string>> = {
  'a returned closure that assigns':
    'export function counter(): () => number {\n  let count = 0;\n  return () => {\n    count = count + 1;\n    return count;\n  };\n}\n',
  'a returned closure that counts': 'export function counter(): () => number {\n  let count = 0;\n  return () => count++;\n}\n',
  'a method of a returned object that sets an entry':
    'export function memo(): object {\n  const known = new Map<string, string>();\n  return {\n    keep(key: string): void {\n      known.set(key, key);\n    },\n  };\n}\n',
  'a method that adds to a set':
    'export function memo(): object {\n  const known = new Set<string>();\n  return { keep: (key: string) => known.add(key) };\n}\n',
  'a method that pushes to a list':
    'export function memo(): object {\n  const known: string[] = [];\n  return { keep: (key: string) => known.push(key) };\n}\n',
  'a method that assigns a field':
    'export function memo(): object {\n  const known = { last: 0 };\n  return {\n    keep(value: number): void {\n      known.last = value;\n    },\n  };\n}\n',
  'a closure in a named object that is returned':
    'export function template(): object {\n  let last: string | undefined;\n  const made = {\n    argv(port: string): string {\n      last ??= port;\n      return last;\n    },\n  };\n  return made;\n}\n',
  'a named inner function that is returned':
    'export function memo(): object {\n  let last = 0;\n  function keep(value: number): void {\n    last = value;\n  }\n  return { keep, get: () => last };\n}\n',
  'an inner function that a returned one calls':
    'export function memo(): object {\n  let last = 0;\n  const keep = (value: number): void => {\n    last = value;\n  };\n  return {\n    twice(value: number): number {\n      keep(2 * value);\n      return last;\n    },\n  };\n}\n',
  'an arrow function that returns a closure': 'export const counter = (count: number) => (): number => (count += 1);\n',
  'a closure in a returned conditional':
    'export function memo(on: boolean): (() => number) | undefined {\n  let count = 0;\n  return on ? () => (count += 1) : undefined;\n}\n',
  'a class with a field that changes': 'export class Cursor {\n  position = 0;\n  step(): void {\n    this.position += 1;\n  }\n}\n',
  'a class with a private field that changes':
    'export class Cursor {\n  #position = 0;\n  step(): number {\n    return (this.#position += 1);\n  }\n}\n',
  'a class with a collection that changes':
    'export class Names {\n  readonly #known = new Set<string>();\n  keep(name: string): void {\n    this.#known.add(name);\n  }\n}\n',
  'an object that changes itself':
    'export const counter = {\n  count: 0,\n  next(): number {\n    this.count += 1;\n    return this.count;\n  },\n};\n',
  'an exported function that changes its argument':
    'export function addTo(names: Set<string>, name: string): void {\n  names.add(name);\n}\n',
  'an exported function that changes a field of its argument':
    'export const rename = (slot: { name: string }): void => {\n  slot.name = "";\n};\n',
  'a factory by its name': 'export function createPlan(): number {\n  return 1;\n}\n',
  'a factory by the name of a constant': 'export const createPlan = (): number => 1;\n',
};

/** What changes only while its function runs, or never. */
const PURE: Readonly<Record<string, string>> = {
  'a loop over a local variable':
    'export function sum(values: readonly number[]): number {\n  let total = 0;\n  for (const value of values) total += value;\n  return total;\n}\n',
  'a callback that changes a local variable':
    'export function unique(values: readonly string[]): readonly string[] {\n  const seen = new Set<string>();\n  return values.filter((value) => {\n    if (seen.has(value)) return false;\n    seen.add(value);\n    return true;\n  });\n}\n',
  'a local function that is only called':
    'export function count(values: readonly string[]): number {\n  let found = 0;\n  const note = (): void => {\n    found += 1;\n  };\n  for (const value of values) if (value !== "") note();\n  return found;\n}\n',
  'a returned closure that reads':
    'export function adder(by: number): (value: number) => number {\n  const twice = 2 * by;\n  return (value) => value + twice;\n}\n',
  'a returned closure with a variable of its own':
    'export function sum(): (values: readonly number[]) => number {\n  return (values) => {\n    let total = 0;\n    for (const value of values) total += value;\n    return total;\n  };\n}\n',
  'a returned object with a filled map':
    'export function index(names: readonly string[]): { readonly byName: ReadonlyMap<string, number> } {\n  const byName = new Map<string, number>();\n  names.forEach((name, at) => byName.set(name, at));\n  return { byName };\n}\n',
  'a helper that adds to a list of its caller':
    'export function both(): readonly string[] {\n  const names: string[] = [];\n  addTo(names);\n  return names;\n}\n\nfunction addTo(names: string[]): void {\n  names.push("a", "b");\n}\n',
  'an argument that is replaced by a default':
    'export function nameOf(name: string | undefined): string {\n  name ??= "primary";\n  return name;\n}\n',
  'a class whose fields stay':
    'export class Range {\n  readonly first: number;\n  constructor(first: number) {\n    this.first = first;\n  }\n}\n',
  'an error with a field': 'export class Refused extends Error {\n  status = 400;\n}\n',
  'a name that only begins like a factory': 'export function created(): number {\n  return 1;\n}\n',
};

const parameters = (count: number) => lines(count, (index) => `p${index}: number,`).replaceAll('\n', ' ');
const body = (count: number) => `{ return ${lines(count, (index) => `p${index}`).replaceAll('\n', ' + ')}; }`;
const PARAMETERS: Readonly<Record<string, (count: number) => string>> = {
  'a function': (count) => `export function sum(${parameters(count)}): number ${body(count)}\n`,
  'an arrow function': (count) => `export const sum = (${parameters(count)}): number => ${body(count)};\n`,
  'a method': (count) => `export const sums = { sum(${parameters(count)}): number ${body(count)} };\n`,
  'a method of a class': (count) => `export class Sums { sum(${parameters(count)}): number ${body(count)} }\n`,
  'a constructor': (count) => `export class Sums { readonly sum: number; constructor(${parameters(count)}) { this.sum = p0; } }\n`,
};

const factory = (parts: number) =>
  `export function createCounter(take: (each: number) => void): object {\n  return {\n${lines(
    parts,
    (part) => `    part${part}() {\n${lines(4, (index) => `      take(${index});`)}\n    },`,
  )}\n  };\n}\n`;
const classOf = (methods: number) =>
  `export class Counter {\n${lines(methods, (part) => `  part${part}(take: (each: number) => void): void {\n    take(${part});\n    take(${part});\n  }`)}\n}\n`;

const WORDS: Readonly<Record<string, string>> = {
  'src/reconciler/in-comment.ts': '/** Goes into the notebook. */\nexport const one = 1;\n',
  'src/reconciler/in-line-comment.ts': '// a sighting of a pod\nexport const one = 1;\n',
  'src/reconciler/in-text.ts': "export const text = 'The last words of it';\n",
  'src/reconciler/in-template.ts': 'export const text = (slot: string): string => `Mend slot ${slot}`;\n',
  'src/reconciler/in-name.ts': 'export const lastWordsOf = 1;\n',
  'src/reconciler/in-type.ts': 'export interface WorkloadNotebook {\n  readonly size: number;\n}\n',
  'src/reconciler/in-key.ts': 'export const facts = { recentTrouble: 1 };\n',
  'src/gateway/notebook.ts': 'export const one = 1;\n',
  'test/gateway/notebook.test.ts': 'export const one = 1;\n',
};
const FINE_WORDS: Readonly<Record<string, string>> = {
  'src/gateway/lease.ts': '/** Renews the lease, whoever holds it. */\nexport const lease = 1;\n',
  'src/reconciler/in-sentence.ts': '/** Trouble with one slot affects only that slot. */\nexport const one = 1;\n',
  'src/reconciler/parts-of-words.ts': '/** Broadcasts what was recommended, amended and forecast. */\nexport const everlasting = 1;\n',
  'test/gateway/words-in-tests.test.ts': '// a notebook\nexport const one = 1;\n',
};

const stateful = Object.entries(STATEFUL).map(([what, text], index) => ({
  what,
  text,
  path: `src/reconciler/decide/stateful-${index}.ts`,
}));
const pure = Object.entries(PURE).map(([what, text], index) => ({ what, text, path: `src/reconciler/decide/pure-${index}.ts` }));
const outside = stateful.map(({ text }, index) => ({ text, path: `src/reconciler/stateful-${index}.ts` }));
const filesOf = (cases: readonly { readonly path: string; readonly text: string }[]) =>
  Object.fromEntries(cases.map(({ path, text }) => [path, text]));
const parameterCases = Object.entries(PARAMETERS).flatMap(([what, text], index) =>
  [4, 5].map((count) => ({ what, count, path: `src/files/p-${index}-${count}.ts`, text: text(count) })),
);
const SHAPES = {
  'src/files/long-factory.ts': factory(25),
  'src/files/short-factory.ts': factory(24),
  'src/files/long-class.ts': classOf(38),
  'src/files/short-class.ts': classOf(37),
  'src/platform/long-file.ts': `${lines(121, (index) => `export const name${index} = ${index};`)}\n`,
  'src/platform/short-file.ts': `${lines(120, (index) => `export const name${index} = ${index};`)}\n`,
};

describe('The rules about shape', () => {
  let found: ReadonlyMap<string, readonly Finding[]>;
  beforeAll(async () => {
    const all = { ...filesOf([...stateful, ...pure, ...outside, ...parameterCases]), ...SHAPES, ...WORDS, ...FINE_WORDS };
    found = Map.groupBy(await lint(all), ({ file }) => file);
  }, 60_000);
  const ofRule = (path: string, rule: string) => (found.get(path) ?? []).filter((each) => each.rule === rule);

  test.each(stateful)('in decide/, $what is refused', ({ path }) => {
    expect(ofRule(path, 'house(pure-decide)')).toHaveLength(1);
  });

  test.each(pure)('in decide/, $what is let through', ({ path }) => {
    expect(found.get(path)).toBeUndefined();
  });

  test('outside of decide/, state is let through', () => {
    expect(outside.filter(({ path }) => found.has(path))).toEqual([]);
  });

  test.each(parameterCases)('$what with $count parameters', ({ path, count }) => {
    expect(ofRule(path, 'eslint(max-params)')).toHaveLength(count > 4 ? 1 : 0);
  });

  test.each([
    ['src/files/long-factory.ts', 1],
    ['src/files/short-factory.ts', 0],
    ['src/files/long-class.ts', 1],
    ['src/files/short-class.ts', 0],
  ])('%s: a factory and a class as a whole have at most 150 lines', (path, times) => {
    expect(ofRule(path, 'house(function-length)')).toHaveLength(times);
  });

  test('a file of platform/ has at most 120 lines', () => {
    expect(ofRule('src/platform/long-file.ts', 'house(small-platform)').map(({ message }) => message)).toEqual([
      'Move an idea from "src/platform" into a folder of its own, or to the folder that it serves: this file has 121 lines, and at most 120 are allowed',
    ]);
    expect(found.get('src/platform/short-file.ts')).toBeUndefined();
  });

  test.each(Object.keys(WORDS))('%s is refused for a word', (path) => {
    expect(ofRule(path, 'house(glossary)')).toHaveLength(1);
  });

  test.each(Object.keys(FINE_WORDS))('%s is let through', (path) => {
    expect(found.get(path)).toBeUndefined();
  });
});

test('platform/ has at most 680 lines, and its longest file is reported when it has more', async () => {
  const part = `${lines(114, (index) => `export const name${index} = ${index};`)}\n`;
  const parts = Object.fromEntries(['one', 'two', 'three', 'four', 'six', 'seven'].map((name) => [`src/platform/${name}.ts`, part]));
  const found = await lint({ ...parts, 'src/platform/deep/five.ts': 'export const five = 5;\n', 'src/files/other.ts': part });
  expect(found.map(({ file, rule }) => [file, rule])).toEqual([['src/platform/four.ts', 'house(small-platform)']]);
  expect(found[0]?.message).toContain('the folder has 685 lines, and at most 680 are allowed');
});
