/** Builds the workflow of a request from templates. Nodes are those of ComfyUI 0.3.64. Pure. */
import { FAMILIES, type FamilyName } from './image-families.ts';
import { besideCheckpoint, type Companions, type ImageModel } from './image-model.ts';
import type { ImageParameters } from './image-parameters.ts';
import { node, type Link, type Workflow } from './workflow-parameters.ts';

export interface WorkflowRequest {
  readonly model: ImageModel;
  readonly checkpoint: string;
  readonly parameters: Pick<ImageParameters, 'prompt' | 'negativePrompt' | 'n' | 'size' | 'steps' | 'cfg'>;
  readonly seed: bigint;
  /** Unique per request: an existing name would belong to an earlier image. */
  readonly filenamePrefix: string;
  readonly source?: ImageSource | undefined;
}

export interface ImageSource {
  readonly image: string;
  /** Its transparent parts change; undefined: the whole image. */
  readonly mask: string | undefined;
  readonly strength: number;
}

export interface BuiltWorkflow {
  readonly name: string;
  readonly workflow: Workflow;
  readonly saveNode: string;
}

type TemplateInputs = Pick<ImageParameters, 'prompt' | 'negativePrompt' | 'n' | 'steps' | 'cfg'> &
  Pick<WorkflowRequest, 'checkpoint' | 'seed' | 'source'> & {
    readonly companions: Companions;
    readonly width: number;
    readonly height: number;
  };

type Drawn = { readonly nodes: Workflow; readonly samples: Link; readonly vae: Link };

const SAVE_NODE = '9';

export function buildWorkflow({ model, checkpoint, parameters, seed, filenamePrefix, source }: WorkflowRequest): BuiltWorkflow {
  const name = workflowNameOf(model);
  const { side } = FAMILIES[model.family];
  const { width, height } = parameters.size ?? { width: side, height: side };
  const { prompt, negativePrompt, n, steps, cfg } = parameters;
  const { t5 = '', clip = '', vae = '' } = model.companions ?? {};
  const beside = (file: string): string => besideCheckpoint(checkpoint, file);
  const companions = { t5: beside(t5), clip: beside(clip), vae: beside(vae) };
  const drawn = TEMPLATES[name]({ checkpoint, companions, width, height, prompt, negativePrompt, n, seed, steps, cfg, source });
  return {
    name,
    saveNode: SAVE_NODE,
    workflow: {
      ...drawn.nodes,
      '8': node('VAEDecode', { samples: drawn.samples, vae: drawn.vae }),
      [SAVE_NODE]: node('SaveImage', { images: ['8', 0], filename_prefix: filenamePrefix }),
    },
  };
}

export function workflowNameOf({ family, companions }: ImageModel): WorkflowName {
  if (family === 'flux-schnell' || family === 'flux-dev') return companions === undefined ? `${family}-checkpoint` : `${family}-split`;
  return family;
}

type FluxName = Extract<FamilyName, `flux-${string}`>;
type WorkflowName = Exclude<FamilyName, FluxName> | `${FluxName}-checkpoint` | `${FluxName}-split`;

const TEMPLATES: Readonly<Record<WorkflowName, (inputs: TemplateInputs) => Drawn>> = {
  'sd-1.5': (inputs) => stableDiffusion(inputs),
  sdxl: (inputs) => stableDiffusion(inputs),
  'sdxl-turbo': turbo,
  'flux-schnell-checkpoint': (inputs) => fluxCheckpoint(inputs, false),
  'flux-schnell-split': (inputs) => fluxSplit(inputs, false),
  'flux-dev-checkpoint': (inputs) => fluxCheckpoint(inputs, true),
  'flux-dev-split': (inputs) => fluxSplit(inputs, true),
};

function checkpointNodes({ checkpoint, prompt, negativePrompt }: TemplateInputs): Workflow {
  return {
    '4': node('CheckpointLoaderSimple', { ckpt_name: checkpoint }),
    '6': node('CLIPTextEncode', { text: prompt, clip: ['4', 1] }),
    '7': node('CLIPTextEncode', { text: negativePrompt, clip: ['4', 1] }),
  };
}

function firstLatent(inputs: TemplateInputs, className: 'EmptyLatentImage' | 'EmptySD3LatentImage', vae: Link): Workflow {
  const { width, height, n, source } = inputs;
  if (source === undefined) return { '5': node(className, { width, height, batch_size: n }) };
  const { image, mask } = source;
  const pixels = {
    '20': node('LoadImage', { image }),
    '21': node('ImageScale', { image: ['20', 0], upscale_method: 'bicubic', width, height, crop: 'disabled' }),
  };
  const encoded = node('VAEEncode', { pixels: ['21', 0], vae });
  if (mask === undefined) return { ...pixels, '22': encoded, '5': node('RepeatLatentBatch', { samples: ['22', 0], amount: n }) };
  return {
    ...pixels,
    '22': encoded,
    '23': node('RepeatLatentBatch', { samples: ['22', 0], amount: n }),
    '24': node('LoadImage', { image: mask }),
    // The second output is 1 where the file is transparent; the sampler changes these parts.
    '5': node('SetLatentNoiseMask', { samples: ['23', 0], mask: ['24', 1] }),
  };
}

