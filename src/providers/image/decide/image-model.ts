/** Family of an image model, and the division of its weights into files: from the header, or from names alone. Pure. */
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import type { ModelContents, ModelFacts } from '../../provider.ts';
import { FAMILIES, FAMILY_NAMES, PART_NAMES, type FamilyName } from './image-families.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** Files that a diffusion model needs beside it: names in its own directory. */
type Companions = Readonly<Partial<Record<(typeof PART_NAMES)[number], string>>>;

export interface ImageModel {
  readonly family: FamilyName;
  /** Undefined: one file has everything. Otherwise the files that are present. */
  readonly companions: Companions | undefined;
  /** Files beside it that requests may add. */
  readonly loras?: readonly string[] | undefined;
  /** Size of its largest file, if it has several. */
  readonly largestBytes?: number | undefined;
}

/** Names become parts of paths at the server. */
const FileName = z.string().regex(/^(?!\.)[\w .+()-]{1,200}$/);
export const isFileName = (name: string): boolean => FileName.safeParse(name).success;
const Contents = z.object({
  family: z.enum(FAMILY_NAMES),
  companions: z.partialRecord(z.enum(PART_NAMES), FileName).optional(),
  loras: z.array(FileName).optional(),
  largestBytes: z.number().optional(),
});

export const imageModel = ({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): ImageModel | undefined =>
  provider === 'image' ? withCompanions(Contents.safeParse(contents).data) : undefined;

const withCompanions = (parsed: z.output<typeof Contents> | undefined): ImageModel | undefined =>
  parsed === undefined ? undefined : { ...parsed, companions: parsed.companions };

export const contentsOf = (model: ImageModel): ModelContents =>
  Object.fromEntries(Object.entries(model).filter(([, value]) => value !== undefined));

export const isCompanionName = (name: string): boolean =>
  Object.values(FAMILIES).some(({ parts = {} }) => Object.values(parts).some(({ pattern }) => pattern.test(name)));

function companionsAmong(family: FamilyName, names: readonly string[]): Companions {
  const safe = names.filter((name) => isFileName(name)).toSorted();
  const found = Object.entries(FAMILIES[family].parts ?? {}).map(([part, { pattern }]) => [part, safe.find((name) => pattern.test(name))]);
  return Object.fromEntries(found.filter(([, name]) => name !== undefined));
}

export function missingCompanions({ family, companions }: ImageModel): readonly string[] {
  if (companions === undefined) return [];
  const parts = FAMILIES[family].parts ?? {};
  return PART_NAMES.flatMap((part) => (companions[part] === undefined ? (parts[part]?.what ?? []) : []));
}

const PREFIX = 'model.diffusion_model.';
const SD_ATTENTION = 'input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight';
const SDXL_ATTENTION = 'input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight';
const SD15_CONTEXT = 768;
const SDXL_CONTEXT = 2048;
const SD_3_BLOCK = 'joint_blocks.0.context_block.attn.qkv.weight';
/** SD 3 has no such norm. */
const SD_35_NORM = 'joint_blocks.0.context_block.attn.ln_q.weight';
const FLUX_BLOCK = 'double_blocks.0.img_attn.qkv.weight';
/** Not in FLUX.1 schnell, which was distilled without guidance. */
const FLUX_GUIDANCE = 'guidance_in.in_layer.weight';
/** Chroma has the blocks of FLUX.1, and this instead of their modulation. */
const CHROMA_LAYER = 'distilled_guidance_layer.norms.0.scale';
/** FLUX.1 has 64 inputs; models that fill or follow an image have more. */
const FLUX_INPUTS = 64;
const FLUX_2_MODULATION = 'double_stream_modulation_img.lin.weight';
/** Three layers of the text encoder side by side. */
const FLUX_2_CONTEXTS: ReadonlyMap<number | undefined, '4b' | '9b' | 'dev'> = new Map([
  [7680, '4b'],
  [12_288, '9b'],
  [15_360, 'dev'],
]);
const Z_IMAGE_SIDE = 3840;

const LORA_TENSOR = /\.lora_(?:down|up|A|B)\.(?:default\.)?weight$/;
export const isLora = ({ tensors }: SafetensorsHeader): boolean => tensors.keys().some((key) => LORA_TENSOR.test(key));

/** Undefined: no workflow. `name` tells variants with the same tensors. `beside`: names in its directory. */
export function readImageModel({ tensors }: SafetensorsHeader, name: string, beside: readonly string[]): ImageModel | undefined {
  const shapeOf = (key: string) => (tensors.get(PREFIX + key) ?? tensors.get(key))?.shape;
  const family = familyOf(shapeOf, name);
  if (family === undefined) return undefined;
  const isWhole = FAMILIES[family].loader === undefined || tensors.keys().some((key) => key.startsWith('text_encoders.'));
  // A U-Net alone has no text encoders either.
  if (FAMILIES[family].loader === undefined && !tensors.keys().some((key) => key.startsWith(PREFIX))) return undefined;
  return { family, companions: isWhole ? undefined : companionsAmong(family, beside) };
}

function familyOf(shapeOf: (key: string) => readonly number[] | undefined, name: string): FamilyName | undefined {
  if (shapeOf(FLUX_2_MODULATION) !== undefined) {
    const size = FLUX_2_CONTEXTS.get(shapeOf('txt_in.weight')?.[1]);
    return size === undefined || size === 'dev' ? size && 'flux-2-dev' : kleinOf(size, name);
  }
  if (shapeOf(FLUX_BLOCK) !== undefined) {
    if (shapeOf(CHROMA_LAYER) !== undefined || (shapeOf('img_in.weight')?.[1] ?? FLUX_INPUTS) !== FLUX_INPUTS) return undefined;
    if (shapeOf(FLUX_GUIDANCE) === undefined) return 'flux-schnell';
    return /kontext/i.test(name) ? 'flux-kontext' : 'flux-dev';
  }
  if (shapeOf(SD_3_BLOCK) !== undefined) return shapeOf(SD_35_NORM) === undefined ? undefined : 'sd-3.5';
  if (shapeOf('txt_norm.weight') !== undefined && shapeOf('img_in.weight')?.[1] === FLUX_INPUTS)
    return /edit/i.test(name) ? 'qwen-image-edit' : 'qwen-image';
  if (shapeOf('cap_embedder.1.weight')?.[0] === Z_IMAGE_SIDE) return isTurboName(name) ? 'z-image-turbo' : 'z-image';
  if (shapeOf(SDXL_ATTENTION)?.[1] === SDXL_CONTEXT) return isTurboName(name) ? 'sdxl-turbo' : 'sdxl';
  return shapeOf(SD_ATTENTION)?.[1] === SD15_CONTEXT ? 'sd-1.5' : undefined;
}

const isTurboName = (name: string): boolean => /turbo/i.test(name);
const kleinOf = (size: '4b' | '9b', name: string) =>
  /base/i.test(name) ? (`flux-2-klein-base-${size}` as const) : (`flux-2-klein-${size}` as const);

/** In this order, since a name may match several. */
const NAMED: readonly (readonly [RegExp, (name: string) => FamilyName])[] = [
  [/flux[-_. ]?2.*klein/i, (name) => kleinOf(/9b/i.test(name) ? '9b' : '4b', name)],
  [/flux[-_. ]?2/i, () => 'flux-2-dev'],
  [/flux.*kontext/i, () => 'flux-kontext'],
  [/flux/i, (name) => (/schnell/i.test(name) ? 'flux-schnell' : 'flux-dev')],
  [/qwen[-_. ]?image/i, (name) => (/edit/i.test(name) ? 'qwen-image-edit' : 'qwen-image')],
  [/z[-_. ]?image/i, (name) => (isTurboName(name) ? 'z-image-turbo' : 'z-image')],
  [/sd[-_. ]?3[-_.]5/i, () => 'sd-3.5'],
  [/sd_?xl/i, (name) => (isTurboName(name) ? 'sdxl-turbo' : 'sdxl')],
  [/sd[-_.]?1[-_.]?5|v1[-_.]5/i, () => 'sd-1.5'],
];

/** Recognises a model by names alone; the server loads the first file. */
export function imageModelNamed(files: readonly string[]): ImageModel | undefined {
  const [first] = files;
  if (first === undefined || !/\.safetensors$/i.test(first)) return undefined;
  const family = NAMED.find(([pattern]) => pattern.test(first))?.[1](first);
  if (family === undefined) return undefined;
  const beside = FAMILIES[family].loader === undefined ? [] : files.slice(1).map((file) => basename(file));
  return { family, companions: beside.length === 0 ? undefined : companionsAmong(family, beside) };
}

/** Relative to a directory that ComfyUI searches. */
type CheckpointPlace = { readonly directory: string; readonly name: string };

export function placeOf(path: string): CheckpointPlace {
  const match = /^(.*\/models\/checkpoints)\/(.+)$/s.exec(path);
  return { directory: match?.[1] ?? dirname(path), name: match?.[2] ?? basename(path) };
}

export function besideCheckpoint(checkpoint: string, name: string): string {
  const directory = dirname(checkpoint);
  return directory === '.' ? name : `${directory}/${name}`;
}

/** Header of a safetensors file: the little-endian length of a JSON text in 8 bytes, then the text. */
export const LENGTH_BYTES = 8;
/** Headers of image models have less than 1 MiB; the format allows 100 MB. */
const MOST_HEADER_BYTES = 16 * 2 ** 20;

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, { readonly shape: readonly number[] }>;
  readonly fileBytes: number;
}

