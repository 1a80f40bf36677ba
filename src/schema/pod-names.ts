/** Names that the overlay of a slot's pods, its rules and the controller share. */
import { LABEL_PREFIX } from './object-labels.ts';

/** `server`: the model server. `model`: the init container that fetches and verifies the model. */
export const POD_CONTAINERS = ['server', 'model'] as const;
export type PodContainer = (typeof POD_CONTAINERS)[number];

/** Kinds of volumes that users may add. Exactly one is set for each volume. */
export const VOLUME_SOURCES = [
  'secret',
  'configMap',
  'emptyDir',
  'persistentVolumeClaim',
  'projected',
  'csi',
  'ephemeral',
  'nfs',
  'hostPath',
] as const;
/** Kinds of sources of a projected volume. Exactly one is set for each source. */
export const PROJECTED_SOURCES = ['secret', 'configMap', 'serviceAccountToken'] as const;
/** Sources of a variable. Exactly one is set. */
export const VARIABLE_SOURCES = ['secretKeyRef', 'configMapKeyRef', 'fieldRef', 'resourceFieldRef'] as const;
/** Secrets or ConfigMaps all of whose values become variables. Exactly one is set. */
export const VARIABLES_SOURCES = ['secretRef', 'configMapRef'] as const;
export const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'] as const;

/** Volumes of the controller: models, scratch space, and directories and devices of the node. */
export const OWN_VOLUME_PATTERN = '^(models|tmp|(mount|device)-[0-9]+)$';
/** Where the controller mounts volumes; below `/tmp`, users may. */
export const OWN_MOUNT_PATTERN = '^/*(tmp/*)?$|^/+models(/.*)?$';
/** Labels and annotations of the controller. */
export const OWN_KEY_PREFIX = `${LABEL_PREFIX}/`;
export const OWN_KEYS = [
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/instance',
  'kubectl.kubernetes.io/default-container',
  'cdi.k8s.io/svc',
] as const;
/** Extended resources that stand for a GPU unless `SVC_GPU_RESOURCES` names others. */
export const GPU_RESOURCES = ['nvidia.com/gpu', 'amd.com/gpu'] as const;
/** Names of resources: Kubernetes' own, and extended ones with a domain. */
export const RESOURCE_NAME_PATTERN =
  '^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMG]i|[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)$';
