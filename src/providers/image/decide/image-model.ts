/** Family of an image model, and the division of its weights into files: from the header, or from names alone. Pure. */
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import type { ModelContents, ModelFacts } from '../../provider.ts';
import { FAMILY_NAMES, type FamilyName } from './image-families.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** Files that a diffusion model needs beside it: names in its own directory. */
export type Companions = { readonly t5: string; readonly clip: string; readonly vae: string };

export interface ImageModel {
  readonly family: FamilyName;
  /** Undefined: one file has everything. Otherwise the files that are present. */
  readonly companions: Partial<Companions> | undefined;
}

/** Names become parts of paths at the server. */
const FileName = z.string().regex(/^(?!\.)[\w .+()-]{1,200}$/);
const Contents = z.object({
  family: z.enum(FAMILY_NAMES),
  companions: z.object({ t5: FileName.exactOptional(), clip: FileName.exactOptional(), vae: FileName.exactOptional() }).optional(),
});

export function imageModel({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): ImageModel | undefined {
  if (provider !== 'image') return undefined;
  const parsed = Contents.safeParse(contents).data;
  return parsed === undefined ? undefined : { family: parsed.family, companions: parsed.companions };
}

export const contentsOf = ({ family, companions }: ImageModel): ModelContents => ({
  family,
  ...(companions === undefined ? {} : { companions }),
});

const PARTS = {
  t5: /^t5xxl.*\.safetensors$/i,
  clip: /^clip_l.*\.safetensors$/i,
  vae: /^((flux[-_.]?)?(ae|vae)|(flux.*|.*[-_.])(ae|vae))\.safetensors$/i,
} as const;

export const isCompanionName = (name: string): boolean => Object.values(PARTS).some((pattern) => pattern.test(name));

function companionsAmong(names: readonly string[]): Partial<Companions> {
  const first = (pattern: RegExp) => names.filter((name) => pattern.test(name) && FileName.safeParse(name).success).toSorted()[0];
  const found = { t5: first(PARTS.t5), clip: first(PARTS.clip), vae: first(PARTS.vae) };
  return Object.fromEntries(Object.entries(found).filter(([, name]) => name !== undefined));
}

export function missingCompanions({ companions }: ImageModel): readonly string[] {
  if (companions === undefined) return [];
  return [
    ...(companions.t5 === undefined ? ['the text encoder "t5xxl_….safetensors"'] : []),
    ...(companions.clip === undefined ? ['the text encoder "clip_l.safetensors"'] : []),
    ...(companions.vae === undefined ? ['the decoder "ae.safetensors"'] : []),
  ];
}

const PREFIX = 'model.diffusion_model.';
const SD_ATTENTION = 'input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight';
const SDXL_ATTENTION = 'input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight';
const FLUX_BLOCK = 'double_blocks.0.img_attn.qkv.weight';
/** Only in FLUX.1 dev: schnell was distilled without guidance. */
const FLUX_GUIDANCE = 'guidance_in.in_layer.weight';
const SD15_CONTEXT = 768;
const SDXL_CONTEXT = 2048;

/** Undefined: no workflow. `name` tells turbo models among those of SDXL. `beside`: names in its directory. */
export function readImageModel({ tensors }: SafetensorsHeader, name: string, beside: readonly string[]): ImageModel | undefined {
  const shapeOf = (key: string) => (tensors.get(PREFIX + key) ?? tensors.get(key))?.shape;
  const isWhole = tensors.has(PREFIX + FLUX_BLOCK) && tensors.keys().some((key) => key.startsWith('text_encoders.'));
  if (shapeOf(FLUX_BLOCK) !== undefined) {
    const family = shapeOf(FLUX_GUIDANCE) === undefined ? 'flux-schnell' : 'flux-dev';
    return { family, companions: isWhole ? undefined : companionsAmong(beside) };
  }
  if (!tensors.has(PREFIX + SD_ATTENTION) && !tensors.has(PREFIX + SDXL_ATTENTION)) return undefined;
  if (shapeOf(SDXL_ATTENTION)?.[1] === SDXL_CONTEXT) return { family: isTurboName(name) ? 'sdxl-turbo' : 'sdxl', companions: undefined };
  return shapeOf(SD_ATTENTION)?.[1] === SD15_CONTEXT ? { family: 'sd-1.5', companions: undefined } : undefined;
}

const isTurboName = (name: string): boolean => /turbo/i.test(name);

/** Recognises a model by names alone; the server loads the first file. */
export function imageModelNamed(files: readonly string[]): ImageModel | undefined {
  const [first] = files;
  if (first === undefined || !/\.safetensors$/i.test(first)) return undefined;
  if (/flux/i.test(first)) {
    const family = /schnell/i.test(first) ? 'flux-schnell' : 'flux-dev';
    const beside = files.slice(1).map((file) => basename(file));
    return { family, companions: beside.length === 0 ? undefined : companionsAmong(beside) };
  }
  if (/sd_?xl/i.test(first)) return { family: isTurboName(first) ? 'sdxl-turbo' : 'sdxl', companions: undefined };
  return /sd[-_.]?1[-_.]?5|v1[-_.]5/i.test(first) ? { family: 'sd-1.5', companions: undefined } : undefined;
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
