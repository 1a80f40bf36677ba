/** Requests a device for a pod: as an extended resource, through DRA, or as device files of the node. Pure. */
import type { ClusterWorkload } from '../../../reconciler/ports.ts';
import type { Settings } from '../../../schema/settings/settings.ts';
import { backendLabel, revisionedName, type KubeWorkload } from './object-names.ts';

export type GpuAllocation = 'device-plugin' | 'dra';

export type DeviceDemand =
  | { readonly kind: 'none' }
  | { readonly kind: 'resource'; readonly resource: string; readonly count: number }
  | { readonly kind: 'claim'; readonly deviceClass: string; readonly count: number; readonly template: string }
  | { readonly kind: 'files'; readonly paths: readonly string[]; readonly cdiNames: readonly string[] };

export function deviceDemand(workload: KubeWorkload, resources: Settings['SVC_GPU_RESOURCES'], allocation: GpuAllocation): DeviceDemand {
  const { backend, gpus } = workload.cluster;
  if (backend === 'cpu') return { kind: 'none' };
  const count = gpus ?? 1;
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

/** The DRA device class of a device plugin's resource: `gpu.nvidia.com` for `nvidia.com/gpu`. */
export function deviceClassOf(resource: string): string | undefined {
  const [domain = '', kind] = resource.split('/');
  if (domain.startsWith('gpu.')) return domain;
  return kind === 'gpu' ? `gpu.${domain}` : undefined;
}

/**
 * Device files of AMD and Intel belong to root and to a group whose id differs between nodes, so only root can open
 * them everywhere; it needs no capability for that. NVIDIA's are open to every user.
 */
export function needsRoot(demand: DeviceDemand): boolean {
  if (demand.kind === 'none') return false;
  if (demand.kind === 'files') return true;
  return !(demand.kind === 'resource' ? demand.resource : demand.deviceClass).includes('nvidia.com');
}

/** With an extended resource or DRA the scheduler finds the GPU, so the node label is only a preference. */
export function nodeAffinity(cluster: ClusterWorkload, demand: DeviceDemand): Readonly<Record<string, unknown>> {
  if (demand.kind === 'none') return {};
  const term = { matchExpressions: [{ key: backendLabel(cluster.backend), operator: 'In', values: ['true'] }] };
  const rule =
    demand.kind === 'files'
      ? { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } }
      : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: term }] };
  return { affinity: { nodeAffinity: rule } };
}

export const usesDra = (spec: Readonly<Record<string, unknown>>): boolean => JSON.stringify(spec).includes('"resourceClaimTemplateName"');
