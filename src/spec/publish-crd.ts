/** The CustomResourceDefinition of SlotSpec, from the schema. Structural, so that Kubernetes prunes, defaults and checks it. Pure. */
import { z } from 'zod';
import { isTable } from './key-case.ts';
import { SLOT_NAME_LENGTH, SLOT_NAME_PATTERN } from './names.ts';
import { DEFAULT_PROVIDER_OF_SLOT, PROVIDER_KINDS } from './provider-kinds.ts';
import { SLOT_RESOURCE, SlotResourceStatus } from './slot-resource.ts';
import { SlotDocument } from './slot-spec.ts';

type Json = Readonly<Record<string, unknown>>;

export function slotCrd(): Json {
  const { group, version, kind, listKind, plural, singular, shortNames } = SLOT_RESOURCE;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, listKind, plural, singular, shortNames: [...shortNames], categories: ['svc'] },
      scope: 'Namespaced',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: rootSchema() },
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.replicas',
              statusReplicasPath: '.status.replicas',
              labelSelectorPath: '.status.selector',
            },
          },
          additionalPrinterColumns: PRINTER_COLUMNS,
        },
      ],
    },
  };
}

const PRINTER_COLUMNS = [
  { name: 'State', type: 'string', jsonPath: '.status.state', description: 'Where the slot is in its lifecycle' },
  { name: 'Model', type: 'string', jsonPath: '.status.model', description: 'The model that answers' },
  { name: 'Backend', type: 'string', jsonPath: '.status.backend', description: 'What the runtime computes on' },
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

function rootSchema(): Json {
  return {
    type: 'object',
    description: 'A named slot and the model that it serves',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'Version of this schema' },
      kind: { type: 'string', description: 'Kind of this resource' },
      metadata: { type: 'object' },
      spec: { ...structural(SlotDocument), description: 'What the slot should be', 'x-kubernetes-validations': specRules() },
      status: withListMap({ ...structural(SlotResourceStatus), description: 'What the slot is; written by the controller' }),
    },
    'x-kubernetes-validations': rootRules(),
  };
}

/** What the schema alone cannot say, in CEL. The name decides the default provider, and only rules of the root see it. */
function rootRules(): readonly Json[] {
  const builtIn = Object.entries(DEFAULT_PROVIDER_OF_SLOT);
  const names = builtIn.map(([name]) => name);
  const misfits = builtIn.map(
    ([name, kind]) => `(self.metadata.name == ${celText(name)} && !(self.spec.backend in ${celList(PROVIDER_KINDS[kind].backends)}))`,
  );
  return [
    {
      rule: `size(self.metadata.name) <= ${SLOT_NAME_LENGTH} && self.metadata.name.matches(${celText(SLOT_NAME_PATTERN)})`,
      message: `Name the slot with lower-case letters, digits and single hyphens, beginning with a letter, at most ${SLOT_NAME_LENGTH} characters`,
    },
    {
      rule: `has(self.spec.provider) || self.metadata.name in ${celList(names)}`,
      message: 'Set "provider": only the built-in slot names have a default',
      fieldPath: '.spec.provider',
    },
    {
      rule: `has(self.spec.provider) || !has(self.spec.backend) || !(${misfits.join(' || ')})`,
      message: 'Choose another "backend": this slot’s default provider does not offer it',
      fieldPath: '.spec.backend',
    },
  ].map(({ fieldPath, ...rule }) => (fieldPath === undefined ? rule : { ...rule, fieldPath }));
}

function specRules(): readonly Json[] {
  const fits = Object.entries(PROVIDER_KINDS).map(
    ([kind, facts]) => `(self.provider == ${celText(kind)} && self.backend in ${celList(facts.backends)})`,
  );
  return [
    {
      rule: `!has(self.provider) || !has(self.backend) || ${fits.join(' || ')}`,
      message: 'Choose another "backend": this provider does not offer it',
      fieldPath: '.backend',
    },
  ];
}

/** A JSON Schema of zod's in the narrower form of a CRD. */
function structural(schema: z.ZodType): Json {
  const converted = convert(z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0' }));
  return isTable(converted) ? converted : {};
}

function convert(node: unknown): unknown {
  if (!isTable(node)) return node;
  const entries = Object.entries(node).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
    if (key === 'properties' && isTable(value)) {
      return [[key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, convert(inner)]))]];
    }
    // Kubernetes prunes unknown keys, and refuses this beside "properties".
    if (key === 'additionalProperties') return value === false ? [] : [[key, convert(value)]];
    if (key === 'items') return [[key, convert(value)]];
    if (key === 'anyOf' && Array.isArray(value)) return hoistType(value);
    // zod's own formats mean nothing to Kubernetes, which warns of them.
    if (key === 'format' && value !== 'date-time') return [];
    return [[key, value]];
  });
  const converted = Object.fromEntries(entries);
  if (converted['type'] !== 'integer') return converted;
  const maximum = converted['maximum'];
  return { ...converted, format: typeof maximum === 'number' && maximum < 2 ** 31 ? 'int32' : 'int64' };
}

/** A structural schema names the type once, outside of "anyOf". */
function hoistType(branches: readonly unknown[]): readonly (readonly [string, unknown])[] {
  const tables = branches.filter(isTable);
  const types = new Set(tables.map((branch) => branch['type']));
  const [type] = types;
  if (types.size !== 1) throw new Error('Give every branch of a union the same type: a CRD cannot say anything else');
  return [
    ['type', type],
    ['anyOf', tables.map(({ type: _type, ...rest }) => rest)],
  ];
}

/** Conditions are merged by their type. */
function withListMap(status: Json): Json {
  const properties = isTable(status['properties']) ? status['properties'] : {};
  const conditions = isTable(properties['conditions']) ? properties['conditions'] : {};
  return {
    ...status,
    properties: { ...properties, conditions: { ...conditions, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] } },
  };
}

function celText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

function celList(values: readonly string[]): string {
  return `[${values.map(celText).join(', ')}]`;
}
