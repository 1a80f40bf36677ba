/** Parses the used parts of Pods and Deployments; the rest is dropped before an object is stored. Pure. */
import { z } from 'zod';
import type { KubeObject } from '../../client/ports.ts';
import { LABELS, FIELD_MANAGER } from '../../../schema/pod/kube-fields.ts';
import { Revision, SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { APPLIED_ANNOTATION, INSTANCE_LABEL, SERVER_CONTAINER } from './object-names.ts';

const Text = z.string().optional();
const State = z.object({
  waiting: z.object({ reason: Text, message: Text }).optional(),
  running: z.object({ startedAt: z.string().nullish() }).optional(),
  terminated: z
    .object({ exitCode: z.number(), reason: Text, message: Text, finishedAt: z.string().nullish(), containerID: Text })
    .optional(),
});
const ContainerStatus = z.object({
  name: z.string(),
  image: Text,
  started: z.boolean().nullish(),
  restartCount: z.int().min(0).optional(),
  state: State.optional(),
  lastState: State.optional(),
});
export type ContainerStatus = z.output<typeof ContainerStatus>;
export type ContainerExit = NonNullable<z.output<typeof State>['terminated']>;

const Condition = z.object({ type: z.string(), status: z.string(), reason: Text, message: Text });
const StringMap = z.record(z.string(), z.string());
const Owner = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
  blockOwnerDeletion: z.boolean().exactOptional(),
});
const Meta = z.object({
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().exactOptional(),
});
const PodLabels = z.object({
  [LABELS.slot]: z.string().exactOptional(),
  [LABELS.revision]: z.string().exactOptional(),
  [LABELS.managedBy]: z.string().exactOptional(),
  [INSTANCE_LABEL]: z.string().exactOptional(),
});
/** Keeps all labels and owners, since changes of them are drift. */
const OwnedMeta = Meta.extend({ labels: StringMap.default({}), ownerReferences: z.array(Owner).default([]) });
const Annotations = z.object({ [LABELS.generation]: z.string().exactOptional(), [APPLIED_ANNOTATION]: z.string().exactOptional() });

const Quantities = z.record(z.string(), z.union([z.string(), z.number()])).optional();
const Container = z.object({
  name: z.string(),
  image: Text,
  ports: z.array(z.object({ containerPort: z.number() })).optional(),
  resources: z.object({ requests: Quantities, limits: Quantities }).optional(),
});
const NodeSelectorTerm = z.object({
  matchExpressions: z.array(z.object({ key: z.string(), operator: Text, values: z.array(z.string()).optional() })).optional(),
});
const NodeAffinity = z.object({
  requiredDuringSchedulingIgnoredDuringExecution: z.object({ nodeSelectorTerms: z.array(NodeSelectorTerm) }).optional(),
});
const Volume = z.object({
  name: z.string(),
  persistentVolumeClaim: z.object({ claimName: z.string() }).optional(),
  hostPath: z.object({ path: z.string() }).optional(),
});

const PodShape = z.object({
  metadata: Meta.extend({ labels: PodLabels.default({}) }),
  spec: z.object({
    nodeName: Text,
    terminationGracePeriodSeconds: z.number().default(30),
    nodeSelector: StringMap.optional(),
    affinity: z.object({ nodeAffinity: NodeAffinity.optional() }).optional(),
    containers: z.array(Container),
    initContainers: z.array(z.object({ name: z.string(), image: Text })).optional(),
    volumes: z.array(Volume).optional(),
  }),
  status: z
    .object({
      phase: Text,
      reason: Text,
      message: Text,
      podIP: Text,
      conditions: z.array(Condition).default([]),
      containerStatuses: z.array(ContainerStatus).default([]),
      initContainerStatuses: z.array(ContainerStatus).default([]),
    })
    .prefault({}),
});
export type PodFacts = z.output<typeof PodShape>;

/** Another program that wrote to a Deployment, from its `managedFields`, which take half the size of an object. */
const Writer = z.object({
  /** Programs choose their names: `kubectl`, `kube-downscaler`, `HorizontalPodAutoscaler`. */
  manager: z.string(),
  /** RFC 3339; empty where the server does not say. */
  at: z.string(),
  /** The first part of each field below `spec` and `metadata` that it wrote last: `replicas`, `template`, `labels`. */
  fields: z.array(z.string()),
});
type Writer = z.output<typeof Writer>;

const Fields = z.record(z.string(), z.unknown());
const ManagedFields = z.array(
  z.object({ manager: z.string().default('unknown'), time: z.string().nullish(), fieldsV1: Fields.default({}) }),
);

const DeploymentMeta = OwnedMeta.extend({
  annotations: Annotations.default({}),
  managedFields: ManagedFields.catch([]).default([]),
  writers: z.array(Writer).exactOptional(),
}).transform(({ managedFields, writers = listWriters(managedFields), ...metadata }) => ({ ...metadata, writers }));
const DeploymentShape = z.object({
  metadata: DeploymentMeta,
  spec: z.record(z.string(), z.unknown()),
  status: z
    .object({ conditions: z.array(Condition).default([]) })
    .prefault({})
    .transform(({ conditions }) => ({ conditions: conditions.filter(({ type }) => type === 'ReplicaFailure') })),
});