const Whole = z.int().min(0);
const Tensor = z.object({ shape: z.array(Whole).max(16), data_offsets: z.tuple([Whole, Whole]) });
const Header = z.record(z.string(), z.unknown());
const NOTES = '__metadata__';

export function headerBytesOf(first: Uint8Array): number | undefined {
  if (first.length < LENGTH_BYTES) return undefined;
  const length = new DataView(first.buffer, first.byteOffset, LENGTH_BYTES).getBigUint64(0, true);
  return length < 2n || length > BigInt(MOST_HEADER_BYTES) ? undefined : Number(length);
}

export function parseHeader(text: Uint8Array): SafetensorsHeader | undefined {
  const parsed = Header.safeParse(parseJson(new TextDecoder().decode(text))).data;
  if (parsed === undefined) return undefined;
  const tensors = new Map<string, { readonly shape: readonly number[] }>();
  let endsAt = 0;
  for (const [name, value] of Object.entries(parsed)) {
    if (name === NOTES) continue;
    const tensor = Tensor.safeParse(value).data;
    if (tensor === undefined) return undefined;
    tensors.set(name, { shape: tensor.shape });
    endsAt = Math.max(endsAt, tensor.data_offsets[1]);
  }
  return { tensors, fileBytes: LENGTH_BYTES + text.length + endsAt };
}
