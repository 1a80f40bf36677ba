/** A workload as objects of a cluster. Pure. The way back, from objects to the reconciler's facts, is `kube-observe.ts`. */
import type { KubeManifest, OwnerReference } from '../../client/ports.ts';
import { LABELS, MANAGER } from '../../../schema/object-labels.ts';
import { parseSizeBytes } from '../../../schema/quantities.ts';
import { deviceDemand } from './kube-devices.ts';
import type { GpuAllocation } from './kube-devices.ts';
import { APPLIED_ANNOTATION, claimName, PORT_NAME, revisionedName, serviceName } from './kube-names.ts';
import { podLabels, podTemplate } from './kube-pod.ts';
import type { KubeSettings, KubeWorkload } from './kube-pod.ts';
import { makesClaim } from './kube-volumes.ts';
import { quantityOfBytes } from './kube-quantity.ts';

export interface KubeContext {
  readonly settings: KubeSettings;
  /** The SlotSpec: with it, everything goes. */
  readonly owner: OwnerReference | undefined;
  /** How GPUs are asked for in this cluster. */
  readonly allocation: GpuAllocation;
}

export interface KubeObjects {
  readonly configMap: KubeManifest;
  readonly service: KubeManifest;
  /** Only where the slot has storage of its own. */
  readonly claim?: KubeManifest;
  /** Only with DRA. */
  readonly claimTemplate?: KubeManifest;
  readonly deployment: KubeManifest;
}

/** Where a slot names a storage class but no size: most models fit. */
const DEFAULT_STORAGE = '50Gi';

/** `spec` of a Deployment. */
export type DeploymentSpec = Readonly<Record<string, unknown>> & { readonly replicas: number };

export function kubeObjects(workload: KubeWorkload, context: KubeContext): KubeObjects {
  const claim = claimManifest(workload, context);
  const template = claimTemplateManifest(workload, context);
  return {
    configMap: configMapManifest(workload, context.owner),
    service: serviceManifest(workload, context.owner),
    ...(claim === undefined ? {} : { claim }),
    ...(template === undefined ? {} : { claimTemplate: template }),
    deployment: deploymentManifest(workload, context.owner, deploymentSpec(workload, context)),
  };
}

export function deploymentSpec(workload: KubeWorkload, { settings, allocation }: KubeContext): DeploymentSpec {
  return {
    replicas: workload.cluster.replicas,
    // The scale-down of an old template is nobody's rollback: another revision is another Deployment.
    revisionHistoryLimit: 1,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    selector: { matchLabels: podLabels(workload) },
    template: podTemplate(workload, settings, allocation),
  };
}

/** With this `spec`, which is remembered on it. */
export function deploymentManifest(workload: KubeWorkload, owner: OwnerReference | undefined, spec: DeploymentSpec): KubeManifest {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: workload.name,
      labels: podLabels(workload),
      annotations: { [LABELS.generation]: String(workload.generation), [APPLIED_ANNOTATION]: JSON.stringify(spec) },
      ...ownedBy(owner),
    },
    spec,
  };
}

/** Never altered: what is in it goes with the revision. So nobody else alters it either, and kubelets need not watch it. */
export function configMapManifest(workload: KubeWorkload, owner: OwnerReference | undefined): KubeManifest {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: revisionedName(workload), labels: objectLabels(workload), ...ownedBy(owner) },
    immutable: true,
    data: Object.fromEntries(Object.entries(workload.env).toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** For people inside the cluster; the gateway goes to the pods. One a slot, whatever revisions it has. */
export function serviceManifest(workload: KubeWorkload, owner: OwnerReference | undefined): KubeManifest {
  const { container } = workload.port;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: serviceName(workload.slot),
      labels: { [LABELS.slot]: workload.slot, [LABELS.managedBy]: MANAGER },
      ...ownedBy(owner),
    },
    spec: {
      clusterIP: 'None',
      selector: { [LABELS.slot]: workload.slot, [LABELS.managedBy]: MANAGER },
      ports: [{ name: PORT_NAME, port: container, protocol: 'TCP', targetPort: PORT_NAME }],
    },
  };
}

function claimManifest(workload: KubeWorkload, { owner }: KubeContext): KubeManifest | undefined {
  const { storage } = workload.cluster;
  if (storage === undefined || !makesClaim(workload.cluster)) return undefined;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: claimName(workload.slot),
      labels: { [LABELS.slot]: workload.slot, [LABELS.managedBy]: MANAGER },
      ...ownedBy(owner),
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: storage.size === undefined ? DEFAULT_STORAGE : quantityOfBytes(parseSizeBytes(storage.size)) } },
      ...(storage.className === undefined ? {} : { storageClassName: storage.className }),
    },
  };
}

function claimTemplateManifest(workload: KubeWorkload, { owner, settings, allocation }: KubeContext): KubeManifest | undefined {
  const demand = deviceDemand(workload, workload.cluster, settings.SVC_GPU_RESOURCES, allocation);
  if (demand.kind !== 'claim') return undefined;
  const exactly = { deviceClassName: demand.deviceClass, allocationMode: 'ExactCount', count: demand.count };
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: demand.template, labels: objectLabels(workload), ...ownedBy(owner) },
    spec: { spec: { devices: { requests: [{ name: 'gpu', exactly }] } } },
  };
}

/** Undefined where nobody asks whose it is. */
function ownedBy(owner: OwnerReference | undefined): { readonly ownerReferences?: readonly OwnerReference[] } {
  return owner === undefined ? {} : { ownerReferences: [owner] };
}

function objectLabels(workload: KubeWorkload): Readonly<Record<string, string>> {
  return { [LABELS.slot]: workload.slot, [LABELS.revision]: workload.revision, [LABELS.managedBy]: MANAGER };
}
