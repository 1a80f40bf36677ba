/** Renders the workload of a slot as a Deployment and the objects beside it. Pure. */
import type { KubeManifest, OwnerReference } from '../../client/ports.ts';
import { defined, LABELS } from '../../../schema/pod/kube-fields.ts';
import { parseSizeBytes } from '../../../schema/words/quantities.ts';
import { recordApplied, type DeploymentSpec } from './applied-spec.ts';
import { deviceDemand, type GpuAllocation } from './container-devices.ts';
import {
  APPLIED_ANNOTATION,
  podLabels,
  PORT_NAME,
  revisionedName,
  revisionLabels,
  slotLabels,
  slotObjectName,
  type KubeSettings,
  type KubeWorkload,
} from './object-names.ts';
import { podTemplate } from './render-pod.ts';
import { createsClaim } from './model-volumes.ts';
import { quantityOfBytes } from '../../client/decide/object-fields.ts';

export interface KubeContext {
  readonly settings: KubeSettings;
  /** The SlotSpec; Kubernetes deletes everything it owns together with it. */
  readonly owner: OwnerReference | undefined;
  readonly allocation: GpuAllocation;
}

/** Size if a slot names only a storage class. Large enough for most models. */
const DEFAULT_STORAGE = '50Gi';

/** The largest number; Kubernetes and kstatus take it for "none". */
const NO_DEADLINE = 2_147_483_647;

export type KubeObjects = Readonly<ReturnType<typeof kubeObjects>>;

export function kubeObjects(workload: KubeWorkload, context: KubeContext) {
  return {
    configMap: configMapManifest(workload, context.owner),
    service: serviceManifest(workload, context.owner),
    /** Only with several replicas. */
    disruptionBudget: disruptionBudgetManifest(workload, context),
    /** Only where the slot has storage of its own. */
    claim: claimManifest(workload, context),
    /** Only with DRA. */
    claimTemplate: claimTemplateManifest(workload, context),
    deployment: deploymentManifest(workload, context.owner, deploymentSpec(workload, context)),
  };
}

export function deploymentSpec(workload: KubeWorkload, { settings, allocation }: KubeContext): DeploymentSpec {
  return {
    replicas: workload.cluster.replicas,
    // Old ReplicaSets are not needed for rollbacks: another revision is another Deployment.
    revisionHistoryLimit: 1,
    // Kubernetes would report a failure after ten minutes; the controller judges starts itself.
    progressDeadlineSeconds: NO_DEADLINE,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    selector: { matchLabels: podLabels(workload) },
    template: podTemplate(workload, settings, allocation),
  };
}

export function deploymentManifest(workload: KubeWorkload, owner: OwnerReference | undefined, spec: DeploymentSpec): KubeManifest {
  const annotations = { [LABELS.generation]: String(workload.generation), [APPLIED_ANNOTATION]: JSON.stringify(recordApplied(spec)) };
  return { metadata: { name: workload.name, labels: podLabels(workload), annotations, ...ownedBy(owner) }, spec };
}

/** Immutable, since its content belongs to the revision: kubelets need not watch it. */
export function configMapManifest(workload: KubeWorkload, owner: OwnerReference | undefined): KubeManifest {
  return {
    metadata: { name: revisionedName(workload), labels: revisionLabels(workload), ...ownedBy(owner) },
    immutable: true,
    data: Object.fromEntries(Object.entries(workload.env).toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

const slotMetadata = ({ slot }: KubeWorkload, owner: OwnerReference | undefined) => ({
  name: slotObjectName(slot),
  labels: slotLabels(slot),
  ...ownedBy(owner),
});

/** Serves clients inside the cluster. The gateway connects to the pods directly. */
export function serviceManifest(workload: KubeWorkload, owner: OwnerReference | undefined): KubeManifest {
  const ports = [{ name: PORT_NAME, port: workload.port.container, protocol: 'TCP', targetPort: PORT_NAME }];
  return { metadata: slotMetadata(workload, owner), spec: { clusterIP: 'None', selector: slotLabels(workload.slot), ports } };
}

/**
 * A drain evicts the next pod only after the replacement of the last one is ready. A pod that does not answer may
 * always be evicted. A single pod gets no budget: it would block the drain.
 */
function disruptionBudgetManifest(workload: KubeWorkload, { owner, settings }: KubeContext): KubeManifest | undefined {
  if (workload.cluster.replicas < 2 || !settings.SVC_DISRUPTION_BUDGETS) return undefined;
  const selector = { matchLabels: slotLabels(workload.slot) };
  return { metadata: slotMetadata(workload, owner), spec: { maxUnavailable: 1, selector, unhealthyPodEvictionPolicy: 'AlwaysAllow' } };
}

function claimManifest(workload: KubeWorkload, { owner }: KubeContext): KubeManifest | undefined {
  const { storage } = workload.cluster;
  if (storage === undefined || !createsClaim(workload.cluster)) return undefined;
  const size = storage.size === undefined ? DEFAULT_STORAGE : quantityOfBytes(parseSizeBytes(storage.size));
  return {
    metadata: slotMetadata(workload, owner),
    spec: {
      accessModes: storage.accessModes ?? ['ReadWriteOnce'],
      resources: { requests: { storage: size } },
      ...defined({ storageClassName: storage.className }),
    },
  };
}

function claimTemplateManifest(workload: KubeWorkload, { owner, settings, allocation }: KubeContext): KubeManifest | undefined {
  const demand = deviceDemand(workload, settings.SVC_GPU_RESOURCES, allocation);
  if (demand.kind !== 'claim') return undefined;
  const exactly = { deviceClassName: demand.deviceClass, allocationMode: 'ExactCount', count: demand.count };
  return {
    metadata: { name: demand.template, labels: revisionLabels(workload), ...ownedBy(owner) },
    spec: { spec: { devices: { requests: [{ name: 'gpu', exactly }] } } },
  };
}

const ownedBy = (owner: OwnerReference | undefined): { readonly ownerReferences?: readonly OwnerReference[] } =>
  owner === undefined ? {} : { ownerReferences: [owner] };
