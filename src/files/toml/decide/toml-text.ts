/** Writes keys, values and whole tables as TOML. */
import { isTable } from '../../../schema/key-case.ts';

type Table = Readonly<Record<string, unknown>>;

/** Why a value cannot be TOML; undefined: it can. JSON's null has no counterpart, nor has half of a surrogate pair. Pure. */
export function whyNotToml(value: unknown): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : 'Write valid Unicode: a text holds half of a surrogate pair';
  if (Array.isArray(value)) return firstOf(value);
  if (isTable(value)) return firstOf([...Object.keys(value), ...Object.values(value)]);
  if (value === null || value === undefined) return 'Leave "null" out of lists: TOML has no such value';
  if (typeof value === 'number' || typeof value === 'boolean' || value instanceof Date) return undefined;
  return `Write a text, number, boolean, list or table, not a ${typeof value}`;
}

/** `key`, or `"a key"` where it needs quotes. Pure. */
export function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : formatText(key);
}

/** A value on one line; a table becomes an inline table. Pure. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return formatText(value);
  if (typeof value === 'number') return formatNumber(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `[${value.map(formatValue).join(', ')}]`;
  if (!isTable(value)) return String(value);
  const entries = Object.entries(value).map(([key, inner]) => `${formatKey(key)} = ${formatValue(inner)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

/** The lines of a table and of the tables in it, each under its header; `path` empty: the top. Pure. */
export function formatTable(path: readonly string[], table: Table): readonly string[] {
  const entries = Object.entries(table);
  const own = entries.filter(([, value]) => !isTable(value)).map(([key, value]) => `${formatKey(key)} = ${formatValue(value)}`);
  const inner = entries.flatMap(([key, value]) => (isTable(value) ? [{ path: [...path, key], table: value }] : []));
  // A header that would hold nothing but other tables is left out: those imply it.
  const header = path.length > 0 && (own.length > 0 || inner.length === 0) ? [`[${path.map(formatKey).join('.')}]`] : [];
  const blocks = inner.map((block) => formatTable(block.path, block.table));
  const head = [...header, ...own];
  return blocks.reduce((lines, block) => (lines.length === 0 ? block : [...lines, '', ...block]), head);
}

/** A whole file. Pure. */
export function formatToml(table: Table): string {
  return formatTable([], table)
    .map((line) => `${line}\n`)
    .join('');
}

function firstOf(values: readonly unknown[]): string | undefined {
  for (const value of values) {
    const reason = whyNotToml(value);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** JSON's escapes are TOML's, but that TOML wants DEL escaped too. */
function formatText(text: string): string {
  return JSON.stringify(text).replaceAll('\u{7F}', String.raw`\u007f`);
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const text = String(value);
  // Whole numbers that JavaScript cannot hold exactly are floats; as integers a reader would refuse them.
  return Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?[0-9]+$/.test(text) ? `${text}.0` : text;
}
