/** Random TOML: documents as values, and texts of them in every style of the language. */
import fc from 'fast-check';

export type Table = { readonly [key: string]: unknown };

const bareKey = fc.constantFrom('a', 'b', 'c', 'model', 'env', 'default', 'idle_timeout', 'x-1', '7');
const oddKey = fc.oneof(
  fc.constantFrom('', 'a.b', 'a b', '"', '#', 'é😀', 'idleTimeout', '[x]', '\n'),
  fc.string({ maxLength: 4, unit: 'grapheme' }),
);
const key = fc.oneof({ arbitrary: bareKey, weight: 4 }, { arbitrary: oddKey, weight: 1 }).filter((text) => text !== '__proto__');

const scalar = fc.oneof(
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.string({ maxLength: 12, unit: 'grapheme' }),
  fc.constantFrom('line\nbreak', 'tab\t', '"""', "'''", 'back\\slash', '\u007f', '# no comment', ' ', '', '\r\n', '日本'),
  fc.constantFrom(0, -0, 1e21, -1e300, 2 ** 53, 0.1, Number.POSITIVE_INFINITY, Number.NaN),
);

/** Any TOML document without dates. */
export const tomlTable: fc.Arbitrary<Table> = fc.letrec<{ table: Table; value: unknown }>((tie) => ({
  table: fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalar,
    tie('table'),
    fc.array(fc.oneof({ maxDepth: 3 }, scalar, tie('value')), { maxLength: 3 }),
    fc.array(tie('table'), { maxLength: 3 }),
  ),
})).table;

/** A merge patch: a table with some `null` values. */
export const mergePatches: fc.Arbitrary<Table> = fc.letrec<{ patch: Table; value: unknown }>((tie) => ({
  patch: fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  value: fc.oneof({ maxDepth: 4 }, fc.constant(null), scalar, tie('patch'), fc.array(scalar, { maxLength: 3 })),
})).patch;

export interface Style {
  /** Small numbers, repeated endlessly: each choice uses one. */
  readonly choices: readonly number[];
  readonly newline: '\n' | '\r\n';
  readonly finalNewline: boolean;
}

export const styles: fc.Arbitrary<Style> = fc.record({
  choices: fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 40 }),
  newline: fc.constantFrom('\n' as const, '\r\n' as const),
  finalNewline: fc.boolean(),
});

/** Writes `table` as a person with that style might, with numbered comments. */
export function writeToml(table: Table, style: Style): string {
  let taken = 0;
  let comments = 0;
  const choose = (options: number) => (style.choices[taken++ % style.choices.length] ?? 0) % options;
  const remark = () => (choose(3) === 0 ? ` # remark ${comments++}` : '');
  const lines: string[] = [];

  const section = (path: readonly string[], value: Table) => {
    const later: (() => void)[] = [];
    for (const [name, inner] of Object.entries(value)) keyValue(path, [name], inner, later, false);
    for (const write of later) write();
  };
  const keyValue = (path: readonly string[], names: readonly string[], inner: unknown, later: (() => void)[], dotted: boolean) => {
    if (choose(5) === 0) lines.push(choose(2) === 0 ? '' : `${' '.repeat(choose(3))}# comment ${comments++}`);
    const form = isPlain(inner) ? choose(3) : 0;
    if (isPlain(inner) && form === 1 && Object.keys(inner).length > 0) {
      for (const [name, deeper] of Object.entries(inner)) keyValue(path, [...names, name], deeper, later, true);
    } else if (isPlain(inner) && form === 2 && !dotted) {
      later.push(() => {
        lines.push(
          `${choose(2) === 0 ? '\n' : ''}[${[...path, ...names].map((part) => writeKey(part, choose)).join(choose(2) === 0 ? '.' : ' . ')}]${remark()}`,
        );
        section([...path, ...names], inner);
      });
    } else if (!dotted && isTables(inner) && choose(2) === 0) {
      later.push(() => {
        for (const element of inner) {
          lines.push(`[[${[...path, ...names].map((part) => writeKey(part, choose)).join('.')}]]${remark()}`);
          for (const [name, deeper] of Object.entries(element)) lines.push(`${writeKey(name, choose)} = ${writeValue(deeper, choose)}`);
        }
      });
    } else {
      lines.push(
        `${' '.repeat(choose(3))}${names.map((part) => writeKey(part, choose)).join('.')} = ${writeValue(inner, choose)}${remark()}`,
      );
    }
  };
  section([], table);
  const text = lines.join('\n').replaceAll('\n', style.newline);
  return style.finalNewline && text !== '' ? text + style.newline : text;
}

function isPlain(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTables(value: unknown): value is readonly Table[] {
  return Array.isArray(value) && value.length > 0 && value.every(isPlain);
}

function writeKey(name: string, choose: (options: number) => number): string {
  return /^[A-Za-z0-9_-]+$/.test(name) && choose(4) > 0 ? name : quote(name);
}

function writeValue(value: unknown, choose: (options: number) => number): string {
  if (typeof value === 'string') {
    const literal = /^[^'\r\n\t\u007f]*$/.test(value) && !/\p{Cc}/u.test(value);
    return literal && choose(3) === 0 ? `'${value}'` : quote(value);
  }
  if (typeof value === 'number') return writeNumber(value);
  if (Array.isArray(value)) {
    const gap = choose(3) === 0 ? ' # in a list\n  ' : ' ';
    return `[${value.map((inner) => `${gap.trimStart()}${writeValue(inner, choose)}`).join(`,${gap}`)}]`.replaceAll('[# in', '[ # in');
  }
  if (!isPlain(value)) return String(value);
  return `{${Object.entries(value)
    .map(([name, inner]) => ` ${writeKey(name, choose)} = ${writeValue(inner, choose)} `)
    .join(',')}}`;
}

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? '+inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  if (Number.isSafeInteger(value)) return String(value);
  return /[.e]/.test(String(value)) ? String(value) : `${value}.0`;
}

function quote(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}
