/** Rewrites a JSON Schema that zod generated, node by node. Pure. */
import { isTable } from '../../src/schema/words/key-case.ts';

export type Json = Readonly<Record<string, unknown>>;
/** `path` consists of the names of the properties above the node, and "[]" for the items of a list. */
export type AlterNode = (node: Json, path: readonly string[]) => Json;

/** The values of these keys are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(['default', 'enum', 'const', 'required']);

/** Applies `alter` to each node, to the inner ones first. Removes formats other than date-time, which only zod knows. */
export function mapSchema(node: Json, alter: AlterNode, path: readonly string[] = []): Json {
  const entries = Object.entries(node).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
    if (key === 'format' && value !== 'date-time') return [];
    if (key === 'properties' && isTable(value)) {
      return [[key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapValue(inner, alter, [...path, name])]))]];
    }
    return [[key, DATA.has(key) ? value : mapValue(value, alter, key === 'items' ? [...path, '[]'] : path)]];
  });
  return alter(Object.fromEntries(entries), path);
}

/** Removes the limits of a duration or a size, which no JSON Schema can express. */
export function withoutLimits({ least: _least, most: _most, ...node }: Json): Json {
  return node;
}

function mapValue(value: unknown, alter: AlterNode, path: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((entry) => mapValue(entry, alter, path));
  return isTable(value) ? mapSchema(value, alter, path) : value;
}
