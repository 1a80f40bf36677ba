/** Generates the CustomResourceDefinition of SlotSpec from the schema. Pure. */
import { SLOT_NAME_LENGTH, SLOT_NAME_PATTERN, SLOT_NAME_RULE, SLOT_VERSIONS } from '../../src/schema/words/name-rules.ts';
import { alterAt, celList, celText, structuralSchema } from './publish-crd-schema.ts';
import type { Json } from './map-schema.ts';
import { DEFAULT_PROVIDER_OF_SLOT, isBuiltInKind, PROVIDER_KINDS } from '../../src/schema/slot/provider-kinds.ts';
import { SLOT_RESOURCE, SlotResourceStatus, UNSEEN_STATUS } from '../../src/schema/slot/slot-resource.ts';
import { KEYED_LISTS } from '../../src/schema/pod/pod-rules.ts';
import { SLOT_RULES } from '../../src/schema/slot/slot-rules.ts';
import type { ConditionType } from '../../src/schema/status/slot-status.ts';
import { writeKeys } from '../../src/schema/words/key-case.ts';
import { ENV_NAME_PATTERN, ENV_NAME_RULE } from '../../src/schema/pod/pod-containers.ts';
import { SlotDocument } from '../../src/schema/slot/slot-spec.ts';

export function slotCrd(): Json {
  const { group, version, kind, listKind, plural, singular, shortNames } = SLOT_RESOURCE;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      // Not "svc": categories take precedence over short names, and "kubectl get svc" would list slots instead of Services.
      names: { kind, listKind, plural, singular, shortNames: [...shortNames], categories: ['all', 'inference'] },
      scope: 'Namespaced',
      // The same schema in each: a webhook would have nothing to convert.
      conversion: { strategy: 'None' },
      versions: SLOT_VERSIONS.map((name) => ({
        name,
        served: true,
        storage: name === version,
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
      })),
    },
  };
}

const conditionField = (type: ConditionType, field: string): string => `.status.conditions[?(@.type=="${type}")].${field}`;
/** `-o wide` also shows the columns with priority 1. */
const PRINTER_COLUMNS = [
  { name: 'State', type: 'string', jsonPath: '.status.state', description: 'Lifecycle state of the slot' },
  { name: 'Model', type: 'string', jsonPath: '.status.model', description: 'Model that the slot serves' },
  { name: 'Backend', type: 'string', jsonPath: '.status.backend', description: 'Backend that the server computes with' },
  { name: 'Ready', type: 'string', jsonPath: '.status.summary.ready', description: 'Whether the slot answers requests' },
  {
    name: 'Up-to-date',
    type: 'string',
    jsonPath: conditionField('UpToDate', 'status'),
    description: 'Whether what answers is what the newest spec says',
  },
  {
    name: 'Reason',
    type: 'string',
    jsonPath: '.status.summary.reason',
    description: 'Why the slot answers or does not, or why it is not up to date',
  },
  { name: 'Replicas', type: 'integer', jsonPath: '.status.readyReplicas', priority: 1, description: 'Number of pods that answer' },
  { name: 'Restarts', type: 'integer', jsonPath: '.status.restarts', priority: 1, description: 'Number of restarts' },
  { name: 'Message', type: 'string', jsonPath: '.status.summary.message', priority: 1, description: 'Explains the reason' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

function rootSchema(): Json {
  return {
    type: 'object',
    description: 'A SlotSpec declares a slot and the model that it serves',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'API version of this resource' },
      kind: { type: 'string', description: 'Kind of this resource' },
      metadata: { type: 'object' },
      spec: specSchema(),
      status: statusSchema(),
    },
    'x-kubernetes-validations': rootRules(),
  };
}

function specSchema(): Json {
  const schema = {
    ...structuralSchema(SlotDocument),
    description: 'Desired state of the slot',
    'x-kubernetes-validations': backendRules(),
  };
  const withRules = [...SLOT_RULES.map(combinationRule), ENV_NAMES].reduce<Json>(
    (whole, { at, rule }) => alterAt(whole, at, (node) => ({ ...node, 'x-kubernetes-validations': [...rulesOf(node), rule] })),
    schema,
  );
  return LIST_TYPES.reduce<Json>((whole, { at, type }) => alterAt(whole, at, (node) => ({ ...node, ...type })), withRules);
}

