/**
 * Families of image models: parts of their graphs (`graphs.json`), defaults and limits of requests, and memory demand.
 * A new one also needs its marks in `image-model.ts`. Defaults are those of the named template in
 * Comfy-Org/workflow_templates (read in November 2026, with the commit), or those that were run with ComfyUI 0.3.64.
 * Pure.
 */
import type GRAPHS from './graphs.json';

/** Files beside a model: names in its own directory. */
export const PART_NAMES = ['t5', 'clip', 'clip_g', 'encoder', 'vae'] as const;
type PartName = (typeof PART_NAMES)[number];
type PartFile = { readonly pattern: RegExp; readonly what: string };

export interface ImageFamily {
  readonly title: string;
  readonly side: number;
  readonly multiple: number;
  readonly steps: number;
  readonly mostSteps: number;
  readonly cfg: number;
  readonly sampler: string;
  /** Absent: its noise schedule is a node of its own. */
  readonly scheduler?: string;
  readonly sampling: keyof typeof GRAPHS.samplers;
  readonly encoding: keyof typeof GRAPHS.encoders;
  readonly latent: 'EmptyLatentImage' | 'EmptySD3LatentImage' | 'EmptyFlux2LatentImage';
  /** Loader of a model whose parts are files. Absent: one file has everything. */
  readonly loader?: keyof typeof GRAPHS.loaders;
  readonly parts?: Readonly<Partial<Record<PartName, PartFile>>>;
  readonly encoderType?: string;
  readonly patches?: readonly (keyof typeof GRAPHS.patches)[];
  readonly shift?: number;
  /** Most images that an edit shows the model beside the prompt. Absent: an edit begins with its one image instead. */
  readonly references?: number;
  /** It only edits. */
  readonly needsImage?: true;
  /** Least memory of a discrete GPU in bytes, as specified; for a relative, that of the specified model. */
  readonly minDeviceBytes?: number;
  /** Latents, attention and decoder at the largest size, in bytes. */
  readonly workBytes: number;
}

const GB = 1e9;
/** Limit of the API: more steps make no visible difference. */
const MOST_STEPS = 150;
const MOST_TURBO_STEPS = 10;

const T5 = { pattern: /^t5xxl.*\.safetensors$/i, what: 'the text encoder "t5xxl_….safetensors"' };
const CLIP = { pattern: /^clip_l.*\.safetensors$/i, what: 'the text encoder "clip_l.safetensors"' };
const CLIP_G = { pattern: /^clip_g.*\.safetensors$/i, what: 'the text encoder "clip_g.safetensors"' };
const AE = {
  pattern: /^(?!flux-?2|qwen)((flux[-_.]?)?(ae|vae)|(flux.*|.*[-_.])(ae|vae))\.safetensors$/i,
  what: 'the decoder "ae.safetensors"',
};
const encoder = (name: string, pattern: RegExp) => ({ pattern, what: `the text encoder "${name}.safetensors"` });
const QWEN_3_4B = encoder('qwen_3_4b', /^qwen_?3_4b.*\.safetensors$/i);
const FLUX_2_VAE = { pattern: /^flux-?2.*vae.*\.safetensors$/i, what: 'the decoder "flux2-vae.safetensors"' };

const SAMPLING = { sampling: 'plain', encoding: 'prompt and negative prompt', mostSteps: MOST_STEPS } as const;
const SDXL = { ...SAMPLING, latent: 'EmptyLatentImage', side: 1024, multiple: 8, minDeviceBytes: 8 * GB, workBytes: 2 * GB } as const;
const LARGE = { ...SAMPLING, latent: 'EmptySD3LatentImage', side: 1024, multiple: 16, workBytes: 3 * GB } as const;
const EULER = { sampler: 'euler', scheduler: 'simple' };
const FLUX = {
  ...LARGE,
  ...EULER,
  loader: 'two encoders',
  encoderType: 'flux',
  parts: { t5: T5, clip: CLIP, vae: AE },
  minDeviceBytes: 24 * GB,
} as const;
/** `cfg` is an input that the model was trained with, not a second pass with the negative prompt. */
const GUIDED = { sampling: 'guided', encoding: 'prompt', steps: 20 } as const;
const FLUX_2 = {
  ...LARGE,
  sampler: 'euler',
  sampling: 'flux2',
  latent: 'EmptyFlux2LatentImage',
  loader: 'one encoder',
  encoderType: 'flux2',
  references: 4,
} as const;
/** text_to_image_flux_2_klein_4b_distilled.json bce748a, text_to_image_flux_2_klein_4b.json 7ee44e8. */
const KLEIN = { ...FLUX_2, encoding: 'prompt', steps: 4, cfg: 1 } as const;
const KLEIN_BASE = { ...FLUX_2, steps: 20, cfg: 5 } as const;
const KLEIN_4B = { parts: { encoder: QWEN_3_4B, vae: FLUX_2_VAE } };
const KLEIN_9B = { parts: { encoder: encoder('qwen_3_8b', /^qwen_?3_8b.*\.safetensors$/i), vae: FLUX_2_VAE } };
const QWEN = {
  ...LARGE,
  ...EULER,
  loader: 'one encoder',
  encoderType: 'qwen_image',
  parts: {
    encoder: encoder('qwen_2.5_vl_7b_fp8_scaled', /^qwen_?2\.5_vl_7b.*\.safetensors$/i),
    vae: { pattern: /^qwen_?image.*vae.*\.safetensors$/i, what: 'the decoder "qwen_image_vae.safetensors"' },
  },
  patches: ['shift'],
  shift: 3.1,
  steps: 20,
  cfg: 4,
} as const;
const Z_IMAGE = {
  ...LARGE,
  sampler: 'res_multistep',
  scheduler: 'simple',
  loader: 'one encoder',
  encoderType: 'lumina2',
  parts: { encoder: QWEN_3_4B, vae: AE },
  patches: ['shift'],
  shift: 3,
} as const;

