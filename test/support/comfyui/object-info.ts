/**
 * What `/object_info` of ComfyUI 0.3.64 says about the nodes that workflows of this project use: the types, ranges and choices of their inputs, and what they put out. Recorded from a
 * real server, unless a comment says otherwise; names of files are filled in by the stand-in.
 */

export type InputInfo =
  | { readonly kind: 'link'; readonly type: string }
  | { readonly kind: 'int' | 'float'; readonly min: bigint | number; readonly max: bigint | number }
  | { readonly kind: 'text' }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  /** One of the files that the server has. */
  | { readonly kind: 'file'; readonly of: 'model' | 'input' };

export interface NodeInfo {
  readonly inputs: Readonly<Record<string, InputInfo>>;
  readonly outputs: readonly string[];
  readonly isOutput?: boolean;
}

const link = (type: string): InputInfo => ({ kind: 'link', type });
const int = (min: bigint | number, max: bigint | number): InputInfo => ({ kind: 'int', min, max });
const float = (min: number, max: number): InputInfo => ({ kind: 'float', min, max });
const choice = (...choices: readonly string[]): InputInfo => ({ kind: 'choice', choices });
const text: InputInfo = { kind: 'text' };
const flag: InputInfo = { kind: 'flag' };
const modelFile: InputInfo = { kind: 'file', of: 'model' };

const seed = int(0n, 18_446_744_073_709_551_615n);
/** A part of the 42 that the server offers: the first four are recorded, the others are read in `comfy/samplers.py`. */
const sampler = choice(
  'euler',
  'euler_cfg_pp',
  'euler_ancestral',
  'euler_ancestral_cfg_pp',
  'heun',
  'dpm_2',
  'lms',
  'dpmpp_2m',
  'dpmpp_sde',
  'ddim',
  'uni_pc',
);
/** All nine: the first four are recorded, the others are read in `SCHEDULER_HANDLERS` of `comfy/samplers.py`. */
const scheduler = choice(
  'simple',
  'sgm_uniform',
  'karras',
  'exponential',
  'ddim_uniform',
  'beta',
  'normal',
  'linear_quadratic',
  'kl_optimal',
);
const conditioning = link('CONDITIONING');
const side = int(16, 16_384);

