/** A workload that can run in a cluster, and the settings that its objects depend on. Pure. */
import type { ClusterWorkload, ImageReference, Workload } from '../../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../../schema/failure.ts';
import type { Settings } from '../../../schema/settings.ts';

export type KubeSettings = Pick<
  Settings,
  'SVC_IMAGE' | 'SVC_MODELS_CLAIM' | 'SVC_MODELS_HOST_PATH' | 'SVC_GPU_RESOURCES' | 'SVC_GPU_ALLOCATION' | 'SVC_DISRUPTION_BUDGETS'
>;

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