/** Server-side apply merges these lists by their keys, and the API server refuses entries that occur twice. Other lists are replaced as a whole. */
const LIST_TYPES: readonly { readonly at: readonly string[]; readonly type: Json }[] = [
  ...KEYED_LISTS.map(({ at, keys }) => ({ at, type: { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys } })),
  { at: ['storage', 'accessModes'], type: { 'x-kubernetes-list-type': 'set' } },
];

interface PlacedRule {
  readonly at: readonly string[];
  readonly rule: Json;
}

function combinationRule({ at, cel, message, key }: (typeof SLOT_RULES)[number]): PlacedRule {
  return { at, rule: { rule: cel, message: writeKeys(message, 'camelCase'), ...(key === undefined ? {} : { fieldPath: `.${key}` }) } };
}

/** A structural schema cannot restrict the keys of a map. */
const ENV_NAMES: PlacedRule = {
  at: ['env'],
  rule: { rule: `self.all(name, name.matches(${celText(ENV_NAME_PATTERN)}))`, message: ENV_NAME_RULE },
};

function rulesOf(node: Json): readonly unknown[] {
  const rules = node['x-kubernetes-validations'];
  return Array.isArray(rules) ? rules : [];
}

/**
 * The name decides the default provider, and only rules of the root see it. Which provider a model needs is not known
 * here: a later catalogue would need another definition.
 */
function rootRules(): readonly Json[] {
  const builtIn = Object.entries(DEFAULT_PROVIDER_OF_SLOT);
  const kinds = [...new Set(builtIn.map(([, kind]) => kind))];
  return [
    {
      rule: `size(self.metadata.name) <= ${SLOT_NAME_LENGTH} && self.metadata.name.matches(${celText(SLOT_NAME_PATTERN)})`,
      message: `metadata.name: ${SLOT_NAME_RULE}`,
    },
    ...kinds.map((kind) => {
      const names = builtIn.filter(([, other]) => other === kind).map(([name]) => name);
      const { backends } = PROVIDER_KINDS[kind];
      return {
        rule: `has(self.spec.provider) || !has(self.spec.backend) || !(self.metadata.name in ${celList(names)}) || self.spec.backend in ${celList(backends)}`,
        message: `The default provider "${kind}" does not support this backend; use ${quoted(backends)}`,
        fieldPath: '.spec.backend',
      };
    }),
  ];
}

function backendRules(): readonly Json[] {
  return Object.keys(PROVIDER_KINDS)
    .filter(isBuiltInKind)
    .map((kind) => {
      const { backends } = PROVIDER_KINDS[kind];
      return {
        rule: `!has(self.provider) || self.provider != ${celText(kind)} || !has(self.backend) || self.backend in ${celList(backends)}`,
        message: `Provider "${kind}" does not support this backend; use ${quoted(backends)}`,
        fieldPath: '.backend',
      };
    });
}

/**
 * Conditions are a map with the type as key, so that patches merge them. The last good spec is stored whole, also keys that this version of the schema does
 * not know.
 */
function statusSchema(): Json {
  const schema = {
    ...structuralSchema(SlotResourceStatus),
    description: 'Observed state of the slot, written by the controller',
    default: UNSEEN_STATUS,
  };
  const asMap = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] };
  const withConditions = alterAt(schema, ['conditions'], (conditions) => ({ ...conditions, ...asMap }));
  const withAtoms = ['summary', 'lastGood'].reduce(
    (whole, key) => alterAt(whole, [key], (node) => ({ ...node, 'x-kubernetes-map-type': 'atomic' })),
    withConditions,
  );
  return alterAt(withAtoms, ['lastGood', 'spec'], ({ type, description }) => ({
    type,
    description,
    'x-kubernetes-preserve-unknown-fields': true,
  }));
}

function quoted(values: readonly string[]): string {
  return values.map((value) => `"${value}"`).join(', ');
}
