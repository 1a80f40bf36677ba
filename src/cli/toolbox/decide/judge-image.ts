/** Whether the image that podman has is the one that the manifest names. Pure. */
import { UNPUBLISHED, type ToolboxImage } from '../../../schema/slot/toolbox-images.ts';
import { parseImageId } from './build-plan.ts';

export type PinState = 'unpublished' | 'absent' | 'verified' | 'different' | 'not pinned';

/** `found`: the id of the image of that name or digest; undefined if podman has none. An image that is asked for by its digest has that digest. */
export function judgeImage({ digest, id }: ToolboxImage, found: string | undefined): PinState {
  if (digest === UNPUBLISHED) return 'unpublished';
  if (found === undefined) return 'absent';
  if (id !== undefined) return parseImageId(id) === parseImageId(found) ? 'verified' : 'different';
  return digest === undefined ? 'not pinned' : 'verified';
}

/** For tables: the first digits of the pin. */
export function pinText({ digest, id }: ToolboxImage): string {
  if (digest === UNPUBLISHED) return UNPUBLISHED;
  const pin = id ?? digest;
  return pin === undefined ? '' : pin.slice(0, 'sha256:'.length + 12);
}
