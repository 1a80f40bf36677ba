/** The memory that ComfyUI needs for a model. Pure. */
import type { MemoryDemand, ModelFacts } from '../../provider.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import { FAMILIES, type FamilyName } from './image-families.ts';
import { imageModel } from './image-model.ts';
import { userWorkflow } from './user-workflow.ts';

/** Python, PyTorch and its libraries, as measured with ComfyUI 0.3.64 (0.8 to 1.3 GB), and room for images. */
const PROGRAM_BYTES = 2e9;
/** The part of a device that a server may fill: its driver and the screen need the rest. */
const SHARE_OF_DEVICE = 0.93;

/**
 * ComfyUI keeps in the memory of the host what has no room on the device, so that a model runs with the least memory of its family. What is counted on the device is
 * therefore never more than that.
 */
export function imageMemory(spec: SlotSpec, model: ModelFacts): MemoryDemand {
  const family = FAMILIES[familyOf(model) ?? 'sdxl'];
  const drawing = model.sizeBytes + family.workBytes;
  if (spec.resources.gpus === 0 || spec.backend === 'cpu') return { hostBytes: PROGRAM_BYTES + drawing, deviceBytes: 0 };
  const deviceBytes = Math.floor(Math.min(drawing, family.minDeviceBytes * SHARE_OF_DEVICE));
  return { hostBytes: PROGRAM_BYTES + drawing - deviceBytes, deviceBytes };
}

/** What a discrete GPU has at least for the family of the model. */
export function leastDeviceBytes(spec: SlotSpec, model: ModelFacts): number | undefined {
  const family = familyOf(model);
  return family === undefined || spec.resources.gpus === 0 ? undefined : FAMILIES[family].minDeviceBytes;
}

/** Of a workflow: of the largest model that it loads. */
function familyOf(model: ModelFacts): FamilyName | undefined {
  return imageModel(model)?.family ?? userWorkflow(model)?.family;
}
