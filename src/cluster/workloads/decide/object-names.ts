/** Names and labels of a workload's objects and in its pods, and the settings that they depend on. Pure. */
import type { Workload, ClusterWorkload, ImageReference } from '../../../reconciler/ports.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { LABEL_PREFIX, LABELS, MANAGER } from '../../../schema/pod/kube-fields.ts';
import { fail, ok, type Result } from '../../../schema/words/failure.ts';
import type { ProxyVariables } from './pod-proxy.ts';
import type { Settings } from '../../../schema/settings/settings.ts';

type Labels = Readonly<Record<string, string>>;

export const SERVER_CONTAINER = 'server';
export const MODEL_CONTAINER = 'model';
export const PORT_NAME = 'http';
export const MODELS_TARGET = '/models';

/** Annotation of the Deployment: a record of the last applied `spec`. Any difference from it is an outside change. */
export const APPLIED_ANNOTATION = `${LABEL_PREFIX}/applied`;
/** Label of pods: the name of their Deployment. Distinguishes two workloads of a slot with the same revision. */
export const INSTANCE_LABEL = 'app.kubernetes.io/instance';
/** Label of nodes: `true` where a backend runs well. */
export const backendLabel = (backend: string): string => `${LABEL_PREFIX}/backend-${backend}`;

export const slotObjectName = (slot: SlotName): string => `svc-slot-${slot}`;
/** Name of the ConfigMap with the environment and of the ResourceClaimTemplate. Neither is ever updated. */
export const revisionedName = ({ name, revision }: Pick<Workload, 'name' | 'revision'>): string => `${name}-${revision}`;

export const slotLabels = (slot: SlotName): Labels => ({ [LABELS.slot]: slot, [LABELS.managedBy]: MANAGER });
export const revisionLabels = ({ slot, revision }: Workload): Labels => ({ ...slotLabels(slot), [LABELS.revision]: revision });
export const podSelector = ({ name, slot, revision }: Pick<Workload, 'name' | 'slot' | 'revision'>): string =>
  `${INSTANCE_LABEL}=${name},${LABELS.revision}=${revision},${LABELS.slot}=${slot}`;
export const podLabels = (workload: Workload): Labels => ({ ...revisionLabels(workload), [INSTANCE_LABEL]: workload.name });

export interface KubeSettings extends Pick<
  Settings,
  | 'SVC_IMAGE'
  | 'SVC_IMAGE_PULL_SECRETS'
  | 'SVC_MODELS_CLAIM'
  | 'SVC_WORKFLOWS_CONFIG_MAP'
  | 'SVC_MODELS_HOST_PATH'
  | 'SVC_GPU_RESOURCES'
  | 'SVC_GPU_ALLOCATION'
  | 'SVC_POD_USER'
  | 'SVC_POD_PROXY_SECRET'
  | 'SVC_HF_TOKEN_SECRET'
  | 'SVC_DISRUPTION_BUDGETS'
> {
  /** Proxy variables of this process that the pods get too. Default: none. */
  readonly podProxy?: ProxyVariables;
  /** Address of the Hub from which pods fetch models. Default: their own. */
  readonly hubEndpoint?: string;
}

export interface KubeWorkload extends Workload {
  readonly cluster: ClusterWorkload;
  readonly image: ImageReference;
}

export function parseKubeWorkload(workload: Workload): Result<KubeWorkload> {
  const { name, slot, cluster, image } = workload;
  if (image === undefined) return fail('stalled', 'ImageUnknown', `The slot "${slot}" has no image: name one in the toolbox manifest`);
  if (cluster === undefined) return fail('stalled', 'InternalError', `The workload "${name}" was not planned for a cluster`);
  return ok({ ...workload, cluster, image });
}
