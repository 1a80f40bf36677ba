/** The families of image models: what their pictures look like by default, which sizes they can have, and what their servers need. Pure. */

export const FAMILY_NAMES = ['sd-1.5', 'sdxl', 'sdxl-turbo', 'flux-schnell', 'flux-dev'] as const;
export type FamilyName = (typeof FAMILY_NAMES)[number];

export interface ImageFamily {
  /** For people. */
  readonly title: string;
  /** Pixels of each side, if a request names no size. */
  readonly side: number;
  /** Width and height are multiples of it. */
  readonly multiple: number;
  readonly steps: number;
  /** Most steps that its sampler accepts. */
  readonly mostSteps: number;
  /** Default of `cfg`. */
  readonly cfg: number;
  /** The memory that a discrete GPU has at least, in bytes: the table of the specification, and for families that it does not list that of the larger relative. */
  readonly minDeviceBytes: number;
  /** What computing takes beside the weights, in bytes: latents, attention and the decoder at the largest size. */
  readonly workBytes: number;
}

const GB = 1e9;
/** The contract of the API: more steps change nothing that anyone could see. */
const MOST_STEPS = 150;
/** `SDTurboScheduler` of ComfyUI has no more. */
const MOST_TURBO_STEPS = 10;

export const FAMILIES: Readonly<Record<FamilyName, ImageFamily>> = {
  'sd-1.5': { title: 'SD 1.5', side: 512, multiple: 8, steps: 25, mostSteps: MOST_STEPS, cfg: 7, minDeviceBytes: 4 * GB, workBytes: GB },
  sdxl: { title: 'SDXL', side: 1024, multiple: 8, steps: 25, mostSteps: MOST_STEPS, cfg: 7, minDeviceBytes: 8 * GB, workBytes: 2 * GB },
  'sdxl-turbo': {
    title: 'SDXL turbo',
    side: 512,
    multiple: 8,
    steps: 1,
    mostSteps: MOST_TURBO_STEPS,
    cfg: 1,
    minDeviceBytes: 8 * GB,
    workBytes: 2 * GB,
  },
  'flux-schnell': {
    title: 'FLUX.1 schnell',
    side: 1024,
    multiple: 16,
    steps: 4,
    mostSteps: MOST_STEPS,
    cfg: 1,
    minDeviceBytes: 24 * GB,
    workBytes: 3 * GB,
  },
  'flux-dev': {
    title: 'FLUX.1 dev',
    side: 1024,
    multiple: 16,
    steps: 20,
    mostSteps: MOST_STEPS,
    cfg: 3.5,
    minDeviceBytes: 24 * GB,
    workBytes: 3 * GB,
  },
};

/** Shortest and longest side of an image in pixels: the contract of the API. */
export const SIDES = { least: 64, most: 2048 } as const;
