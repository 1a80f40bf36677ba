/** The ConfigMap with workflows for images, which gateways and the containers that fetch models mount at the same place. Pure. */
import type { ModelId } from '../../schema/words/names.ts';

/** A directory outside of the model store whose files appear in it. */
export interface MountedModels {
  /** Where the files appear, relative to the root of the store. */
  readonly at: string;
  /** Absolute path of the directory that has them. It need not exist. */
  readonly directory: string;
}

export const WORKFLOWS_MOUNT: MountedModels = { at: 'image/models/checkpoints/workflows', directory: '/workflows' };

/** `configMap`: its name, if there is one. */
export function mountsOf(configMap: string | undefined): readonly MountedModels[] {
  return configMap === undefined || configMap === '' ? [] : [WORKFLOWS_MOUNT];
}

/** Whether the file of a model is in the ConfigMap, if there is one. */
export function isInWorkflowsMount(model: ModelId): boolean {
  return model.startsWith(`${WORKFLOWS_MOUNT.at}/`);
}
