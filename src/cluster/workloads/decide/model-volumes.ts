/** The volumes of a workload's pods. Pure. */
import type { ClusterWorkload } from '../../../reconciler/ports.ts';
import { isInWorkflowsMount, WORKFLOWS_MOUNT } from '../../../models/decide/workflows-mount.ts';
import type { DeviceDemand } from './container-devices.ts';
import { MODELS_TARGET, slotObjectName, type KubeSettings, type KubeWorkload } from './object-names.ts';

export type PodVolumes = Readonly<ReturnType<typeof podVolumes>>;

export const MODELS_VOLUME = 'models';
const SCRATCH_VOLUME = 'tmp';
/** The same size as on a single machine. */
const SCRATCH_LIMIT = '1Gi';

export function podVolumes(workload: KubeWorkload, demand: DeviceDemand, settings: KubeSettings) {
  const readsModels = workload.mounts.some(({ target }) => target === MODELS_TARGET);
  const models = modelsVolume(workload, settings);
  const workflows = readsModels && isInWorkflowsMount(workload.cluster.model) ? settings.SVC_WORKFLOWS_CONFIG_MAP : undefined;
  const all = [
    { name: SCRATCH_VOLUME, volume: { emptyDir: { sizeLimit: SCRATCH_LIMIT } }, mountPath: '/tmp' },
    ...(readsModels ? [{ name: MODELS_VOLUME, volume: models, mountPath: MODELS_TARGET, readOnly: true }] : []),
    ...workload.mounts
      .filter(({ target }) => target !== MODELS_TARGET)
      .map(({ source, target, readOnly }, index) => ({ ...nodePath(`mount-${index}`, source, target), ...(readOnly ? { readOnly } : {}) })),
    ...(demand.kind === 'files' ? demand.paths : []).map((path, index) => nodePath(`device-${index}`, path, path)),
  ];
  return {
    volumes: [...all.map(({ name, volume }) => ({ name, ...volume })), ...workflowsVolume(workload, workflows)],
    mounts: all.map(({ volume: _volume, ...mount }) => mount),
    /** The container that fetches the model may write the first two; undefined if the workload reads no models. */
    modelMounts: readsModels
      ? [
          ...all.slice(0, 2).map(({ name, mountPath }) => ({ name, mountPath })),
          ...workflowsVolume(workload, workflows).map(({ name }) => ({ name, mountPath: WORKFLOWS_MOUNT.directory, readOnly: true })),
        ]
      : undefined,
    /** The ConfigMap that contains the model, if it is a workflow. */
    workflows,
    /** The kubelet creates a directory of the node for root only. */
    modelsOnNode: readsModels && 'hostPath' in models,
  };
}

/** A missing ConfigMap keeps no pod from starting: the container that looks for the workflow reports it. */
const workflowsVolume = ({ mounts }: KubeWorkload, name: string | undefined) =>
  // Its name is one of those that slots cannot give to their own volumes.
  name === undefined ? [] : [{ name: `mount-${mounts.length}`, configMap: { name, optional: true } }];

export const createsClaim = ({ storage }: Pick<ClusterWorkload, 'storage'>): boolean =>
  storage?.claimName === undefined && storage?.hostPath === undefined && (storage?.size ?? storage?.className) !== undefined;

function modelsVolume({ slot, cluster }: KubeWorkload, settings: KubeSettings): Readonly<Record<string, unknown>> {
  const { storage } = cluster;
  if (storage?.claimName !== undefined) return claim(storage.claimName);
  if (storage?.hostPath !== undefined) return onNode(storage.hostPath);
  if (createsClaim(cluster)) return claim(slotObjectName(slot));
  if (settings.SVC_MODELS_CLAIM !== undefined) return claim(settings.SVC_MODELS_CLAIM);
  return settings.SVC_MODELS_HOST_PATH === undefined ? { emptyDir: {} } : onNode(settings.SVC_MODELS_HOST_PATH);
}

const nodePath = (name: string, path: string, mountPath: string) => ({ name, volume: { hostPath: { path } }, mountPath });

const claim = (name: string) => ({ persistentVolumeClaim: { claimName: name } });
/** Created if absent: the server then reports the missing model file, which is clearer than a failed mount. */
const onNode = (path: string) => ({ hostPath: { path, type: 'DirectoryOrCreate' } });
