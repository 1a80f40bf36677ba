/** Writes objects during a term of the leader. Results enter the local copies before they are read again. */
import type { KubeApi, KubeManifest, KubeObject, ObjectMeta, Reflector, RemoveOptions, ResourceType } from '../client/ports.ts';
import { DEPLOYMENTS, DEVICE_CLASSES, PODS } from '../client/decide/resource-path.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { defined, FIELD_MANAGER } from '../../schema/pod/kube-fields.ts';
import type { ClusterWorkload } from '../../reconciler/ports.ts';
import { deviceClassOf, deviceResource, usesDevice, type GpuAllocation } from './decide/container-devices.ts';
import type { KubeSettings } from './decide/object-names.ts';
import { isActedOn } from './decide/pod-facts.ts';

/** A uid restricts the target to this very object. */
type Target = Pick<ObjectMeta, 'name' | 'uid'>;

export type KubeWriter = ReturnType<typeof createKubeWriter>;

interface KubeWriterDeps {
  readonly api: KubeApi;
  readonly copyOf: (type: ResourceType) => Reflector | undefined;
  readonly term: () => AbortSignal;
}

export function createKubeWriter({ api, copyOf, term }: KubeWriterDeps) {
  const duringTerm = async <T>(signal: AbortSignal, write: (writing: AbortSignal) => Promise<Result<T>>): Promise<Result<T>> => {
    const present = term();
    if (signal.aborted) return ABORTED;
    if (present.aborted) return NOT_LEADING;
    const result = await write(AbortSignal.any([signal, present]));
    return !result.ok && present.aborted && !signal.aborted ? NOT_LEADING : result;
  };
  const removeObject = async (type: ResourceType, { name, uid }: Target, options: RemoveOptions, signal: AbortSignal) =>
    await duringTerm(signal, async (writing): Promise<Result<void>> => {
      const removed = await api.remove(type, name, defined({ ...options, uid }), writing);
      return removed.ok || removed.failure.reason !== 'Conflict' ? removed : ok(undefined);
    });
  return {
    apply: async (type: ResourceType, manifest: KubeManifest, signal: AbortSignal, force = true): Promise<Result<KubeObject>> =>
      await duringTerm(signal, async (writing) => {
        const applied = await api.apply(type, manifest, { fieldManager: FIELD_MANAGER, force }, writing);
        if (applied.ok) copyOf(type)?.noteWritten(applied.value);
        return applied;
      }),
    /** Succeeds if the object is gone, or was replaced by another one. */
    async remove(type: ResourceType, target: Target, options: Pick<RemoveOptions, 'graceSeconds'>, signal: AbortSignal) {
      const removed = await removeObject(type, target, options, signal);
      if (removed.ok && target.uid !== undefined) copyOf(type)?.noteRemoved(target.name, target.uid);
      return removed;
    },
    /** `graceSeconds` undefined: as the pod says. The pod stays in the local copy until it is gone. */
    terminate: async (pod: Target, graceSeconds: number | undefined, signal: AbortSignal): Promise<Result<void>> =>
      await removeObject(PODS, pod, defined({ graceSeconds }), signal),
    /** Succeeds if the Deployment is gone. */
    scaleToZero: async (name: string, signal: AbortSignal): Promise<Result<void>> =>
      await duringTerm(signal, async (writing) => {
        const scaled = await api.mergePatch(DEPLOYMENTS, name, { spec: { replicas: 0 } }, writing);
        if (scaled.ok) copyOf(DEPLOYMENTS)?.noteWritten(scaled.value);
        return scaled.ok || scaled.failure.reason === 'NotFound' ? ok(undefined) : scaled;
      }),
    /** Whether the cluster has acted on the number of replicas, so that it creates no pod any more; or it is gone. */
    async isScaled(name: string, signal: AbortSignal): Promise<Result<boolean>> {
      const found = await api.get(DEPLOYMENTS, name, signal);
      if (!found.ok) return found.failure.reason === 'NotFound' ? ok(true) : found;
      return ok(isActedOn(found.value));
    },
  };
}

export const ABORTED = fail('retry', 'Aborted', 'The operation was aborted before it finished');
const NOT_LEADING = fail('retry', 'NotLeading', 'Another replica is the leader now, so this one writes nothing');

export type FindAllocation = (cluster: ClusterWorkload, signal: AbortSignal) => Promise<Result<GpuAllocation>>;

/** Drivers are rarely installed, and existing workloads keep their way of requesting GPUs. */
const CACHED_FOR_MS = 300_000;

/** GPUs are requested through DRA if the cluster has a device class for them, otherwise from a device plugin. */
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

  return async (cluster, signal) => {
    const resource = usesDevice(cluster) ? deviceResource(cluster, settings.SVC_GPU_RESOURCES) : undefined;
    if (usesDevice(cluster) && resource === undefined && cluster.deviceAccess === 'plugin') {
      const fix = 'name it in "resources.gpuResource" of the slot, or in "gpus.resources" of the chart';
      return fail('stalled', 'DeviceMissing', `No resource stands for the devices of backend "${cluster.backend}": ${fix}`);
    }
    if (settings.SVC_GPU_ALLOCATION !== 'auto') return ok(settings.SVC_GPU_ALLOCATION);
    const deviceClass = resource === undefined ? undefined : deviceClassOf(resource);
    if (deviceClass === undefined) return ok('device-plugin');
    const has = await hasDeviceClass(deviceClass, signal);
    return has.ok ? ok(has.value ? 'dra' : 'device-plugin') : has;
  };
}
