/** How GPUs are asked for in this cluster: by DRA where it has a device class for them, else by the resource of a device plugin. */
import type { KubeApi } from '../client/ports.ts';
import { DEVICE_CLASSES } from '../client/resource-types.ts';
import type { ClusterWorkload } from '../../reconciler/ports.ts';
import { ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { deviceClassOf } from './decide/kube-devices.ts';
import type { GpuAllocation } from './decide/kube-devices.ts';
import type { KubeSettings } from './decide/kube-pod.ts';

export type FindAllocation = (cluster: ClusterWorkload, signal: AbortSignal) => Promise<Result<GpuAllocation>>;

/** Drivers are installed seldom, and a workload that was made before keeps the way it has. */
const KNOWN_FOR_MS = 300_000;

export function createGpuAllocation(
  api: KubeApi,
  settings: Pick<KubeSettings, 'SVC_GPU_RESOURCES' | 'SVC_GPU_ALLOCATION'>,
  now: () => number,
): FindAllocation {
  const known = new Map<string, { readonly at: number; readonly has: boolean }>();

  const hasClass = async (name: string, signal: AbortSignal): Promise<Result<boolean>> => {
    const before = known.get(name);
    if (before !== undefined && now() - before.at < KNOWN_FOR_MS) return ok(before.has);
    const serves = await api.serves(DEVICE_CLASSES, signal);
    if (!serves.ok) return serves;
    const found = serves.value ? await api.get(DEVICE_CLASSES, name, signal) : undefined;
    // Who may not read them gets by without.
    if (found?.ok === false && found.failure.reason !== 'NotFound' && found.failure.reason !== 'Forbidden') return found;
    const has = found?.ok === true;
    known.set(name, { at: now(), has });
    return ok(has);
  };

  return async ({ backend, gpus }, signal) => {
    const resource = settings.SVC_GPU_RESOURCES[backend];
    const deviceClass = resource === undefined ? undefined : deviceClassOf(resource);
    if (settings.SVC_GPU_ALLOCATION !== 'auto') return ok(settings.SVC_GPU_ALLOCATION);
    if (deviceClass === undefined || backend === 'cpu' || gpus === 0) return ok('device-plugin');
    const has = await hasClass(deviceClass, signal);
    return has.ok ? ok(has.value ? 'dra' : 'device-plugin') : has;
  };
}
