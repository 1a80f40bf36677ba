/** Converts a zod schema to a structural schema of Kubernetes, which API servers use to prune, default and validate objects. Pure. */
import { z } from 'zod';
import { isTable } from '../../src/schema/key-case.ts';
import { MODEL_ID_PATTERN, MODEL_ID_RULE } from '../../src/schema/names.ts';
import { QUANTITY_RULES } from '../../src/schema/quantities.ts';
import { mapSchema, type Json } from './map-schema.ts';

export function structuralSchema(schema: z.ZodType): Json {
  return mapSchema(z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0' }), convert);
}

/** Replaces the node at a path of keys, where `*` stands for the entries of a list. Throws if there is no such node. */
export function alterAt(schema: Json, path: readonly string[], alter: (node: Json) => Json): Json {
  const [head, ...rest] = path;
  if (head === undefined) return alter(schema);
  if (head === '*') return { ...schema, items: alterAt(tableOf(schema['items'], path), rest, alter) };
  const properties = tableOf(schema['properties'], path);
  return { ...schema, properties: { ...properties, [head]: alterAt(tableOf(properties[head], path), rest, alter) } };
}

function tableOf(node: unknown, path: readonly string[]): Json {
  if (isTable(node)) return node;
  throw new Error(`Correct the path: the schema has nothing at "${path.join('.')}"`);
}

function convert(node: Json): Json {
  const entries = Object.entries(node).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
    // Kubernetes prunes unknown keys and does not allow this together with "properties".
    if (key === 'additionalProperties' && value === false) return [];
    if (key === 'anyOf' && Array.isArray(value)) return joinTexts(value);
    if (key === 'description') return [[key, withoutClusterOnly(String(value))]];
    return [[key, value]];
  });
  return withRule(withFormat(Object.fromEntries(entries)));
}

/** In the CRD, the remark that a key applies only to clusters is unnecessary. */
function withoutClusterOnly(description: string): string {
  return description.replace(/^Cluster only: ./, (match) => match.slice(-1).toUpperCase());
}

function withFormat(node: Json): Json {
  // Kubernetes validates the time, but does not require UTC.
  if (node['format'] === 'date-time') return { ...node, pattern: 'Z$' };
  if (node['type'] !== 'integer') return node;
  const maximum = node['maximum'];
  return { ...node, format: typeof maximum === 'number' && maximum < 2 ** 31 ? 'int32' : 'int64' };
}

/** If a pattern does not match, the API server shows the pattern; a rule can explain what to write. */
function withRule(node: Json): Json {
  const { pattern } = node;
  const message = typeof pattern === 'string' ? PATTERN_RULES[pattern] : undefined;
  if (message === undefined) return node;
  return { ...node, 'x-kubernetes-validations': [{ rule: `self.matches(${celText(String(pattern))})`, message }] };
}

const OR_NEVER = '^never$|';

const PATTERN_RULES: Readonly<Record<string, string>> = {
  ...QUANTITY_RULES,
  ...Object.fromEntries(Object.entries(QUANTITY_RULES).map(([pattern, rule]) => [`${OR_NEVER}${pattern}`, `${rule}, or "never"`])),
  [new RegExp(MODEL_ID_PATTERN).source]: MODEL_ID_RULE,
};

/** Joins a union of strings into one pattern, because API servers do not explain why an "anyOf" does not match. */
function joinTexts(branches: readonly unknown[]): readonly (readonly [string, unknown])[] {
  const tables = branches.filter(isTable);
  if (tables.some((branch) => branch['type'] !== 'string'))
    throw new Error('Use only strings in a union: a CRD cannot express other unions');
  const patterns = tables.flatMap((branch) =>
    Array.isArray(branch['enum']) ? branch['enum'].map((value) => `^${String(value)}$`) : [String(branch['pattern'])],
  );
  const lengths = tables.flatMap((branch) => (typeof branch['maxLength'] === 'number' ? [branch['maxLength']] : []));
  return [
    ['type', 'string'],
    ['maxLength', Math.max(...lengths)],
    ['pattern', patterns.join('|')],
  ];
}

export function celText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

export function celList(values: readonly string[]): string {
  return `[${values.map(celText).join(', ')}]`;
}
