/** Generates the JSON Schema with which Helm validates values before it renders templates. Pure. */
import { z } from 'zod';
import { HelmValues, SET_BY_CHART } from './helm-values.ts';
import { mapSchema, withoutLimits, type Json } from './map-schema.ts';
import { isTable } from '../../src/schema/words/key-case.ts';

/** All versions of Helm read draft 7. No value is required, because the chart has defaults. */
export function helmValuesSchema(): Json {
  const values = mapSchema(z.toJSONSchema(HelmValues, { io: 'input', target: 'draft-07' }), adapt);
  const properties = isTable(values['properties']) ? values['properties'] : {};
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart "svc"',
    ...values,
    // Helm adds it if the chart is a dependency of another one.
    properties: { ...properties, global: { type: 'object' } },
  };
}

/** Keys within slots are validated like those of a SlotSpec. The chart's own keys are all optional, but not those of the items of lists, which have no defaults. */
function adapt(node: Json, path: readonly string[]): Json {
  const { required: _, ...optional } = withoutLimits(node);
  const keepsRequired = path[0] === 'slots' || path.includes('[]') || isToolboxImage(node);
  return acceptYamlTypes(requireDigest(refuse(keepsRequired ? withoutLimits(node) : optional, path.join('.'))), path);
}

const NONE = { enum: [0, '0%'] };
/** What the values of a table must not be, by its path. */
const REFUSED: Readonly<Record<string, Json>> = {
  // Neither an old gateway could stop nor a new one start.
  'deploymentStrategy.rollingUpdate': { properties: { maxUnavailable: NONE, maxSurge: NONE }, required: ['maxUnavailable', 'maxSurge'] },
  'extraEnv.[]': { properties: { name: { enum: SET_BY_CHART } }, required: ['name'] },
};

const refuse = (node: Json, path: string): Json =>
  Object.hasOwn(REFUSED, path) && isTable(node['properties']) ? { ...node, not: REFUSED[path] } : node;

/** Whether a schema node is the entry of a toolbox image. */
function isToolboxImage(node: Json): boolean {
  return isTable(node['properties']) && 'digest' in node['properties'] && 'id' in node['properties'];
}

/** Requires a digest unless the image was built locally. In the zod schema, this is a refinement, which JSON Schema cannot express. */
function requireDigest(node: Json): Json {
  if (!isToolboxImage(node)) return node;
  return { ...node, anyOf: [{ required: ['digest'] }, { properties: { image: { pattern: '^localhost/' } } }] };
}

/** Settings are strings in the environment. In YAML, they may also be numbers and booleans. */
function acceptYamlTypes(node: Json, path: readonly string[]): Json {
  if (path[0] !== 'settings' || path.length !== 2) return node;
  const { description, ...rest } = node;
  const more = [
    ...(node['pattern'] === '^[0-9]+$' ? [{ type: 'integer', minimum: 0 }] : []),
    ...(Array.isArray(node['enum']) && node['enum'].includes('true') ? [{ type: 'boolean' }, { enum: [0, 1] }] : []),
  ];
  return more.length === 0 ? node : { description, anyOf: [rest, ...more] };
}
