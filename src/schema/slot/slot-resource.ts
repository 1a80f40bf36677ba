/** The SlotSpec resource: the document of a slot as a Kubernetes object, and the schema of its status. */
import { z } from 'zod';
import { optional } from '../pod/kube-fields.ts';
import { isTable } from '../words/key-case.ts';
import { SLOT_VERSIONS, type SlotVersion } from '../words/name-rules.ts';
import { SlotName } from '../words/names.ts';
import { CONDITION_TYPES, CRASH_KINDS, SLOT_STATES } from '../status/slot-status.ts';
import type { SpecProblem } from './spec-problem.ts';

export const SLOT_RESOURCE = {
  group: 'inference.svc.dev',
  /** Used by the gateway, and stored. */
  version: 'v1alpha1',
  apiVersion: 'inference.svc.dev/v1alpha1',
  kind: 'SlotSpec',
  listKind: 'SlotSpecList',
  plural: 'slotspecs',
  singular: 'slotspec',
  shortNames: ['slot', 'slots'],
} as const;

export interface SlotResource {
  readonly apiVersion: `${typeof SLOT_RESOURCE.group}/${SlotVersion}`;
  readonly kind: typeof SLOT_RESOURCE.kind;
  readonly metadata: { readonly name: SlotName };
  /** Keys in camelCase, not validated. */
  readonly spec: unknown;
}

export type FromResource =
  | {
      readonly ok: true;
      readonly name: SlotName;
      readonly document: unknown;
      /** Fields that a slot file cannot hold, such as `metadata.labels` and `status`. */
      readonly dropped: readonly string[];
    }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** Wraps a slot document into a SlotSpec. Pure. */
export function toResource(name: SlotName, document: unknown, version: SlotVersion = SLOT_RESOURCE.version): SlotResource {
  return { apiVersion: `${SLOT_RESOURCE.group}/${version}`, kind: SLOT_RESOURCE.kind, metadata: { name }, spec: document };
}

/** Extracts the name and the document from a resource. `parseSlot` validates the document. Pure. */
export function fromResource(resource: unknown): FromResource {
  if (!isTable(resource)) return refuse([], 'Use an object with "apiVersion", "kind", "metadata" and "spec"');
  const versions = SLOT_VERSIONS.map((version) => `${SLOT_RESOURCE.group}/${version}`);
  if (!versions.some((version) => version === resource['apiVersion']))
    return refuse(['apiVersion'], `Set "apiVersion" to ${versions.map((version) => `"${version}"`).join(' or ')}`);
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

const refuse = (path: SpecProblem['path'], message: string): FromResource => ({ ok: false, problems: [{ path, message }] });

const ConditionOfResource = z.object({
  type: z
    .string()
    .max(316)
    .describe(`Type of the condition: ${CONDITION_TYPES.join(', ')}`),
  status: z.enum(['True', 'False', 'Unknown']).describe('Status of the condition: True, False or Unknown'),
  observedGeneration: optional('Generation of the spec that the condition was computed from', z.int().min(0)),
  lastTransitionTime: z.iso.datetime().describe('Time of the last change of the status'),
  reason: z.string().min(1).max(1024).describe('Machine-readable reason in CamelCase'),
  message: z.string().max(32_768).describe('Human-readable explanation'),
});

const FailureOfResource = z.object({
  at: z.iso.datetime().describe('Time of the failure'),
  kind: z.enum(CRASH_KINDS).describe('What failed'),
  reason: z.string().min(1).max(1024).describe('Machine-readable reason in CamelCase'),
  message: z.string().max(1024).describe('Human-readable explanation'),
});

/** What `kubectl get` shows. Conditions cannot be used for it: a slot at rest has no condition `Ready`. */
const Summary = z.object({
  ready: z.enum(['True', 'False', 'Unknown']).describe('Whether the slot answers requests'),
  reason: z.string().min(1).max(1024).describe('Machine-readable reason in CamelCase for which it does not, or is not up to date'),
  message: z.string().max(32_768).describe('Human-readable explanation'),
});

const LastGood = z.object({
  generation: z.int().min(1).describe('Generation of this spec'),
  spec: z.record(z.string(), z.unknown()).describe('The spec as it was written'),
});

/** Schema of the `status` subresource, which the controller writes. */
export const SlotResourceStatus = z.object({
  state: optional('Lifecycle state of the slot', z.enum(SLOT_STATES)),
  summary: optional('Why the slot is as it is, in short, for "kubectl get"', Summary),
  observedGeneration: optional(
    'Generation of the spec that this status was computed from; -1 until a controller has looked at the slot',
    z.int().min(-1),
  ),
  conditions: optional('Conditions of the slot, in the form that kstatus and GitOps tools read', z.array(ConditionOfResource)),
  provider: optional('Provider that serves the slot', z.string()),
  backend: optional('Backend that the server computes with; absent while none answers', z.string()),
  model: optional('Model that answers now; while none does, the model in the spec', z.string()),
  endpoint: optional('Address of the model server inside the cluster', z.string()),
  memoryBytes: optional('Memory that admission counts for the slot, in bytes', z.int().min(0)),
  restarts: optional('Number of restarts since the first start of this generation', z.int().min(0).max(2_147_483_647)),
  since: optional('Time since which the slot is in this state', z.iso.datetime()),
  failures: optional(
    'Failures since the last edit other than of replicas that count towards a crash loop, oldest first. The next leader counts on from them',
    z.array(FailureOfResource),
  ),
  failedSpec: optional(
    'Hash of the spec that the failures belong to, without its replicas: autoscalers do not end a crash loop',
    z.string().max(64),
  ),
  replicas: optional('Number of pods of the workload that answers, or of the one that is to answer', z.int().min(0).max(2_147_483_647)),
  readyReplicas: optional('Number of pods that answer', z.int().min(0).max(2_147_483_647)),
  selector: optional('Label selector of exactly these pods, for autoscalers', z.string()),
  lastGood: optional(
    'The newest valid spec. It stays in force while a newer one is invalid, also when controllers are restarted',
    LastGood,
  ),
  rollout: optional(
    'The text that was accepted last and the verdicts about newer ones, where new models are judged. The next leader goes on from them',
    z.record(z.string(), z.unknown()),
  ),
});
export type SlotResourceStatus = z.output<typeof SlotResourceStatus>;

/** The status that an API server gives a new slot, so that no tool takes it for reconciled too early. */
export const UNSEEN_STATUS = {
  observedGeneration: -1,
  summary: {
    ready: 'Unknown',
    reason: 'NotYetSeen',
    message: 'No gateway has looked at the slot yet. If this lasts, check that one runs in this namespace',
  },
} as const satisfies SlotResourceStatus;
