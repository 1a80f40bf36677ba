/** Formats keys, values and whole tables as TOML. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';

type Table = Readonly<Record<string, unknown>>;

/** Why a value has no TOML form, such as null; undefined if it has one. */
export function whyNotToml(value: unknown): string | undefined {
  if (typeof value === 'string')
    return value.isWellFormed() ? undefined : 'A string contains half of a surrogate pair; write valid Unicode';
  if (Array.isArray(value)) return value.map(whyNotToml).find((reason) => reason !== undefined);
  if (isTable(value)) return whyNotToml([...Object.keys(value), ...Object.values(value)]);
  if (value === null || value === undefined) return 'TOML has no "null"; remove it from lists';
  if (typeof value === 'number' || typeof value === 'boolean' || value instanceof Date) return undefined;
  return `A ${typeof value} has no TOML form; write a string, number, boolean, list or table`;
}

/** `key`, or `"a key"` where quotes are necessary. */
export function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : formatText(key);
}

/** A value on one line; a table becomes an inline table. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return formatText(value);
  if (typeof value === 'number') return formatNumber(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `[${value.map(formatValue).join(', ')}]`;
  if (!isTable(value)) return String(value);
  const entries = formatEntries(Object.entries(value));
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

/** `key = value` for each entry. */
export function formatEntries(entries: readonly (readonly [string, unknown])[]): readonly string[] {
  return entries.map(([key, value]) => `${formatKey(key)} = ${formatValue(value)}`);
}

/** The lines of a table and of the tables in it, each under its own header; an empty `path` is the top level. */
export function formatTable(path: readonly string[], table: Table): readonly string[] {
  const entries = Object.entries(table);
  const plain = formatEntries(entries.filter(([, value]) => !isTable(value)));
  const blocks = entries.flatMap(([key, value]) => (isTable(value) ? [formatTable([...path, key], value)] : []));
  // A header with no plain values is implied by the headers of the inner tables.
  const header = path.length > 0 && (plain.length > 0 || blocks.length === 0) ? [`[${path.map(formatKey).join('.')}]`] : [];
  return blocks.reduce((lines, block) => (lines.length === 0 ? block : [...lines, '', ...block]), [...header, ...plain]);
}

/** A whole file. */
export function formatToml(table: Table): string {
  return formatTable([], table)
    .map((line) => `${line}\n`)
    .join('');
}

/** JSON's escapes are valid in TOML, which also requires DEL to be escaped. */
function formatText(text: string): string {
  return JSON.stringify(text).replaceAll('\u{7F}', String.raw`\u007f`);
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const text = String(value);
  // A whole number that JavaScript cannot represent exactly is written as a float; parsers would refuse the integer.
  return Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?[0-9]+$/.test(text) ? `${text}.0` : text;
}
