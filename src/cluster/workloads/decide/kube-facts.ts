/** The parts of Pods and Deployments that are looked at. Everything else is dropped before it is kept: thousands of them lie in memory. Pure. */
import { z } from 'zod';
import type { KubeObject } from '../../client/ports.ts';
import { LABELS } from '../../../schema/object-labels.ts';
import { Revision, SlotName, WorkloadId } from '../../../schema/names.ts';
import { APPLIED_ANNOTATION, INSTANCE_LABEL, SERVER_CONTAINER } from './kube-names.ts';

const Text = z.string().optional();
const Terminated = z.object({ exitCode: z.number(), reason: Text, message: Text, finishedAt: z.string().nullish(), containerID: Text });
const State = z.object({
  waiting: z.object({ reason: Text, message: Text }).optional(),
  running: z.object({ startedAt: z.string().nullish() }).optional(),
  terminated: Terminated.optional(),
});
const ContainerStatus = z.object({
  name: z.string(),
  image: Text,
  ready: z.boolean().default(false),
  /** Whether its startup probe has passed. */
  started: z.boolean().nullish(),
  restartCount: z.number().default(0),
  state: State.optional(),
  lastState: State.optional(),
});
export type ContainerStatus = z.output<typeof ContainerStatus>;

const Condition = z.object({ type: z.string(), status: z.string(), reason: Text, message: Text });
const Labels = z.record(z.string(), z.string()).default({});
const Meta = {
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().exactOptional(),
};
const Owner = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
  blockOwnerDeletion: z.boolean().exactOptional(),
});

const Quantities = z.record(z.string(), z.union([z.string(), z.number()])).optional();
const Required = z.object({
  nodeSelectorTerms: z.array(
    z.object({ matchExpressions: z.array(z.object({ key: z.string(), values: z.array(z.string()).optional() })).optional() }),
  ),
});
const Affinity = z.object({ nodeAffinity: z.object({ requiredDuringSchedulingIgnoredDuringExecution: Required.optional() }).optional() });

const Volume = z.object({
  name: z.string(),
  persistentVolumeClaim: z.object({ claimName: z.string() }).optional(),
  hostPath: z.object({ path: z.string() }).optional(),
});

