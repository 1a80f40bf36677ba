/**
 * Converts the keys of a slot document between snake_case (TOML and the API) and camelCase (the SlotSpec resource and the program).
 * The conversion is lossless: it is its own inverse (`_x` becomes `X`, `X` becomes `_x`), so a key in the wrong case stays wrong.
 * Keys below `env` and `nodeSelector` belong to users and are never changed.
 */

const RECORDS: ReadonlySet<unknown> = new Set(['env', 'node_selector', 'nodeSelector']);

/** How keys are written in the document that a message is about. */
export type KeyStyle = 'snake_case' | 'camelCase';

/** Converts a slot document from snake_case to camelCase. Returns anything but an object unchanged. Pure. */
export function toCamelCase(document: unknown): unknown {
  if (!isTable(document)) return document;
  const entries = Object.entries(document).map(([key, value]) => [renameKey(key), mapKeys(value, RECORDS.has(key) ? String : renameKey)]);
  return Object.fromEntries(entries);
}

/** Converts a slot document from camelCase to snake_case: the same function, because it is its own inverse. */
export function toSnakeCase(document: unknown): unknown {
  return toCamelCase(document);
}

/** Converts the path of a problem from camelCase to snake_case. Pure. */
export function pathToSnakeCase(path: readonly (string | number)[]): readonly (string | number)[] {
  const ownKeys = RECORDS.has(path[0]);
  return path.map((part, index) => (typeof part === 'number' || (ownKeys && index > 0) ? part : renameKey(part)));
}

/** Converts `idleTimeout` to `idle_timeout`, and the other way round. Pure. */
export function renameKey(key: string): string {
  return key.replace(/_[a-z]|[A-Z]/g, (match) => (match.startsWith('_') ? match.slice(1).toUpperCase() : `_${match.toLowerCase()}`));
}

/** Writes the keys in a message, which are in camelCase and in braces, in the given style. Pure. */
export function writeKeys(message: string, style: KeyStyle): string {
  return message.replace(/\{([A-Za-z]+)\}/g, (_match, key: string) => (style === 'snake_case' ? renameKey(key) : key));
}

/** Whether a value is a TOML table or a JSON object, and not an array or a date. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Returns a deep copy with other keys, made of plain objects whatever prototype a parser gave its tables. */
function mapKeys(value: unknown, mapKey: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((entry) => mapKeys(entry, mapKey));
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [mapKey(key), mapKeys(inner, mapKey)]));
}
