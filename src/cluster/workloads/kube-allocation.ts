/** Decides how GPUs are requested in this cluster: through DRA if it has a device class for them, otherwise as the extended resource of a device plugin. */
import type { KubeApi } from '../client/ports.ts';
import { DEVICE_CLASSES } from '../client/resource-types.ts';
import type { ClusterWorkload } from '../../reconciler/ports.ts';
import { ok, type Result } from '../../schema/words/failure.ts';
import { deviceClassOf, type GpuAllocation } from './decide/container-devices.ts';
import type { KubeSettings } from './decide/kube-workload.ts';

export type FindAllocation = (cluster: ClusterWorkload, signal: AbortSignal) => Promise<Result<GpuAllocation>>;

/** Drivers are rarely installed, and existing workloads keep their way of requesting GPUs. */
const CACHED_FOR_MS = 300_000;

export function createGpuAllocation(api: KubeApi, settings: KubeSettings, now: () => number): FindAllocation {
  const cache = new Map<string, { readonly at: number; readonly exists: boolean }>();

  const hasDeviceClass = async (name: string, signal: AbortSignal): Promise<Result<boolean>> => {
    const cached = cache.get(name);
    if (cached !== undefined && now() - cached.at < CACHED_FOR_MS) return ok(cached.exists);
    const serves = await api.serves(DEVICE_CLASSES, signal);
    if (!serves.ok) return serves;
    const found = serves.value ? await api.get(DEVICE_CLASSES, name, signal) : undefined;
    // Without permission to read device classes, device plugins are used.
    if (found?.ok === false && found.failure.reason !== 'NotFound' && found.failure.reason !== 'Forbidden') return found;
    const exists = found?.ok === true;
    cache.set(name, { at: now(), exists });
    return ok(exists);
  };

  return async ({ backend, gpus }, signal) => {
    if (settings.SVC_GPU_ALLOCATION !== 'auto') return ok(settings.SVC_GPU_ALLOCATION);
    const resource = settings.SVC_GPU_RESOURCES[backend];
    const deviceClass = resource === undefined ? undefined : deviceClassOf(resource);
    if (deviceClass === undefined || backend === 'cpu' || gpus === 0) return ok('device-plugin');
    const has = await hasDeviceClass(deviceClass, signal);
    return has.ok ? ok(has.value ? 'dra' : 'device-plugin') : has;
  };
}