const TABLE = {
  /** default.json 01d7404. */
  'sd-1.5': {
    ...SDXL,
    title: 'SD 1.5',
    side: 512,
    steps: 20,
    cfg: 8,
    sampler: 'euler',
    scheduler: 'normal',
    minDeviceBytes: 4 * GB,
    workBytes: GB,
  },
  /** No template for one pass was found: those of upstream add a refiner. */
  sdxl: { ...SDXL, title: 'SDXL', steps: 25, cfg: 7, sampler: 'dpmpp_2m', scheduler: 'karras' },
  'sdxl-turbo': {
    ...SDXL,
    title: 'SDXL turbo',
    side: 512,
    steps: 1,
    mostSteps: MOST_TURBO_STEPS,
    cfg: 1,
    sampler: 'euler_ancestral',
    sampling: 'turbo',
  },
  /** sd3.5_simple_example.json. */
  'sd-3.5': {
    ...LARGE,
    title: 'SD 3.5',
    steps: 20,
    cfg: 4.01,
    sampler: 'euler',
    scheduler: 'sgm_uniform',
    loader: 'checkpoint, three encoders',
    parts: { clip: CLIP, clip_g: CLIP_G, t5: T5 },
  },
  'flux-schnell': { ...FLUX, title: 'FLUX.1 schnell', steps: 4, cfg: 1 },
  'flux-dev': { ...FLUX, ...GUIDED, title: 'FLUX.1 dev', cfg: 3.5 },
  /** flux_kontext_dev_basic.json 0e20d54. */
  'flux-kontext': { ...FLUX, ...GUIDED, title: 'FLUX.1 Kontext', cfg: 2.5, references: 4 },
  /** image_flux2.json 0aa43fd. */
  'flux-2-dev': {
    ...FLUX_2,
    ...GUIDED,
    title: 'FLUX.2 dev',
    sampling: 'flux2, guided',
    cfg: 4,
    parts: { encoder: encoder('mistral_3_small_flux2_bf16', /^mistral.*flux2.*\.safetensors$/i), vae: FLUX_2_VAE },
  },
  'flux-2-klein-4b': { ...KLEIN, ...KLEIN_4B, title: 'FLUX.2 klein 4B' },
  'flux-2-klein-9b': { ...KLEIN, ...KLEIN_9B, title: 'FLUX.2 klein 9B' },
  'flux-2-klein-base-4b': { ...KLEIN_BASE, ...KLEIN_4B, title: 'FLUX.2 klein base 4B' },
  'flux-2-klein-base-9b': { ...KLEIN_BASE, ...KLEIN_9B, title: 'FLUX.2 klein base 9B' },
  /** image_qwen_image.json 099db66. */
  'qwen-image': { ...QWEN, title: 'Qwen-Image', side: 1328 },
  /** image_edit_qwen_2511.json 7ee44e8, with the 20 steps of its note. */
  'qwen-image-edit': {
    ...QWEN,
    title: 'Qwen-Image-Edit',
    encoding: 'prompt with images',
    patches: ['shift', 'norm'],
    references: 3,
    needsImage: true,
  },
  /** image_z_image.json 2705221. */
  'z-image': { ...Z_IMAGE, title: 'Z-Image', steps: 50, cfg: 4 },
  /** image_z_image_turbo.json 0cbd31a. */
  'z-image-turbo': { ...Z_IMAGE, title: 'Z-Image turbo', encoding: 'prompt', steps: 8, cfg: 1 },
} as const satisfies Readonly<Record<string, ImageFamily>>;

export type FamilyName = keyof typeof TABLE;

export const FAMILIES: Readonly<Record<FamilyName, ImageFamily>> = TABLE;

export const FAMILY_NAMES = Object.keys(TABLE).filter((name): name is FamilyName => Object.hasOwn(TABLE, name));

export const FAMILY_TITLES = Object.values(FAMILIES)
  .map(({ title }) => title)
  .join(', ');

export const SIDES = { least: 64, most: 2048 } as const;
