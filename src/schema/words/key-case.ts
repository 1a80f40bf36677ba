/**
 * Converts the keys of a slot document between snake_case (TOML and the API) and camelCase (the SlotSpec resource and
 * the program). The conversion is lossless: it is its own inverse (`_x` becomes `X`, `X` becomes `_x`), so a key in the
 * wrong case stays wrong. Keys below `env`, `nodeSelector`, the parameters of presets, the requests, schemas and
 * arguments of evaluation cases, and the tables of labels, annotations and resources in `pod` belong to users and are
 * never changed.
 */

/** Tables of a slot or an engine with keys of the user's choice, in either style. */
const OWN_KEYS: ReadonlySet<unknown> = new Set(['env', 'node_selector', 'nodeSelector', 'paths']);
/** The same for tables at any depth of `pod`. */
const OWN_KEYS_IN_POD: ReadonlySet<unknown> = new Set([
  'labels',
  'annotations',
  'requests',
  'limits',
  'match_labels',
  'matchLabels',
  'volume_attributes',
  'volumeAttributes',
]);

/** In `model.presets.<preset>`, whose names are the same in both styles. */
const OWN_KEYS_IN_PRESET: ReadonlySet<unknown> = new Set(['set', 'force']);

type Path = readonly (string | number)[];

/** Where a slot has evaluation cases. */
export const CASE_PATH: Path = ['rollout', 'cases', 0];
/** In a case. */
const OWN_KEYS_IN_CASE: ReadonlySet<string> = new Set(['request', 'expect.schema', 'expect.tool.arguments']);

/** Whether users choose the keys of the table at this path. */
const hasOwnKeys = (path: Path): boolean =>
  (path.length === 1 && OWN_KEYS.has(path[0])) ||
  (path[0] === 'pod' && path.length > 1 && OWN_KEYS_IN_POD.has(path.at(-1))) ||
  (path.length === 4 && path[0] === 'model' && path[1] === 'presets' && OWN_KEYS_IN_PRESET.has(path[3])) ||
  (path[0] === 'rollout' && path[1] === 'cases' && OWN_KEYS_IN_CASE.has(path.slice(3).join('.')));

/** How keys are written in the document that a message is about. */
export type KeyStyle = 'snake_case' | 'camelCase';

/**
 * Converts a slot document, or the table at a path of one, from snake_case to camelCase. Returns anything but an object
 * unchanged. Pure.
 */
export const toCamelCase = (document: unknown, path: Path = []): unknown => (isTable(document) ? renameKeys(document, path) : document);

/** Converts a slot document from camelCase to snake_case: the same function, because it is its own inverse. */
export const toSnakeCase = toCamelCase;

/** Converts the path of a problem from camelCase to snake_case. Pure. */
export function pathToSnakeCase(path: readonly (string | number)[]): readonly (string | number)[] {
  const table = path.findIndex((_part, index) => hasOwnKeys(path.slice(0, index + 1)));
  return path.map((part, index) => (typeof part === 'number' || (table !== -1 && index > table) ? part : renameKey(part)));
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

/** Returns a deep copy with other keys, made of plain objects. `path` undefined: below a table with its own keys. */
function renameKeys(value: unknown, path: Path | undefined): unknown {
  if (Array.isArray(value)) return value.map((entry, index) => renameKeys(entry, path && [...path, index]));
  if (!isTable(value)) return value;
  const inner = path === undefined || hasOwnKeys(path) ? undefined : path;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [inner === undefined ? key : renameKey(key), renameKeys(each, inner && [...inner, key])]),
  );
}