export const parsePod = (object: KubeObject): PodFacts | undefined => PodShape.safeParse(object).data;

export type DeploymentFacts = Readonly<NonNullable<ReturnType<typeof parseDeployment>>>;

/** Undefined if the Deployment was not created by this service. */
export function parseDeployment(object: KubeObject) {
  const shape = DeploymentShape.safeParse(object).data;
  const identity = parseIdentity(shape?.metadata.labels);
  if (shape === undefined || identity === undefined) return undefined;
  const { name, uid, labels, annotations, ownerReferences, creationTimestamp, deletionTimestamp, writers } = shape.metadata;
  const generation = Number(annotations[LABELS.generation]);
  return {
    ...identity,
    id: WorkloadId.parse(uid),
    name,
    generation: Number.isSafeInteger(generation) ? generation : 0,
    deleting: deletionTimestamp !== undefined,
    createdAt: parseTime(creationTimestamp) ?? 0,
    labels,
    annotations,
    ownerReferences,
    writers,
    spec: shape.spec,
    conditions: shape.status.conditions,
  };
}

const Status = z.object({ observedGeneration: z.number().optional() }).catch({});

/** Whether the cluster has acted on what a Deployment wants now. Without a status, it may be about to create pods. */
export function isActedOn({ metadata, status }: KubeObject): boolean {
  const { observedGeneration = -1 } = Status.parse(status);
  return observedGeneration >= (metadata.generation ?? 0);
}

function listWriters(managed: z.output<typeof ManagedFields>): Writer[] {
  return managed.flatMap(({ manager, time, fieldsV1 }) => {
    const fields = [...keysOf(fieldsV1['f:spec']), ...keysOf(fieldsV1['f:metadata'])];
    return manager === FIELD_MANAGER || fields.length === 0 ? [] : [{ manager, at: time ?? '', fields }];
  });
}

function keysOf(fields: unknown): readonly string[] {
  const table = Fields.safeParse(fields).data ?? {};
  return Object.keys(table).flatMap((key) => (key.startsWith('f:') ? [key.slice(2)] : []));
}

export function writerOf(writers: readonly Writer[], [first]: readonly string[]): string | undefined {
  const candidates = writers.filter(({ fields }) => first !== undefined && fields.includes(first));
  return candidates.toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]?.manager;
}

const Identity = z
  .object({ [LABELS.slot]: SlotName, [LABELS.revision]: Revision })
  .transform((labels) => ({ slot: labels[LABELS.slot], revision: labels[LABELS.revision] }));

export const parseIdentity = (labels: unknown): z.output<typeof Identity> | undefined => Identity.safeParse(labels).data;

const TemplateShape = z.object({ template: z.object({ spec: z.object({ containers: z.array(Container) }) }) });

export const templatePort = ({ spec }: DeploymentFacts): number | undefined =>
  portIn(TemplateShape.safeParse(spec).data?.template.spec.containers ?? []);
export const serverPort = (pod: PodFacts): number | undefined => portIn(pod.spec.containers);

const portIn = (containers: readonly z.output<typeof Container>[]): number | undefined =>
  containers.find(({ name }) => name === SERVER_CONTAINER)?.ports?.[0]?.containerPort;

export const isTerminating = (pod: PodFacts): boolean => pod.metadata.deletionTimestamp !== undefined;
export const isReady = (pod: PodFacts): boolean => pod.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
/** Whether a pod begins or ceases to answer requests. */
export function isServingChange(before: KubeObject | undefined, after: KubeObject): boolean {
  const [first, last] = [before, after].map((object) => {
    const pod = object && parsePod(object);
    return pod !== undefined && isReady(pod) && !isTerminating(pod);
  });
  return first !== last;
}
/** Whether a terminating pod has no running container. The kubelet may take another half minute to delete it. */
export const hasEnded = (pod: PodFacts): boolean => {
  const { containerStatuses, initContainerStatuses } = pod.status;
  const isRunning = ({ state }: ContainerStatus): boolean => state?.running !== undefined;
  return isTerminating(pod) && containerStatuses.length > 0 && ![...containerStatuses, ...initContainerStatuses].some(isRunning);
};
/** Whether the pod has ended for good (evicted, node shut down). Its ReplicaSet creates a replacement. */
export const isOver = (pod: PodFacts): boolean => pod.status.phase === 'Failed' || pod.status.phase === 'Succeeded';
export const serverStatus = (pod: PodFacts): ContainerStatus | undefined =>
  pod.status.containerStatuses.find(({ name }) => name === SERVER_CONTAINER);
export const instanceOf = (pod: PodFacts): string => pod.metadata.labels[INSTANCE_LABEL] ?? '';

export function parseTime(text: string | null | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isFinite(at) ? at : undefined;
}

/** Prunes an object to the stored fields. One of an unknown shape is stored whole and skipped where it is parsed. */
export const prunePod = (object: KubeObject): KubeObject => PodShape.safeParse(object).data ?? object;

export const pruneDeployment = (object: KubeObject): KubeObject => DeploymentShape.safeParse(object).data ?? object;

export function prunePlain(object: KubeObject): KubeObject {
  const metadata = OwnedMeta.safeParse(object.metadata).data;
  return metadata === undefined ? object : { ...object, metadata, status: undefined };
}
