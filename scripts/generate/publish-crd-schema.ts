/** Converts a zod schema to a structural schema of Kubernetes, which API servers use to prune, default and validate objects. Pure. */
import { z } from 'zod';
import { isTable } from '../../src/schema/words/key-case.ts';
import { MODEL_ID_PATTERN, MODEL_ID_RULE } from '../../src/schema/words/name-rules.ts';
import {
  BYTES,
  DURATION_PATTERN,
  limitsRule,
  MILLISECONDS,
  parseDurationMs,
  parseSizeBytes,
  QUANTITY_RULES,
  SIZE_PATTERN,
} from '../../src/schema/words/quantities.ts';
import { mapSchema, withoutLimits, type Json } from './map-schema.ts';

export function structuralSchema(schema: z.ZodType): Json {
  return withoutLimitsBelow(mapSchema(z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0' }), convert));
}

/** The limits are needed until the unions above them are joined. */
function withoutLimitsBelow(node: Json): Json {
  const entries = Object.entries(withoutLimits(node));
  return Object.fromEntries(entries.map(([key, value]) => [key, isTable(value) ? withoutLimitsBelow(value) : value]));
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
    if (key === 'anyOf' && Array.isArray(value)) return joinUnion(value.filter(isTable));
    if (key === 'description') return [[key, withoutClusterOnly(String(value))]];
    return [[key, value]];
  });
  // Any JSON: only the service can look into it.
  if (entries.length === 0) return { 'x-kubernetes-preserve-unknown-fields': true };
  return withLimits(withRule(withFormat(Object.fromEntries(entries))));
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

/** Adds a rule with the limits of a duration or a size, since no schema can compare these. */
function withLimits(node: Json): Json {
  const { least, most, pattern, 'x-kubernetes-validations': rules = [] } = node;
  if (typeof least !== 'string' || typeof most !== 'string') return node;
  const duration = !String(pattern).includes(SIZE_PATTERN);
  const own = duration ? DURATION_PATTERN : SIZE_PATTERN;
  const value = celValue(duration ? MILLISECONDS : BYTES);
  const parse = duration ? parseDurationMs : parseSizeBytes;
  const rule = `!self.matches(${celText(own)}) || (${value} >= ${parse(least)}.0 && ${value} <= ${parse(most)}.0)`;
  const never = String(pattern).startsWith(OR_NEVER) ? ', or "never"' : '';
  const message = `${limitsRule(duration ? 'duration' : 'size', { least, most })}${never}`;
  return { ...node, 'x-kubernetes-validations': [...(Array.isArray(rules) ? rules : []), { rule, message }] };
}

/** A CEL expression for a number with a unit: the longest unit that fits counts, and none is written as ''. */
function celValue(units: Readonly<Record<string, number>>): string {
  const known = Object.entries(units).filter(([unit]) => unit !== '');
  const factors = known
    .toSorted(([a], [b]) => b.length - a.length)
    .map(([unit, factor]) => `self.endsWith(${celText(unit)}) ? ${factor}.0 : `);
  return `double(self.find('^[0-9.]+')) * (${factors.join('')}1.0)`;
}

function joinUnion(branches: readonly Json[]): readonly (readonly [string, unknown])[] {
  const [integer, text, ...others] = branches.toSorted((a, b) => String(a['type']).localeCompare(String(b['type'])));
  if (integer?.['type'] !== 'integer') return joinTexts(branches);
  if (text?.['type'] !== 'string' || others.length > 0) throw new Error('Use only an integer and a string in a union of types');
  // As in the definitions of Kubernetes itself, which do not say more about the branches.
  return [
    ['anyOf', [{ type: 'integer' }, { type: 'string' }]],
    ['x-kubernetes-int-or-string', true],
    ['minimum', integer['minimum'] ?? 0],
    ['pattern', text['pattern']],
  ];
}

/** Joins a union of strings into one pattern, because API servers do not explain why an "anyOf" does not match. */
function joinTexts(branches: readonly Json[]): readonly (readonly [string, unknown])[] {
  // A short form and a table: only the service can look into it.
  if (branches.some((branch) => branch['type'] === 'object')) return [['x-kubernetes-preserve-unknown-fields', true]];
  if (branches.some((branch) => branch['type'] !== 'string'))
    throw new Error('Use only strings in a union: a CRD cannot express other unions');
  const patterns = branches.flatMap((branch) =>
    Array.isArray(branch['enum']) ? branch['enum'].map((value) => `^${String(value)}$`) : [String(branch['pattern'])],
  );
  const lengths = branches.flatMap((branch) => (typeof branch['maxLength'] === 'number' ? [branch['maxLength']] : []));
  return [
    ['type', 'string'],
    ['maxLength', Math.max(...lengths)],
    ['pattern', patterns.join('|')],
    ...branches.flatMap(({ least, most }) =>
      least === undefined
        ? []
        : ([
            ['least', least],
            ['most', most],
          ] as const),
    ),
  ];
}

export function celText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

export function celList(values: readonly string[]): string {
  return `[${values.map(celText).join(', ')}]`;
}