const PodShape = z.object({
  metadata: z.object({ ...Meta, labels: Labels }),
  spec: z.object({
    nodeName: Text,
    terminationGracePeriodSeconds: z.number().default(30),
    nodeSelector: z.record(z.string(), z.string()).optional(),
    affinity: Affinity.optional(),
    containers: z.array(
      z.object({
        name: z.string(),
        image: Text,
        ports: z.array(z.object({ containerPort: z.number() })).optional(),
        resources: z.object({ requests: Quantities, limits: Quantities }).optional(),
      }),
    ),
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

const DeploymentShape = z.object({
  metadata: z.object({
    ...Meta,
    labels: Labels,
    annotations: Labels,
    ownerReferences: z.array(Owner).default([]),
  }),
  spec: z.record(z.string(), z.unknown()),
  status: z.object({ conditions: z.array(Condition).default([]) }).prefault({}),
});

export interface DeploymentFacts {
  readonly id: WorkloadId;
  readonly name: string;
  readonly slot: SlotName;
  readonly revision: Revision;
  readonly generation: number;
  readonly deleting: boolean;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly z.output<typeof Owner>[];
  readonly spec: Readonly<Record<string, unknown>>;
  readonly conditions: readonly z.output<typeof Condition>[];
}

/** Undefined: not a pod as we know them. */
export function readPod(object: KubeObject): PodFacts | undefined {
  return PodShape.safeParse(object).data;
}

const TemplatePorts = z.object({
  template: z.object({
    spec: z.object({
      containers: z.array(z.object({ name: z.string(), ports: z.array(z.object({ containerPort: z.number() })).optional() })),
    }),
  }),
});

/** Where the pods that a Deployment makes answer. */
export function templatePort({ spec }: DeploymentFacts): number | undefined {
  const containers = TemplatePorts.safeParse(spec).data?.template.spec.containers ?? [];
  return containers.find(({ name }) => name === SERVER_CONTAINER)?.ports?.[0]?.containerPort;
}

/** Undefined: not one of ours. */
export function readDeployment(object: KubeObject): DeploymentFacts | undefined {
  const shape = DeploymentShape.safeParse(object).data;
  if (shape === undefined) return undefined;
  const { metadata, spec, status } = shape;
  const slot = SlotName.safeParse(metadata.labels[LABELS.slot]);
  const revision = Revision.safeParse(metadata.labels[LABELS.revision]);
  if (!slot.success || !revision.success) return undefined;
  const generation = Number(metadata.annotations[LABELS.generation]);
  return {
    id: WorkloadId.parse(metadata.uid),
    name: metadata.name,
    slot: slot.data,
    revision: revision.data,
    generation: Number.isSafeInteger(generation) ? generation : 0,
    deleting: metadata.deletionTimestamp !== undefined,
    createdAt: instant(metadata.creationTimestamp) ?? 0,
    labels: metadata.labels,
    annotations: metadata.annotations,
    ownerReferences: metadata.ownerReferences,
    spec,
    conditions: status.conditions,
  };
}

export const isTerminating = (pod: PodFacts): boolean => pod.metadata.deletionTimestamp !== undefined;
export const isReady = (pod: PodFacts): boolean => pod.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
/** It is told to end and nothing of it runs: only its object waits to be tidied up, for which kubelets may take half a minute. */
export const hasEnded = (pod: PodFacts): boolean => {
  const { containerStatuses, initContainerStatuses } = pod.status;
  const isIdle = ({ state }: ContainerStatus): boolean => state?.running === undefined;
  return isTerminating(pod) && containerStatuses.length > 0 && containerStatuses.every(isIdle) && initContainerStatuses.every(isIdle);
};
/** It ended for good: evicted, or its node shut down. What made it makes another one. */
export const isOver = (pod: PodFacts): boolean => pod.status.phase === 'Failed' || pod.status.phase === 'Succeeded';
export const serverStatus = (pod: PodFacts): ContainerStatus | undefined =>
  pod.status.containerStatuses.find(({ name }) => name === SERVER_CONTAINER);
export const serverPort = (pod: PodFacts): number | undefined =>
  pod.spec.containers.find(({ name }) => name === SERVER_CONTAINER)?.ports?.[0]?.containerPort;
/** The Deployment it says it belongs to. */
export const instanceOf = (pod: PodFacts): string => pod.metadata.labels[INSTANCE_LABEL] ?? '';

/** Unix milliseconds. */
export function instant(text: string | null | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isFinite(at) ? at : undefined;
}

/** What is kept of each kind of object; an object of an unknown shape is kept whole, and skipped where it is read. */
export function prunePod(object: KubeObject): KubeObject {
  const shape = PodShape.safeParse(object).data;
  if (shape === undefined) return object;
  const labels = Object.fromEntries(KEPT_LABELS.flatMap((key) => entryOf(shape.metadata.labels, key)));
  return { ...shape, metadata: { ...shape.metadata, labels } };
}

export function pruneDeployment(object: KubeObject): KubeObject {
  const shape = DeploymentShape.safeParse(object).data;
  if (shape === undefined) return object;
  const annotations = Object.fromEntries(KEPT_ANNOTATIONS.flatMap((key) => entryOf(shape.metadata.annotations, key)));
  const conditions = shape.status.conditions.filter(({ type }) => type === 'ReplicaFailure');
  return { ...shape, metadata: { ...shape.metadata, annotations }, status: { conditions } };
}

/** ConfigMaps and Services: all but who wrote what, and their state. */
export function prunePlain(object: KubeObject): KubeObject {
  const metadata = PlainMeta.safeParse(object.metadata).data;
  return metadata === undefined ? object : { ...object, metadata, status: undefined };
}

const PlainMeta = z.object({ ...Meta, labels: Labels, ownerReferences: z.array(Owner).default([]) });
const KEPT_LABELS: readonly string[] = [LABELS.slot, LABELS.revision, LABELS.managedBy, INSTANCE_LABEL];
const KEPT_ANNOTATIONS: readonly string[] = [LABELS.generation, APPLIED_ANNOTATION];

const entryOf = (record: Readonly<Record<string, string>>, key: string): [string, string][] => {
  const value = record[key];
  return value === undefined ? [] : [[key, value]];
};
