/** The ConfigMap of image workflows, mounted at the same path in gateways and init containers. Pure. */
import type { ModelId } from '../../schema/words/names.ts';

export interface MountedModels {
  readonly at: string;
  /** Absolute. */
  readonly directory: string;
}

export const WORKFLOWS_MOUNT: MountedModels = { at: 'image/models/checkpoints/workflows', directory: '/workflows' };

export function mountsOf(configMap: string | undefined): readonly MountedModels[] {
  return configMap === undefined || configMap === '' ? [] : [WORKFLOWS_MOUNT];
}

export const isInWorkflowsMount = (model: ModelId): boolean => model.startsWith(`${WORKFLOWS_MOUNT.at}/`);
