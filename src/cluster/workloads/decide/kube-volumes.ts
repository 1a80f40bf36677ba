/** What the pods of a workload mount: models, a scratch directory, and device files. Pure. */
import type { ClusterWorkload, Workload } from '../../../reconciler/ports.ts';
import type { Settings } from '../../../schema/settings.ts';
import type { DeviceDemand } from './kube-devices.ts';
import { claimName, MODELS_TARGET } from './kube-names.ts';

export interface PodVolumes {
  readonly volumes: readonly Readonly<Record<string, unknown>>[];
  /** Of the server's container. */
  readonly mounts: readonly Readonly<Record<string, unknown>>[];
  /** Of the container that fetches the model; undefined: the workload reads no models. */
  readonly modelMounts: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** A directory of the node: kubelet makes it as root's, and gives it to nobody else. */
  readonly modelsOnNode: boolean;
}

export type StorageSettings = Pick<Settings, 'SVC_MODELS_CLAIM' | 'SVC_MODELS_HOST_PATH'>;

export const MODELS_VOLUME = 'models';
const SCRATCH_VOLUME = 'tmp';
/** As large as on one machine. */
const SCRATCH_LIMIT = '1Gi';

export function podVolumes(workload: Workload, cluster: ClusterWorkload, demand: DeviceDemand, settings: StorageSettings): PodVolumes {
  const readsModels = workload.mounts.some(({ target }) => target === MODELS_TARGET);
  const models = modelsVolume(workload, cluster, settings);
  const others = workload.mounts.filter(({ target }) => target !== MODELS_TARGET);
  const devices = demand.kind === 'files' ? demand.paths : [];
  const scratch = { name: SCRATCH_VOLUME, mountPath: '/tmp' };
  return {
    volumes: [
      { name: SCRATCH_VOLUME, emptyDir: { sizeLimit: SCRATCH_LIMIT } },
      ...(readsModels ? [{ name: MODELS_VOLUME, ...models }] : []),
      ...others.map(({ source }, index) => ({ name: `mount-${index}`, hostPath: { path: source } })),
      ...devices.map((path, index) => ({ name: `device-${index}`, hostPath: { path } })),
    ],
    mounts: [
      scratch,
      ...(readsModels ? [{ name: MODELS_VOLUME, mountPath: MODELS_TARGET, readOnly: true }] : []),
      ...others.map(({ target, readOnly }, index) => ({
        name: `mount-${index}`,
        mountPath: target,
        ...(readOnly ? { readOnly: true } : {}),
      })),
      ...devices.map((path, index) => ({ name: `device-${index}`, mountPath: path })),
    ],
    modelMounts: readsModels ? [scratch, { name: MODELS_VOLUME, mountPath: MODELS_TARGET }] : undefined,
    modelsOnNode: readsModels && 'hostPath' in models,
  };
}

/** Whether the slot's models lie in a claim that is ours to make. */
export const makesClaim = ({ storage }: Pick<ClusterWorkload, 'storage'>): boolean =>
  storage?.claimName === undefined && storage?.hostPath === undefined && (storage?.size ?? storage?.className) !== undefined;

function modelsVolume(workload: Workload, cluster: ClusterWorkload, settings: StorageSettings): Readonly<Record<string, unknown>> {
  const { storage } = cluster;
  if (storage?.claimName !== undefined) return claim(storage.claimName);
  if (storage?.hostPath !== undefined) return onNode(storage.hostPath);
  if (makesClaim(cluster)) return claim(claimName(workload.slot));
  if (settings.SVC_MODELS_CLAIM !== undefined) return claim(settings.SVC_MODELS_CLAIM);
  return settings.SVC_MODELS_HOST_PATH === undefined ? { emptyDir: {} } : onNode(settings.SVC_MODELS_HOST_PATH);
}

const claim = (name: string) => ({ persistentVolumeClaim: { claimName: name } });
/** Made when it is not there: a server without its model says soonest which file is missing where. */
const onNode = (path: string) => ({ hostPath: { path, type: 'DirectoryOrCreate' } });
