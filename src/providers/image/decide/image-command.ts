/** The command line, environment and devices of ComfyUI for a slot. Where it searches models is in the file `model-paths.yaml`, which names the variables below. Pure. */
import type { SlotContext, ModelFacts, MemoryDemand } from '../../provider.ts';
import type { Backend, Capability } from '../../../schema/slot/provider-kinds.ts';
import { placeOf, imageModel, missingCompanions } from './image-model.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { FAMILIES, type FamilyName } from './image-families.ts';
import { userWorkflow } from './user-workflow.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

/** In the toolbox, and on a host: a program that starts ComfyUI's `main.py` with the arguments that it gets. */
export const PROGRAM = 'comfyui';

/** The directory in which the server searches models. */
const MODELS_VARIABLE = 'COMFYUI_MODELS';
/** The model of the slot. The server loads what each request names; the variable shows which model its slot had when it was started. */
const MODEL_VARIABLE = 'COMFYUI_MODEL';

/**
 * ComfyUI expands variables of the environment in `base_path` (`utils/extra_config.py`). One directory holds the files of all kinds, as each entry of the catalogue has a
 * directory of its own.
 */
export const MODEL_PATHS_YAML = [
  'svc:',
  `  base_path: \${${MODELS_VARIABLE}}`,
  ...['checkpoints', 'diffusion_models', 'text_encoders', 'vae', 'loras', 'controlnet', 'upscale_models', 'clip_vision'].map(
    (kind) => `  ${kind}: .`,
  ),
  '',
].join('\n');

export function devicesOf(backend: Backend): readonly string[] {
  return backend === 'rocm' ? ['/dev/kfd', '/dev/dri'] : [];
}

export function serverCommand({ listen, spec }: SlotContext): readonly [string, ...string[]] {
  return [
    PROGRAM,
    '--listen',
    listen.host,
    '--port',
    String(listen.port),
    // Without it, images contain the prompts that they were drawn from.
    '--disable-metadata',
    // These would run programs that were not part of the image, and call services on the internet.
    '--disable-all-custom-nodes',
    '--disable-api-nodes',
    // Without it, there are no previews. This method computes almost nothing, and needs no files.
    '--preview-method',
    'latent2rgb',
    ...(spec.resources.gpus === 0 ? ['--cpu'] : []),
    ...spec.model.args,
  ];
}

export function serverEnvironment({ modelPath, spec }: SlotContext): Readonly<Record<string, string>> {
  const { gpus } = spec.resources;
  const visible = gpus === undefined || spec.backend !== 'rocm' ? {} : { ROCR_VISIBLE_DEVICES: numbersBelow(gpus) };
  return { [MODELS_VARIABLE]: placeOf(modelPath).directory, [MODEL_VARIABLE]: modelPath, ...visible };
}

function numbersBelow(count: number): string {
  return Array.from({ length: count }, (_, index) => index).join(',');
}

/** Flags of ComfyUI that only decide how it computes. Compared with `main.py --help` of ComfyUI 0.3.64. */
const COMPUTING =
  '--cpu --gpu-only --highvram --normalvram --lowvram --novram --reserve-vram --async-offload --disable-smart-memory --deterministic --disable-mmap ' +
  '--cache-classic --cache-lru --cache-none --force-fp32 --force-fp16 --fp32-unet --fp16-unet --bf16-unet --fp8_e4m3fn-unet --fp8_e5m2-unet --fp16-vae --fp32-vae --bf16-vae --cpu-vae ' +
  '--fp8_e4m3fn-text-enc --fp8_e5m2-text-enc --fp16-text-enc --fp32-text-enc --bf16-text-enc --force-channels-last --use-split-cross-attention --use-quad-cross-attention ' +
  '--use-pytorch-cross-attention --use-sage-attention --use-flash-attention --disable-xformers --force-upcast-attention --dont-upcast-attention --default-hashing-function --verbose';

export const SAFE_FLAGS: ReadonlySet<string> = new Set(COMPUTING.split(' '));

/** What a slot with an image model serves, what is wrong with the model, and what its server is asked for. Pure. */

export function capabilitiesOf(model: ModelFacts): readonly Capability[] {
  return imageModel(model) === undefined && userWorkflow(model) === undefined ? [] : ['image'];
}

/** Why the model must not be served, and what to do. */
export function objectionTo(model: ModelFacts): string | undefined {
  if (userWorkflow(model) !== undefined) return undefined;
  const known = imageModel(model);
  if (known === undefined) {
    const titles = Object.values(FAMILIES).map(({ title }) => title);
    return `Choose a model of ${titles.join(', ')}: this version has no workflow for "${model.id}"`;
  }
  const missing = missingCompanions(known);
  if (missing.length === 0) return undefined;
  return `Put ${missing.join(' and ')} into the directory of "${model.id}": its file has no text encoders and no decoder`;
}

/** The class of the node that loads the model, whose input lists every file that the server has. Undefined for a workflow that loads no model. */
export function loaderOf({ model }: Pick<SlotContext, 'model'>): { readonly className: string; readonly checkpoint: string } | undefined {
  const workflow = userWorkflow(model);
  if (workflow !== undefined)
    return workflow.file === undefined ? undefined : { className: workflow.file.className, checkpoint: workflow.file.name };
  const isSplit = imageModel(model)?.companions !== undefined;
  return { className: isSplit ? 'UNETLoader' : 'CheckpointLoaderSimple', checkpoint: placeOf(model.hostPath).name };
}

/** Whether the answer to `/object_info/<class>` lists a file. ComfyUI writes JSON with escapes for everything beyond ASCII. */
export function listsFile(body: string, name: string): boolean {
  const escaped = JSON.stringify(name).replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return body.includes(escaped) || body.includes(JSON.stringify(name));
}

/** Whether the answer to `/object_info/<class>` describes a node of this class: for any other, it is an empty object. */
export function describesClass(body: string, className: string): boolean {
  const parsed = parseJson(body);
  return typeof parsed === 'object' && parsed !== null && Object.hasOwn(parsed, className);
}

/** The memory that ComfyUI needs for a model. Pure. */

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
