/**
 * Generates a vision projector without trained weights, as llama.cpp expects it beside a model (`general.architecture` is `clip`), and an image for it. It projects every image to
 * the same vectors, so that the answer shows nothing of the image, but the number of tokens of the prompt does. Pure.
 */
import { crc32, deflateSync } from 'node:zlib';
import { bool, encodeGguf, f32, f32s, filled, text, u32, type GgufTensor } from '../../../toolboxes/demo/encode-gguf.ts';

const IMAGE = 28;
const PATCH = 14;
/** An image becomes so many tokens. */
export const IMAGE_TOKENS = (IMAGE / PATCH) ** 2;
const WIDTH = 32;
const HEADS = 2;
const FEED_FORWARD = 32;
/** llama.cpp leaves the last layer out. */
const LAYERS = 2;

/** `modelWidth`: the embedding length of the model that it belongs to. */
export function encodeProjector(modelWidth: number): Uint8Array {
  return encodeGguf({
    metadata: [
      ['general.architecture', text('clip')],
      ['general.type', text('mmproj')],
      ['general.file_type', u32(0)],
      ['clip.has_vision_encoder', bool(true)],
      ['clip.projector_type', text('mlp')],
      ['clip.use_gelu', bool(true)],
      ['clip.vision.image_size', u32(IMAGE)],
      ['clip.vision.patch_size', u32(PATCH)],
      ['clip.vision.embedding_length', u32(WIDTH)],
      ['clip.vision.feed_forward_length', u32(FEED_FORWARD)],
      ['clip.vision.block_count', u32(LAYERS)],
      ['clip.vision.projection_dim', u32(modelWidth)],
      ['clip.vision.attention.head_count', u32(HEADS)],
      ['clip.vision.attention.layer_norm_epsilon', f32(1e-5)],
      ['clip.vision.image_mean', f32s([0.5, 0.5, 0.5])],
      ['clip.vision.image_std', f32s([0.5, 0.5, 0.5])],
    ],
    tensors: [
      filled('v.patch_embd.weight', [PATCH, PATCH, 3, WIDTH], 0),
      filled('v.class_embd', [WIDTH], 0),
      filled('v.position_embd.weight', [WIDTH, IMAGE_TOKENS + 1], 0),
      ...norm('v.pre_ln'),
      ...Array.from({ length: LAYERS }, (_, layer) => block(`v.blk.${layer}`)).flat(),
      ...linear('mm.0', WIDTH, modelWidth),
      ...linear('mm.2', modelWidth, modelWidth),
    ],
  });
}

function block(name: string): readonly GgufTensor[] {
  return [
    ...['attn_q', 'attn_k', 'attn_v', 'attn_out'].flatMap((part) => linear(`${name}.${part}`, WIDTH, WIDTH)),
    ...norm(`${name}.ln1`),
    ...norm(`${name}.ln2`),
    ...linear(`${name}.ffn_up`, WIDTH, FEED_FORWARD),
    ...linear(`${name}.ffn_down`, FEED_FORWARD, WIDTH),
  ];
}

function linear(name: string, from: number, to: number): readonly GgufTensor[] {
  return [filled(`${name}.weight`, [from, to], 0), filled(`${name}.bias`, [to], 0)];
}

function norm(name: string): readonly GgufTensor[] {
  return [filled(`${name}.weight`, [WIDTH], 1), filled(`${name}.bias`, [WIDTH], 0)];
}

/** A grey PNG as a `data:` URL. https://www.w3.org/TR/png-3/ */
export function imageUrl(): string {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(IMAGE, 0);
  header.writeUInt32BE(IMAGE, 4);
  // 8 bits per sample, three samples per pixel.
  header.set([8, 2], 8);
  const row = Buffer.concat([Buffer.of(0), Buffer.alloc(IMAGE * 3, 128)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: IMAGE }, () => row)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const png = Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
  return `data:image/png;base64,${png.toString('base64')}`;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
