/** The JSON Schema that Helm checks values with before it renders anything. Pure. */
import { z } from 'zod';
import { HelmValues } from './helm-values.ts';
import { isTable } from '../../src/schema/key-case.ts';

type Json = Readonly<Record<string, unknown>>;

/** Draft 7, which every version of Helm reads. Values may leave anything out: the chart has defaults. */
export function helmValuesSchema(): Json {
  const schema = adapt(z.toJSONSchema(HelmValues, { io: 'input', target: 'draft-07' }), []);
  const values = isTable(schema) ? schema : {};
  const properties = isTable(values['properties']) ? values['properties'] : {};
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart "svc"',
    ...values,
    // Helm puts it there when the chart is part of another one.
    properties: { ...properties, global: { type: 'object' } },
  };
}

/** Whatever stands in a slot is checked as a SlotSpec is; the chart's own keys are all optional. */
function adapt(node: unknown, path: readonly string[]): unknown {
  if (Array.isArray(node)) return node.map((inner) => adapt(inner, path));
  if (!isTable(node)) return node;
  const inSlot = path[0] === 'slots';
  const entries = Object.entries(node).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
    if (key === 'properties' && isTable(value)) {
      return [[key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, adapt(inner, [...path, name])]))]];
    }
    if (key === 'required' && !inSlot && !isPinned(node)) return [];
    if (key === 'default' || key === 'enum' || key === 'const') return [[key, value]];
    // Formats that only zod knows.
    if (key === 'format' && value !== 'date-time') return [];
    return [[key, adapt(value, path)]];
  });
  return alsoAsWritten(pinned(Object.fromEntries(entries)), path);
}

/** The entry of a toolbox image. */
function isPinned(node: Json): boolean {
  return isTable(node['properties']) && 'digest' in node['properties'] && 'id' in node['properties'];
}

/** An image is pinned unless it was built here: what the schema of a file checks by a refinement. */
function pinned(node: Json): Json {
  if (!isPinned(node)) return node;
  return { ...node, anyOf: [{ required: ['digest'] }, { properties: { image: { pattern: '^localhost/' } } }] };
}

/** Settings are texts of the environment; in YAML a number or a truth value is written as such. */
function alsoAsWritten(node: Json, path: readonly string[]): Json {
  if (path[0] !== 'settings' || path.length !== 2) return node;
  const { description, ...rest } = node;
  const more = [
    ...(node['pattern'] === '^[0-9]+$' ? [{ type: 'integer', minimum: 0 }] : []),
    ...(Array.isArray(node['enum']) && node['enum'].includes('true') ? [{ type: 'boolean' }, { enum: [0, 1] }] : []),
  ];
  return more.length === 0 ? node : { description, anyOf: [rest, ...more] };
}
