/** A workload that can run in a cluster, and the settings that its objects depend on. Pure. */
import type { ClusterWorkload, ImageReference, Workload } from '../../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../../schema/words/failure.ts';
import type { ProxyVariables } from './endpoint-proxy.ts';
import type { Settings } from '../../../schema/settings/settings.ts';

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
  if (image === undefined)
    return fail('stalled', 'ImageUnknown', `Name an image for the slot "${slot}" in the toolbox manifest: pods need an image`);
  if (cluster === undefined) return fail('stalled', 'InternalError', `The workload "${name}" was not planned for a cluster`);
  return ok({ ...workload, cluster, image });
}