export const NODES: Readonly<Record<string, NodeInfo>> = {
  CheckpointLoaderSimple: { inputs: { ckpt_name: modelFile }, outputs: ['MODEL', 'CLIP', 'VAE'] },
  UNETLoader: {
    inputs: { unet_name: modelFile, weight_dtype: choice('default', 'fp8_e4m3fn', 'fp8_e4m3fn_fast', 'fp8_e5m2') },
    outputs: ['MODEL'],
  },
  DualCLIPLoader: {
    inputs: {
      clip_name1: modelFile,
      clip_name2: modelFile,
      type: choice('sdxl', 'sd3', 'flux', 'hunyuan_video', 'hidream', 'hunyuan_image'),
    },
    outputs: ['CLIP'],
  },
  VAELoader: { inputs: { vae_name: modelFile }, outputs: ['VAE'] },
  /** Read in `nodes.py`. */
  LoraLoader: {
    inputs: {
      model: link('MODEL'),
      clip: link('CLIP'),
      lora_name: modelFile,
      strength_model: float(-100, 100),
      strength_clip: float(-100, 100),
    },
    outputs: ['MODEL', 'CLIP'],
  },
  CLIPTextEncode: { inputs: { text, clip: link('CLIP') }, outputs: ['CONDITIONING'] },
  FluxGuidance: { inputs: { conditioning, guidance: float(0, 100) }, outputs: ['CONDITIONING'] },
  EmptyLatentImage: { inputs: { width: side, height: side, batch_size: int(1, 4096) }, outputs: ['LATENT'] },
  EmptySD3LatentImage: { inputs: { width: side, height: side, batch_size: int(1, 4096) }, outputs: ['LATENT'] },
  KSampler: {
    inputs: {
      model: link('MODEL'),
      seed,
      steps: int(1, 10_000),
      cfg: float(0, 100),
      sampler_name: sampler,
      scheduler,
      positive: conditioning,
      negative: conditioning,
      latent_image: link('LATENT'),
      denoise: float(0, 1),
    },
    outputs: ['LATENT'],
  },
  KSamplerSelect: { inputs: { sampler_name: sampler }, outputs: ['SAMPLER'] },
  SDTurboScheduler: { inputs: { model: link('MODEL'), steps: int(1, 10), denoise: float(0, 1) }, outputs: ['SIGMAS'] },
  BasicScheduler: { inputs: { model: link('MODEL'), scheduler, steps: int(1, 10_000), denoise: float(0, 1) }, outputs: ['SIGMAS'] },
  SamplerCustom: {
    inputs: {
      model: link('MODEL'),
      add_noise: flag,
      noise_seed: seed,
      cfg: float(0, 100),
      positive: conditioning,
      negative: conditioning,
      sampler: link('SAMPLER'),
      sigmas: link('SIGMAS'),
      latent_image: link('LATENT'),
    },
    outputs: ['LATENT', 'LATENT'],
  },
  SamplerCustomAdvanced: {
    inputs: {
      noise: link('NOISE'),
      guider: link('GUIDER'),
      sampler: link('SAMPLER'),
      sigmas: link('SIGMAS'),
      latent_image: link('LATENT'),
    },
    outputs: ['LATENT', 'LATENT'],
  },
  RandomNoise: { inputs: { noise_seed: seed }, outputs: ['NOISE'] },
  BasicGuider: { inputs: { model: link('MODEL'), conditioning }, outputs: ['GUIDER'] },
  CFGGuider: { inputs: { model: link('MODEL'), positive: conditioning, negative: conditioning, cfg: float(0, 100) }, outputs: ['GUIDER'] },
  VAEDecode: { inputs: { samples: link('LATENT'), vae: link('VAE') }, outputs: ['IMAGE'] },
  LoadImage: { inputs: { image: { kind: 'file', of: 'input' } }, outputs: ['IMAGE', 'MASK'] },
  ImageScale: {
    inputs: {
      image: link('IMAGE'),
      upscale_method: choice('nearest-exact', 'bilinear', 'area', 'bicubic', 'lanczos'),
      width: int(0, 16_384),
      height: int(0, 16_384),
      crop: choice('disabled', 'center'),
    },
    outputs: ['IMAGE'],
  },
  VAEEncode: { inputs: { pixels: link('IMAGE'), vae: link('VAE') }, outputs: ['LATENT'] },
  RepeatLatentBatch: { inputs: { samples: link('LATENT'), amount: int(1, 64) }, outputs: ['LATENT'] },
  SetLatentNoiseMask: { inputs: { samples: link('LATENT'), mask: link('MASK') }, outputs: ['LATENT'] },
  SaveImage: { inputs: { images: link('IMAGE'), filename_prefix: text }, outputs: [], isOutput: true },
};

/** As `/object_info/<class>` has it. */
export function describeNode(name: string, { inputs, outputs, isOutput = false }: NodeInfo, models: readonly string[]): object {
  const required = Object.fromEntries(Object.entries(inputs).map(([key, info]) => [key, describeInput(info, models)]));
  return { [name]: { input: { required }, output: outputs, output_node: isOutput, name, python_module: 'nodes' } };
}

function describeInput(info: InputInfo, models: readonly string[]): readonly unknown[] {
  switch (info.kind) {
    case 'link':
      return [info.type];
    case 'int':
    case 'float':
      return [info.kind.toUpperCase(), { min: Number(info.min), max: Number(info.max) }];
    case 'text':
      return ['STRING', { multiline: true }];
    case 'flag':
      return ['BOOLEAN', {}];
    case 'choice':
      return [info.choices];
    case 'file':
      return [info.of === 'model' ? models : []];
    default:
      return info satisfies never;
  }
}
