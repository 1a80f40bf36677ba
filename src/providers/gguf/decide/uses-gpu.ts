/** Whether llama-server computes with a GPU for this slot. Pure. */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

export function usesGpu(spec: SlotSpec): boolean {
  return spec.backend !== 'cpu' && spec.resources.gpus !== 0;
}
