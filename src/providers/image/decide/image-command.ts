/** The command line, environment and devices of ComfyUI for a slot. Where it searches models is in the file `model-paths.yaml`, which names the variables below. Pure. */
import type { SlotContext } from '../../provider.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import { placeOf } from './image-model.ts';

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
