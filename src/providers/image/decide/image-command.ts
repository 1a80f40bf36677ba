/** Command line, environment, devices and memory of ComfyUI for a slot. Pure. */
import type { SlotContext, ModelFacts, MemoryDemand, Sized } from '../../provider.ts';
import type { Backend, Capability } from '../../../schema/slot/provider-kinds.ts';
import { placeOf, imageModel, missingCompanions } from './image-model.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { FAMILIES, FAMILY_TITLES, type FamilyName } from './image-families.ts';
import { userWorkflow } from './user-workflow.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

/** A program that starts ComfyUI's `main.py` with its arguments. */
export const PROGRAM = 'comfyui';

const MODELS_VARIABLE = 'COMFYUI_MODELS';
/** Model of the slot at the start of the server. The server loads the model of each request. */
const MODEL_VARIABLE = 'COMFYUI_MODEL';

/** ComfyUI expands variables in `base_path` (`utils/extra_config.py`). One directory has files of all kinds. */
export const MODEL_PATHS_YAML = [
  'svc:',
  `  base_path: \${${MODELS_VARIABLE}}`,
  ...['checkpoints', 'diffusion_models', 'text_encoders', 'vae', 'loras', 'controlnet', 'upscale_models', 'clip_vision'].map(
    (kind) => `  ${kind}: .`,
  ),
  '',
].join('\n');

const DEVICES: Readonly<Partial<Record<Backend, readonly string[]>>> = { rocm: ['/dev/kfd', '/dev/dri'], cuda: ['nvidia.com/gpu=all'] };
const VISIBLE: Readonly<Partial<Record<Backend, string>>> = { rocm: 'ROCR_VISIBLE_DEVICES', cuda: 'CUDA_VISIBLE_DEVICES' };

export const devicesOf = (backend: Backend): readonly string[] => DEVICES[backend] ?? [];

export function serverCommand({ listen, spec }: SlotContext): readonly [string, ...string[]] {
  return [
    ...([PROGRAM, '--listen', listen.host, '--port', String(listen.port)] as const),
    // Otherwise images contain their prompts.
    '--disable-metadata',
    // These run programs that are not part of the image, or call services on the internet.
    '--disable-all-custom-nodes',
    '--disable-api-nodes',
    // Enables previews, with a method that computes almost nothing and needs no files.
    '--preview-method',
    'latent2rgb',
    ...(spec.resources.gpus === 0 ? ['--cpu'] : []),
    ...spec.model.args,
  ];
}

export function serverEnvironment({ modelPath, spec }: SlotContext): Readonly<Record<string, string>> {
  const { gpus } = spec.resources;
  const first = Array.from({ length: gpus ?? 0 }, (_, index) => index).join(',');
  const variable = VISIBLE[spec.backend];
  const visible = gpus === undefined || variable === undefined ? {} : { [variable]: first };
  return { [MODELS_VARIABLE]: placeOf(modelPath).directory, [MODEL_VARIABLE]: modelPath, ...visible };
}

const COMPUTING =
  '--cpu --gpu-only --highvram --normalvram --lowvram --novram --reserve-vram --async-offload --disable-smart-memory --deterministic --disable-mmap ' +
  '--cache-classic --cache-lru --cache-none --force-fp32 --force-fp16 --fp32-unet --fp16-unet --bf16-unet --fp8_e4m3fn-unet --fp8_e5m2-unet --fp16-vae --fp32-vae --bf16-vae --cpu-vae ' +
  '--fp8_e4m3fn-text-enc --fp8_e5m2-text-enc --fp16-text-enc --fp32-text-enc --bf16-text-enc --force-channels-last --use-split-cross-attention --use-quad-cross-attention ' +
  '--use-pytorch-cross-attention --use-sage-attention --use-flash-attention --disable-xformers --force-upcast-attention --dont-upcast-attention --default-hashing-function --verbose';

export const SAFE_FLAGS: ReadonlySet<string> = new Set(COMPUTING.split(' '));

export const capabilitiesOf = (model: ModelFacts): readonly Capability[] =>
  imageModel(model) === undefined && userWorkflow(model) === undefined ? [] : ['image'];

export function objectionTo(model: ModelFacts): string | undefined {
  if (userWorkflow(model) !== undefined) return undefined;
  const known = imageModel(model);
  if (known === undefined) {
    return `This version has no workflow for "${model.id}"; choose a model of ${FAMILY_TITLES}`;
  }
  const missing = missingCompanions(known);
  if (missing.length === 0) return undefined;
  return `The file of "${model.id}" has no text encoders and no decoder; put ${missing.join(' and ')} into its directory`;
}

/** The input of the node class lists all files of the server. Undefined: the workflow loads no model. */
export function loaderOf({ model }: Pick<SlotContext, 'model'>): { readonly className: string; readonly checkpoint: string } | undefined {
  const workflow = userWorkflow(model);
  if (workflow !== undefined)
    return workflow.file === undefined ? undefined : { className: workflow.file.className, checkpoint: workflow.file.name };
  const known = imageModel(model);
  const isCheckpoint = known?.companions === undefined || FAMILIES[known.family].loader === 'checkpoint, three encoders';
  return { className: isCheckpoint ? 'CheckpointLoaderSimple' : 'UNETLoader', checkpoint: placeOf(model.hostPath).name };
}

/** ComfyUI escapes everything beyond ASCII. */
export function listsFile(body: string, name: string): boolean {
  const escaped = JSON.stringify(name).replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return body.includes(escaped) || body.includes(JSON.stringify(name));
}

export function describesClass(body: string, className: string): boolean {
  const parsed = parseJson(body);
  return typeof parsed === 'object' && parsed !== null && Object.hasOwn(parsed, className);
}

/** Python and PyTorch, measured with ComfyUI 0.3.64 (0.8 to 1.3 GB), and room for images. */
const PROGRAM_BYTES = 2e9;
const SHARE_OF_DEVICE = 0.93;

/** The most that the specification asks of any model: ComfyUI moves what does not fit. */
const MOST_NEEDED_BYTES = 24e9;

/** ComfyUI keeps the overflow of the device, and files that it does not need now, in host memory. */
export function imageMemory(spec: SlotSpec, model: Sized): MemoryDemand {
  const family = FAMILIES[familyOf(model) ?? 'sdxl'];
  const drawing = model.sizeBytes + family.workBytes;
  if (spec.resources.gpus === 0 || spec.backend === 'cpu') return { hostBytes: PROGRAM_BYTES + drawing, deviceBytes: 0 };
  const { minDeviceBytes = MOST_NEEDED_BYTES, workBytes } = family;
  const largestBytes = imageModel(model)?.largestBytes ?? model.sizeBytes;
  const deviceBytes = Math.floor(Math.min(largestBytes + workBytes, minDeviceBytes * SHARE_OF_DEVICE));
  return { hostBytes: PROGRAM_BYTES + drawing - deviceBytes, deviceBytes };
}

export function leastDeviceBytes(spec: SlotSpec, model: ModelFacts): number | undefined {
  const family = familyOf(model);
  return family === undefined || spec.resources.gpus === 0 ? undefined : FAMILIES[family].minDeviceBytes;
}

const familyOf = (model: ModelFacts): FamilyName | undefined => imageModel(model)?.family ?? userWorkflow(model)?.family;