const denoiseOf = ({ source }: TemplateInputs): number => source?.strength ?? 1;

function stableDiffusion(inputs: TemplateInputs): Drawn {
  const { cfg } = inputs;
  return sampleCheckpoint(
    inputs,
    { cfg, sampler_name: 'dpmpp_2m', scheduler: 'karras' },
    firstLatent(inputs, 'EmptyLatentImage', ['4', 2]),
  );
}

/** `guided`: `cfg` is an input that the model was trained with, not a second pass with the negative prompt. */
function fluxCheckpoint(inputs: TemplateInputs, guided: boolean): Drawn {
  const nodes = { ...guidance(guided, inputs.cfg), ...firstLatent(inputs, 'EmptySD3LatentImage', ['4', 2]) };
  return sampleCheckpoint(inputs, { cfg: guided ? 1 : inputs.cfg, sampler_name: 'euler', scheduler: 'simple' }, nodes);
}

type Sampler = Readonly<Record<'cfg', number> & Record<'sampler_name' | 'scheduler', string>>;

function sampleCheckpoint(inputs: TemplateInputs, sampler: Sampler, nodes: Workflow): Drawn {
  const { seed, steps } = inputs;
  const links = { model: ['4', 0], positive: ['12' in nodes ? '12' : '6', 0], negative: ['7', 0], latent_image: ['5', 0] } as const;
  const sample = node('KSampler', { seed, steps, ...sampler, denoise: denoiseOf(inputs), ...links });
  return { nodes: { ...checkpointNodes(inputs), ...nodes, '3': sample }, samples: ['3', 0], vae: ['4', 2] };
}

function turbo(inputs: TemplateInputs): Drawn {
  const { seed, steps, cfg } = inputs;
  const links = { positive: ['6', 0], negative: ['7', 0], sampler: ['10', 0], sigmas: ['11', 0], latent_image: ['5', 0] } as const;
  return {
    nodes: {
      ...checkpointNodes(inputs),
      ...firstLatent(inputs, 'EmptyLatentImage', ['4', 2]),
      '10': node('KSamplerSelect', { sampler_name: 'euler_ancestral' }),
      '11': node('SDTurboScheduler', { model: ['4', 0], steps, denoise: denoiseOf(inputs) }),
      '3': node('SamplerCustom', { model: ['4', 0], add_noise: true, noise_seed: seed, cfg, ...links }),
    },
    samples: ['3', 0],
    vae: ['4', 2],
  };
}

function fluxSplit(inputs: TemplateInputs, guided: boolean): Drawn {
  const { checkpoint, companions, prompt, negativePrompt, seed, steps, cfg } = inputs;
  const plain = guided || cfg === 1;
  const conditioning: Link = guided ? ['12', 0] : ['6', 0];
  const links = { noise: ['16', 0], guider: ['15', 0], sampler: ['10', 0], sigmas: ['11', 0], latent_image: ['5', 0] } as const;
  const guider = plain
    ? node('BasicGuider', { model: ['4', 0], conditioning })
    : node('CFGGuider', { model: ['4', 0], positive: conditioning, negative: ['7', 0], cfg });
  return {
    nodes: {
      '4': node('UNETLoader', { unet_name: checkpoint, weight_dtype: 'default' }),
      '13': node('DualCLIPLoader', { clip_name1: companions.t5, clip_name2: companions.clip, type: 'flux' }),
      '14': node('VAELoader', { vae_name: companions.vae }),
      '6': node('CLIPTextEncode', { text: prompt, clip: ['13', 0] }),
      ...(plain ? {} : { '7': node('CLIPTextEncode', { text: negativePrompt, clip: ['13', 0] }) }),
      ...guidance(guided, cfg),
      ...firstLatent(inputs, 'EmptySD3LatentImage', ['14', 0]),
      '15': guider,
      '16': node('RandomNoise', { noise_seed: seed }),
      '10': node('KSamplerSelect', { sampler_name: 'euler' }),
      '11': node('BasicScheduler', { model: ['4', 0], scheduler: 'simple', steps, denoise: denoiseOf(inputs) }),
      '3': node('SamplerCustomAdvanced', links),
    },
    samples: ['3', 0],
    vae: ['14', 0],
  };
}

const guidance = (guided: boolean, cfg: number): Workflow =>
  guided ? { '12': node('FluxGuidance', { conditioning: ['6', 0], guidance: cfg }) } : {};
