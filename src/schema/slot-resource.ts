/** The SlotSpec resource: the same document as a slot's file, in the form of the cluster. */
import { z } from 'zod';
import { isTable } from './key-case.ts';
import { SlotName } from './names.ts';
import { CONDITION_TYPES, SLOT_STATES } from './slot-status.ts';
import type { SpecProblem } from './spec-problem.ts';

export const SLOT_RESOURCE = {
  group: 'inference.svc.dev',
  version: 'v1alpha1',
  apiVersion: 'inference.svc.dev/v1alpha1',
  kind: 'SlotSpec',
  listKind: 'SlotSpecList',
  plural: 'slotspecs',
  singular: 'slotspec',
  shortNames: ['slot', 'slots'],
} as const;

export interface SlotResource {
  readonly apiVersion: typeof SLOT_RESOURCE.apiVersion;
  readonly kind: typeof SLOT_RESOURCE.kind;
  readonly metadata: { readonly name: SlotName };
  /** Keys in camelCase, unchecked. */
  readonly spec: unknown;
}

export type FromResource =
  | {
      readonly ok: true;
      readonly name: SlotName;
      readonly document: unknown;
      /** Parts of the resource that a file has no place for: `metadata.labels`, `status`. */
      readonly dropped: readonly string[];
    }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** Pure. */
export function toResource(name: SlotName, document: unknown): SlotResource {
  return { apiVersion: SLOT_RESOURCE.apiVersion, kind: SLOT_RESOURCE.kind, metadata: { name }, spec: document };
}

/** The name and the document of a resource; the document is as written, `parseSlot` checks it. Pure. */
export function fromResource(resource: unknown): FromResource {
  if (!isTable(resource)) return refuse([], 'Write an object with "apiVersion", "kind", "metadata" and "spec"');
  if (resource['apiVersion'] !== SLOT_RESOURCE.apiVersion)
    return refuse(['apiVersion'], `Set "apiVersion" to "${SLOT_RESOURCE.apiVersion}"`);
  if (resource['kind'] !== SLOT_RESOURCE.kind) return refuse(['kind'], `Set "kind" to "${SLOT_RESOURCE.kind}"`);
  const metadata = isTable(resource['metadata']) ? resource['metadata'] : {};
  const name = SlotName.safeParse(metadata['name']);
  if (!name.success) return refuse(['metadata', 'name'], name.error.issues[0]?.message ?? 'Set "metadata.name"');
  const dropped = [
    ...Object.keys(metadata)
      .filter((key) => key !== 'name')
      .map((key) => `metadata.${key}`),
    ...Object.keys(resource).filter((key) => !['apiVersion', 'kind', 'metadata', 'spec'].includes(key)),
  ];
  return { ok: true, name: name.data, document: resource['spec'], dropped };
}

function refuse(path: SpecProblem['path'], message: string): FromResource {
  return { ok: false, problems: [{ path, message }] };
}

const ConditionOfResource = z.object({
  type: z
    .string()
    .max(316)
    .describe(`One of ${CONDITION_TYPES.join(', ')}`),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds'),
  observedGeneration: z.int().min(0).optional().describe('The generation this was seen at'),
  lastTransitionTime: z.iso.datetime().describe('When the status last changed'),
  reason: z.string().min(1).max(1024).describe('Why, in one CamelCase word'),
  message: z.string().max(32_768).describe('Why, for people'),
});

/** `status` of the resource, as the controller writes it. */
export const SlotResourceStatus = z.object({
  state: z.enum(SLOT_STATES).optional().describe('Where the slot is in its lifecycle'),
  observedGeneration: z.int().min(0).optional().describe('The generation of the spec that this status speaks of'),
  conditions: z.array(ConditionOfResource).optional().describe('What holds of the slot; kstatus reads them'),
  provider: z.string().optional().describe('Which runtime serves the slot'),
  backend: z.string().optional().describe('What the runtime computes on'),
  model: z.string().optional().describe('The model that answers now, or the wanted one while none does'),
  endpoint: z.string().optional().describe('Where the model answers inside the cluster'),
  memoryBytes: z.int().min(0).optional().describe('What admission counts for this slot, in bytes'),
  restarts: z.int().min(0).max(2_147_483_647).optional().describe('Starts after the first one of this generation'),
  since: z.iso.datetime().optional().describe('Since when the state holds'),
  replicas: z.int().min(0).max(2_147_483_647).optional().describe('Pods there are'),
  readyReplicas: z.int().min(0).max(2_147_483_647).optional().describe('Pods that answer'),
  selector: z.string().optional().describe('Label selector of the pods, for autoscalers'),
});
export type SlotResourceStatus = z.output<typeof SlotResourceStatus>;
