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
  const { cluster } = workload;
  if (!usesDevice(cluster)) return { kind: 'none' };
  const count = Math.max(1, cluster.gpus ?? 1);
  const resource = deviceResource(cluster, resources);
  if (resource === undefined) {
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

/** An NPU is no GPU, so the number of GPUs says nothing about it. */
export const usesDevice = ({ backend, gpus }: ClusterWorkload): boolean => backend === 'npu' || (backend !== 'cpu' && gpus !== 0);

/** The extended resource that stands for a device; undefined where the pods get those of their node. */
export function deviceResource(
  { backend, deviceAccess, gpuResource }: ClusterWorkload,
  resources: Settings['SVC_GPU_RESOURCES'],
): string | undefined {
  return deviceAccess === 'hostDevices' ? undefined : (gpuResource ?? resources[backend]);
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
  if (demand.kind === 'files') return isPrivileged(demand);
  return !(demand.kind === 'resource' ? demand.resource : demand.deviceClass).includes('nvidia.com');
}

/**
 * The kernel refuses to open a device file that the container runtime did not give to the container, whatever its user
 * and groups. Plugins and CDI names do give it; a mounted path does not, so it needs a privileged container.
 */
export const isPrivileged = (demand: DeviceDemand): boolean => demand.kind === 'files' && demand.paths.length > 0;

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
