/**
 * Families of image models: defaults and limits of requests, and memory demand. A new one also needs a template in
 * `build-workflow.ts` and its marks in `image-model.ts`. Pure.
 */
export const FAMILY_NAMES = ['sd-1.5', 'sdxl', 'sdxl-turbo', 'flux-schnell', 'flux-dev'] as const;
export type FamilyName = (typeof FAMILY_NAMES)[number];

export interface ImageFamily {
  readonly title: string;
  readonly side: number;
  readonly multiple: number;
  readonly steps: number;
  readonly mostSteps: number;
  readonly cfg: number;
  /** Least memory of a discrete GPU in bytes, as specified; for other families, the value of the larger relative. */
  readonly minDeviceBytes: number;
  /** Latents, attention and decoder at the largest size, in bytes. */
  readonly workBytes: number;
}

const GB = 1e9;
/** Limit of the API: more steps make no visible difference. */
const MOST_STEPS = 150;
const MOST_TURBO_STEPS = 10;

const SDXL = { side: 1024, multiple: 8, steps: 25, mostSteps: MOST_STEPS, cfg: 7, minDeviceBytes: 8 * GB, workBytes: 2 * GB };
const FLUX = { side: 1024, multiple: 16, mostSteps: MOST_STEPS, minDeviceBytes: 24 * GB, workBytes: 3 * GB };

export const FAMILIES: Readonly<Record<FamilyName, ImageFamily>> = {
  'sd-1.5': { ...SDXL, title: 'SD 1.5', side: 512, minDeviceBytes: 4 * GB, workBytes: GB },
  sdxl: { ...SDXL, title: 'SDXL' },
  'sdxl-turbo': { ...SDXL, title: 'SDXL turbo', side: 512, steps: 1, mostSteps: MOST_TURBO_STEPS, cfg: 1 },
  'flux-schnell': { ...FLUX, title: 'FLUX.1 schnell', steps: 4, cfg: 1 },
  'flux-dev': { ...FLUX, title: 'FLUX.1 dev', steps: 20, cfg: 3.5 },
};

export const SIDES = { least: 64, most: 2048 } as const;
