/** Files that look like models of each family to whoever reads their headers. Their weights are zeros. */
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';

type Shapes = Readonly<Record<string, readonly number[]>>;

const PREFIX = 'model.diffusion_model.';
const ATTENTION = 'transformer_blocks.0.attn2.to_k.weight';
const FLUX = 'double_blocks.0.img_attn.qkv.weight';

export const SHAPES = {
  'sd-1.5': { [`${PREFIX}input_blocks.1.1.${ATTENTION}`]: [320, 768], 'first_stage_model.decoder.conv_in.weight': [512, 4, 3, 3] },
  sdxl: { [`${PREFIX}input_blocks.4.1.${ATTENTION}`]: [640, 2048], 'first_stage_model.decoder.conv_in.weight': [512, 4, 3, 3] },
  'flux-schnell-split': { [FLUX]: [9216, 3072] },
  'flux-dev-split': { [FLUX]: [9216, 3072], 'guidance_in.in_layer.weight': [3072, 256] },
  'flux-schnell-checkpoint': {
    [PREFIX + FLUX]: [9216, 3072],
    'text_encoders.clip_l.transformer.weight': [8, 8],
    'vae.encoder.weight': [8],
  },
  'flux-fill': { [FLUX]: [9216, 3072], 'img_in.weight': [3072, 384], 'guidance_in.in_layer.weight': [3072, 256] },
  chroma: { [FLUX]: [9216, 3072], 'distilled_guidance_layer.norms.0.scale': [5120] },
  'flux-2-dev': { [FLUX]: [18_432, 6144], 'double_stream_modulation_img.lin.weight': [36_864, 6144], 'txt_in.weight': [6144, 15_360] },
  'flux-2-klein-4b': { [FLUX]: [9216, 3072], 'double_stream_modulation_img.lin.weight': [18_432, 3072], 'txt_in.weight': [3072, 7680] },
  'flux-2-klein-9b': { [FLUX]: [12_288, 4096], 'double_stream_modulation_img.lin.weight': [24_576, 4096], 'txt_in.weight': [4096, 12_288] },
  'sd-3.5': {
    [`${PREFIX}joint_blocks.0.context_block.attn.qkv.weight`]: [7296, 2432],
    [`${PREFIX}joint_blocks.0.context_block.attn.ln_q.weight`]: [64],
    'text_encoders.clip_l.transformer.weight': [8, 8],
  },
  'sd-3': { [`${PREFIX}joint_blocks.0.context_block.attn.qkv.weight`]: [4608, 1536] },
  'qwen-image': { 'txt_norm.weight': [3584], 'img_in.weight': [3072, 64] },
  'z-image': { 'cap_embedder.1.weight': [3840, 2560] },
  'lumina-2': { 'cap_embedder.1.weight': [2304, 2304] },
  lora: {
    'transformer.layers.0.attention.to_q.lora_A.weight': [16, 3840],
    'transformer.layers.0.attention.to_q.lora_B.weight': [3840, 16],
  },
  other: { 'model.layers.0.self_attn.q_proj.weight': [4096, 4096] },
} as const satisfies Readonly<Record<string, Shapes>>;

export interface FileBytes {
  readonly header: Buffer;
  readonly sizeBytes: number;
}

/** A safetensors file whose weights are as large as their shapes say in 16 bits. */
export function safetensors(shapes: Shapes): FileBytes {
  let at = 0;
  const tensors = Object.entries(shapes).map(([name, shape]) => {
    const from = at;
    at += shape.reduce((product, side) => product * side, 2);
    return [name, { dtype: 'F16', shape, data_offsets: [from, at] }] as const;
  });
  const text = Buffer.from(JSON.stringify({ __metadata__: { format: 'pt' }, ...Object.fromEntries(tensors) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const header = Buffer.concat([length, text]);
  return { header, sizeBytes: header.length + at };
}

/** Writes it with holes instead of weights, so that it takes almost no space. */
export async function writeCheckpoint(file: string, shapes: Shapes): Promise<void> {
  const { header, sizeBytes } = safetensors(shapes);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, header);
  await truncate(file, sizeBytes);
}
