/** What a pod asks for to compute on a GPU or another device: by resource name, by DRA, or with the node's device files. Pure. */
import type { ClusterWorkload, Workload } from '../../../reconciler/ports.ts';
import type { Settings } from '../../../schema/settings.ts';
import { backendLabel, revisionedName } from './kube-names.ts';

export type GpuAllocation = 'device-plugin' | 'dra';

export type DeviceDemand =
  | { readonly kind: 'none' }
  /** `count` of an extended resource. */
  | { readonly kind: 'resource'; readonly resource: string; readonly count: number }
  | { readonly kind: 'claim'; readonly deviceClass: string; readonly count: number; readonly template: string }
  /** Device files of the node, in a privileged container. */
  | { readonly kind: 'files'; readonly paths: readonly string[]; readonly cdiNames: readonly string[] };

/** What this workload needs of its node. */
export function deviceDemand(
  workload: Workload,
  cluster: ClusterWorkload,
  resources: Settings['SVC_GPU_RESOURCES'],
  allocation: GpuAllocation,
): DeviceDemand {
  const { backend } = cluster;
  if (backend === 'cpu') return { kind: 'none' };
  const count = cluster.gpus ?? 1;
  const resource = backend === 'npu' ? undefined : resources[backend];
  if (resource === undefined || count === 0) {
    return {
      kind: 'files',
      paths: workload.devices.filter((device) => device.startsWith('/')),
      cdiNames: workload.devices.filter((device) => !device.startsWith('/')),
    };
  }
  const deviceClass = deviceClassOf(resource);
  if (allocation === 'dra' && deviceClass !== undefined) return { kind: 'claim', deviceClass, count, template: revisionedName(workload) };
  return { kind: 'resource', resource, count };
}

/** The class under which DRA drivers publish what device plugins call by this name: `gpu.nvidia.com` of `nvidia.com/gpu`. */
export function deviceClassOf(resource: string): string | undefined {
  const [domain = '', kind] = resource.split('/');
  if (domain.startsWith('gpu.')) return domain;
  return kind === 'gpu' ? `gpu.${domain}` : undefined;
}

/**
 * AMD's and Intel's device files belong to root and to a group whose number differs from node to node; only root opens them everywhere, and needs no
 * capability for it. NVIDIA's are open to all.
 */
export function needsRoot(demand: DeviceDemand): boolean {
  if (demand.kind === 'none') return false;
  if (demand.kind === 'files') return true;
  return !(demand.kind === 'resource' ? demand.resource : demand.deviceClass).includes('nvidia.com');
}

/** A GPU is found by its resource, so that the label is a preference; device files are found by nothing else. */
export function nodeAffinity(cluster: ClusterWorkload, demand: DeviceDemand): Readonly<Record<string, unknown>> {
  if (demand.kind === 'none') return {};
  const term = { matchExpressions: [{ key: backendLabel(cluster.backend), operator: 'In', values: ['true'] }] };
  const rule =
    demand.kind === 'files'
      ? { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } }
      : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: term }] };
  return { affinity: { nodeAffinity: rule } };
}
