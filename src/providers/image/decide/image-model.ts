/** What is known of an image model: its family and how its weights are divided into files. From the header of its file, or from names alone where it cannot be read. Pure. */
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import type { ModelContents, ModelFacts } from '../../provider.ts';
import { FAMILY_NAMES, type FamilyName } from './image-families.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** The files that a diffusion model needs if it comes without them: names in its own directory. */
export interface Companions {
  readonly t5: string;
  readonly clip: string;
  readonly vae: string;
}

export interface ImageModel {
  readonly family: FamilyName;
  /** Undefined: one file has everything. Otherwise the files beside it, as far as they are there. */
  readonly companions: Partial<Companions> | undefined;
}

/** Names go to the server as parts of paths. */
const FileName = z.string().regex(/^(?!\.)[\w .+()-]{1,200}$/);
const Contents = z.object({
  family: z.enum(FAMILY_NAMES),
  companions: z.object({ t5: FileName.exactOptional(), clip: FileName.exactOptional(), vae: FileName.exactOptional() }).optional(),
});

/** Undefined if the model is not known to be one of these families. */
export function imageModel({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): ImageModel | undefined {
  if (provider !== 'image') return undefined;
  const parsed = Contents.safeParse(contents).data;
  return parsed === undefined ? undefined : { family: parsed.family, companions: parsed.companions };
}

export function contentsOf({ family, companions }: ImageModel): ModelContents {
  return { family, ...(companions === undefined ? {} : { companions }) };
}

const PARTS = {
  t5: /^t5xxl.*\.safetensors$/i,
  clip: /^clip_l.*\.safetensors$/i,
  vae: /^((flux[-_.]?)?(ae|vae)|(flux.*|.*[-_.])(ae|vae))\.safetensors$/i,
} as const;

/** Whether the name is that of a file that a diffusion model needs beside it. */
export function isCompanionName(name: string): boolean {
  return Object.values(PARTS).some((pattern) => pattern.test(name));
}

/** Chooses the first of each kind in the order of their names. */
function companionsAmong(names: readonly string[]): Partial<Companions> {
  const first = (pattern: RegExp) => names.filter((name) => pattern.test(name) && FileName.safeParse(name).success).toSorted()[0];
  const found = { t5: first(PARTS.t5), clip: first(PARTS.clip), vae: first(PARTS.vae) };
  return Object.fromEntries(Object.entries(found).filter(([, name]) => name !== undefined));
}

/** What is missing beside a diffusion model, for people; empty if nothing is. */
export function missingCompanions({ companions }: ImageModel): readonly string[] {
  if (companions === undefined) return [];
  return [
    ...(companions.t5 === undefined ? ['the text encoder "t5xxl_….safetensors"'] : []),
    ...(companions.clip === undefined ? ['the text encoder "clip_l.safetensors"'] : []),
    ...(companions.vae === undefined ? ['the decoder "ae.safetensors"'] : []),
  ];
}

/** ComfyUI saves whole checkpoints with this prefix. */
const PREFIX = 'model.diffusion_model.';
const SD_ATTENTION = 'input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight';
const SDXL_ATTENTION = 'input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight';
const FLUX_BLOCK = 'double_blocks.0.img_attn.qkv.weight';
/** Only FLUX.1 dev has it: schnell was distilled without guidance. */
const FLUX_GUIDANCE = 'guidance_in.in_layer.weight';
/** How many numbers describe a token in each family. */
const SD15_CONTEXT = 768;
const SDXL_CONTEXT = 2048;

/** Undefined if this version has no workflow for the model. `name`: of the file, from which a turbo model is known among those of SDXL. `beside`: names in its directory. */
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

function isTurboName(name: string): boolean {
  return /turbo/i.test(name);
}

/** What names alone say of a model whose first file is the one that the server loads. */
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

/** A file as ComfyUI names it: relative to a directory that it searches. */
interface CheckpointPlace {
  readonly directory: string;
  /** `sdxl-turbo/sd_xl_turbo_1.0_fp16.safetensors` */
  readonly name: string;
}

/** The directory `models/checkpoints` that the file is in, at any depth; otherwise its own directory. */
export function placeOf(path: string): CheckpointPlace {
  const match = /^(.*\/models\/checkpoints)\/(.+)$/s.exec(path);
  return { directory: match?.[1] ?? dirname(path), name: match?.[2] ?? basename(path) };
}

/** The name of a file in the directory of the checkpoint. */
export function besideCheckpoint(checkpoint: string, name: string): string {
  const directory = dirname(checkpoint);
  return directory === '.' ? name : `${directory}/${name}`;
}

/** Reads the header of a safetensors file: 8 bytes with the length of a JSON text in little-endian order, the text, and then the values of the tensors. Pure. */

/** Bytes before the JSON text. */
export const LENGTH_BYTES = 8;
/** The headers of image models have less than 1 MiB. The format allows 100 MB. */
const MOST_HEADER_BYTES = 16 * 2 ** 20;

interface TensorFacts {
  readonly shape: readonly number[];
}

export interface SafetensorsHeader {
  /** By name. */
  readonly tensors: ReadonlyMap<string, TensorFacts>;
  /** What the whole file has, in bytes. */
  readonly fileBytes: number;
}

const Tensor = z.object({
  shape: z.array(z.int().min(0)).max(16),
  data_offsets: z.tuple([z.int().min(0), z.int().min(0)]),
});
const Header = z.record(z.string(), z.unknown());
/** Notes of the program that wrote the file. */
const NOTES = '__metadata__';

/** Returns the length of the JSON text; undefined if it cannot be one. */
export function headerBytesOf(first: Uint8Array): number | undefined {
  if (first.length < LENGTH_BYTES) return undefined;
  const length = new DataView(first.buffer, first.byteOffset, LENGTH_BYTES).getBigUint64(0, true);
  return length < 2n || length > BigInt(MOST_HEADER_BYTES) ? undefined : Number(length);
}

/** Returns undefined if the text is no header. */
export function parseHeader(text: Uint8Array): SafetensorsHeader | undefined {
  const parsed = Header.safeParse(parseJson(new TextDecoder().decode(text))).data;
  if (parsed === undefined) return undefined;
  const tensors = new Map<string, TensorFacts>();
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
