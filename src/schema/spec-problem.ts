/** One thing that is wrong with a slot's text, and how what zod finds becomes a sentence that says what would be right. */
import { z } from 'zod';
import { isTable, pathToSnakeCase, renameKey } from './key-case.ts';
import { nearestWord } from './nearest-word.ts';

/** `path` is in the schema's camelCase; sources add file, line and column. */
export interface SpecProblem {
  readonly path: readonly (string | number)[];
  /** What is wrong and what would be right. */
  readonly message: string;
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  /** From 1. */
  readonly column?: number;
  /** How keys are written where its reader mends it; unset: in snake_case. */
  readonly style?: KeyStyle;
}

/** How keys are written where the reader of a message writes them. */
export type KeyStyle = 'snake_case' | 'camelCase';

/** `img.toml:3:1: model.default: Write a text in quotes, not a whole number`. Pure. */
export function formatProblem(problem: SpecProblem, style: KeyStyle = problem.style ?? 'snake_case'): string {
  const path = style === 'snake_case' ? pathToSnakeCase(problem.path) : problem.path;
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined).join(':');
  return [place, path.map((part) => shortened(String(part))).join('.'), problem.message].filter((part) => part !== '').join(': ');
}

/** More are counted, not named: looking for what was meant takes time, and a text of one megabyte could hold a hundred thousand. */
const MOST_UNKNOWN = 50;

/** Every problem that zod found in `document`. Pure. */
export function problemsOfIssues(
  issues: readonly z.core.$ZodIssue[],
  document: unknown,
  schema: z.ZodType,
  style: KeyStyle,
): readonly SpecProblem[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
    if (issue.code !== 'unrecognized_keys') return [{ path, message: messageOf(issue, valueAt(document, path), path, style) }];
    const known = knownKeys(schema);
    const here = keysAt(schema, path);
    const named = issue.keys.slice(0, MOST_UNKNOWN).map((key) => ({ path: [...path, key], message: unknownKey(key, here, known, style) }));
    const more = issue.keys.length - named.length;
    return more === 0 ? named : [...named, { path, message: `There are ${more} more unknown keys here` }];
  });
}

function messageOf(issue: z.core.$ZodIssue, value: unknown, path: SpecProblem['path'], style: KeyStyle): string {
  if (value === undefined && issue.code !== 'custom') {
    const what = issue.code === 'invalid_type' && issue.expected === 'object' ? 'Add the table' : 'Set';
    return `${what} "${shownPath(path, style)}": it is required`;
  }
  const notThis = mayBeSecret(path) ? '' : `, not ${shown(value)}`;
  switch (issue.code) {
    case 'invalid_type':
      return `Write ${EXPECTED[issue.expected] ?? issue.expected}, not ${mayBeSecret(path) ? bareKindOf(value) : kindOf(value)}`;
    case 'invalid_value': {
      const meant = typeof value === 'string' ? nearestWord(value, issue.values.map(String)) : undefined;
      const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
      return `Use one of ${issue.values.map((allowed) => `"${String(allowed)}"`).join(', ')}${notThis}${hint}`;
    }
    case 'too_small':
      return `Use at least ${issue.minimum}${UNITS[issue.origin] ?? ''}, not ${sizeOf(value)}`;
    case 'too_big':
      return `Use at most ${issue.maximum}${UNITS[issue.origin] ?? ''}, not ${sizeOf(value)}`;
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message;
    case 'invalid_format':
      return `${issue.format === 'datetime' ? 'Write a time in UTC such as "2026-01-31T12:00:00Z"' : issue.message}${notThis}`;
    default:
      return issue.message;
  }
}

/** Values below `env` and arguments may be tokens: messages end up in logs and in answers. */
function mayBeSecret(path: SpecProblem['path']): boolean {
  return path[0] === 'env' || (path[0] === 'model' && path[1] === 'args');
}

const EXPECTED: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  string: 'a text in quotes',
  number: 'a number',
  int: 'a whole number',
  object: 'a table',
  record: 'a table',
  array: 'a list in brackets',
};

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date or time without quotes';
  if (typeof value === 'object') return 'a table';
  if (typeof value === 'string') return `the text ${shown(value)}`;
  return shown(value);
}

function bareKindOf(value: unknown): string {
  return typeof value === 'object' ? kindOf(value) : `a ${typeof value}`;
}

function sizeOf(value: unknown): string {
  return typeof value === 'string' || Array.isArray(value) ? String(value.length) : shown(value);
}

/** A value of the user's, short enough for a line. Tables are not shown: they may hold secrets of `env`. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(value));
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  return kindOf(value);
}

function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function shownPath(path: SpecProblem['path'], style: KeyStyle): string {
  return (style === 'snake_case' ? pathToSnakeCase(path) : path).join('.');
}

function unknownKey(key: string, here: readonly string[], known: ReadonlyMap<string, readonly string[]>, style: KeyStyle): string {
  const text = (name: string) => shortened(style === 'snake_case' ? renameKey(name) : name);
  const meant = nearestWord(key, here);
  if (meant !== undefined) return `Unknown key "${text(key)}"; did you mean "${text(meant)}"?`;
  const home = [...known].find(([, keys]) => keys.includes(key))?.[0];
  if (home !== undefined) {
    return `Unknown key "${text(key)}" here; ${home === '' ? 'it stands at the top, before the first table' : `it belongs in [${text(home)}]`}`;
  }
  return `Unknown key "${text(key)}"; known here: ${here.map((name) => `"${text(name)}"`).join(', ')}`;
}

/** Keys that may stand at a path. */
function keysAt(schema: unknown, [part, ...rest]: SpecProblem['path']): readonly string[] {
  const node = bare(schema);
  if (part === undefined) return keysOf(node);
  if (node instanceof z.ZodArray) return keysAt(node.element, rest);
  if (node instanceof z.ZodRecord) return keysAt(node.valueType, rest);
  return node instanceof z.ZodObject && Object.hasOwn(node.shape, part) ? keysAt(node.shape[part], rest) : [];
}

function keysOf(node: unknown): readonly string[] {
  if (node instanceof z.ZodRecord && node.keyType instanceof z.ZodEnum) return node.keyType.options.map(String);
  return node instanceof z.ZodObject ? Object.keys(node.shape) : [];
}

function bare(node: unknown): unknown {
  return node instanceof z.ZodOptional || node instanceof z.ZodDefault || node instanceof z.ZodPrefault ? bare(node.unwrap()) : node;
}

/** Known keys by the table they stand in: '' is the top. */
function knownKeys(schema: z.ZodType): ReadonlyMap<string, readonly string[]> {
  const known = new Map<string, readonly string[]>();
  const visit = (wrapped: unknown, place: string): void => {
    const node = bare(wrapped);
    if (!(node instanceof z.ZodObject)) return;
    known.set(place, Object.keys(node.shape));
    for (const [key, inner] of Object.entries(node.shape)) visit(inner, place === '' ? key : `${place}.${key}`);
  };
  visit(schema, '');
  return known;
}

function valueAt(document: unknown, path: SpecProblem['path']): unknown {
  let value = document;
  for (const part of path) {
    if (Array.isArray(value) && typeof part === 'number') value = value[part];
    else if (isTable(value) && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}
