/**
 * TOML and the API write a slot's keys in snake_case, the SlotSpec resource and the program in camelCase. Both ways here, and without
 * loss: one renaming is its own inverse (`_x` becomes `X`, `X` becomes `_x`), so that a key in the wrong case stays a wrong key.
 * The keys below `env` and `nodeSelector` are people's own and are never touched.
 */

const RECORDS_IN_SNAKE_CASE: ReadonlySet<string> = new Set(['env', 'node_selector']);
const RECORDS_IN_CAMEL_CASE: ReadonlySet<string> = new Set(['env', 'nodeSelector']);

type Path = readonly (string | number)[];

/** A slot document in snake_case as camelCase. What is no document comes back as it is. Pure. */
export function toCamelCase(document: unknown): unknown {
  return renameTop(document, RECORDS_IN_SNAKE_CASE);
}

/** A slot document in camelCase as snake_case. Pure. */
export function toSnakeCase(document: unknown): unknown {
  return renameTop(document, RECORDS_IN_CAMEL_CASE);
}

/** The path in snake_case of a path in camelCase, as problems carry it. Pure. */
export function pathToSnakeCase(path: Path): readonly (string | number)[] {
  const [root] = path;
  const ownKeys = typeof root === 'string' && RECORDS_IN_CAMEL_CASE.has(root);
  return path.map((part, index) => (typeof part === 'number' || (ownKeys && index > 0) ? part : renameKey(part)));
}

/** `idle_timeout` of `idleTimeout`, and the other way round. Pure. */
export function renameKey(key: string): string {
  return key.replace(/_[a-z]|[A-Z]/g, (match) => (match.startsWith('_') ? match.slice(1).toUpperCase() : `_${match.toLowerCase()}`));
}

/** A table of TOML or an object of JSON; no list, no date. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function renameTop(document: unknown, records: ReadonlySet<string>): unknown {
  if (!isTable(document)) return document;
  const entries = Object.entries(document).map(([key, value]) => [renameKey(key), records.has(key) ? copy(value) : rename(value)]);
  return Object.fromEntries(entries);
}

function rename(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rename);
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [renameKey(key), rename(inner)]));
}

/** Plain objects throughout, whatever prototype a parser gave its tables. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copy(inner)]));
}
