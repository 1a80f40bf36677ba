/** Which family a model is of, from the header of its file. */
import { describe, expect, test } from '@jest/globals';
import { objectionTo } from '../../../src/providers/image/decide/image-command.ts';
import { besideCheckpoint, placeOf } from '../../../src/providers/image/decide/image-model.ts';
import { imageFormat } from '../../../src/providers/image/image-format.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { safetensors, SHAPES } from '../../support/comfyui/checkpoints.ts';

const ID = ModelId.parse('mine');
const BESIDE = ['t5xxl_fp16.safetensors', 'clip_l.safetensors', 'ae.safetensors'];

async function read(name: string, shapes: Parameters<typeof safetensors>[0], beside: readonly string[] = [], cutBytes = 0) {
  const { header, sizeBytes } = safetensors(shapes);
  const reading = await imageFormat.read(
    { id: ID, entry: { name } },
    {
      names: async () => [name, ...beside],
      sizeOf: async (each) => (each === name ? sizeBytes - cutBytes : 1000),
      read: async (_name, offset, length) => header.subarray(offset, offset + length),
    },
  );
  return reading;
}

describe('the family', () => {
  test.each([
    ['v1-5-pruned-emaonly.safetensors', 'sd-1.5', 'sd-1.5', 'SD 1.5'],
    ['sd_xl_turbo_1.0_fp16.safetensors', 'sdxl', 'sdxl-turbo', 'SDXL turbo'],
    ['sd_xl_base_1.0.safetensors', 'sdxl', 'sdxl', 'SDXL'],
    ['whatever.safetensors', 'flux-schnell-checkpoint', 'flux-schnell', 'FLUX.1 schnell'],
    ['flux1-schnell.safetensors', 'flux-schnell-split', 'flux-schnell', 'FLUX.1 schnell'],
    ['flux1-dev.safetensors', 'flux-dev-split', 'flux-dev', 'FLUX.1 dev'],
    ['flux1-dev-kontext_fp8_scaled.safetensors', 'flux-dev-split', 'flux-kontext', 'FLUX.1 Kontext'],
    ['flux2_dev_fp8mixed.safetensors', 'flux-2-dev', 'flux-2-dev', 'FLUX.2 dev'],
    ['flux-2-klein-4b.safetensors', 'flux-2-klein-4b', 'flux-2-klein-4b', 'FLUX.2 klein 4B'],
    ['flux-2-klein-base-9b.safetensors', 'flux-2-klein-9b', 'flux-2-klein-base-9b', 'FLUX.2 klein base 9B'],
    ['sd3.5_large_fp8_scaled.safetensors', 'sd-3.5', 'sd-3.5', 'SD 3.5'],
    ['qwen_image_fp8_e4m3fn.safetensors', 'qwen-image', 'qwen-image', 'Qwen-Image'],
    ['qwen_image_edit_2511_bf16.safetensors', 'qwen-image', 'qwen-image-edit', 'Qwen-Image-Edit'],
    ['z_image.safetensors', 'z-image', 'z-image', 'Z-Image'],
    ['z_image_turbo_bf16.safetensors', 'z-image', 'z-image-turbo', 'Z-Image turbo'],
  ] as const)('of %s with the tensors of %s is %s', async (name, shapes, family, title) => {
    expect(await read(name, SHAPES[shapes], BESIDE)).toMatchObject({ kind: 'model', family: title, contents: { family } });
  });

  test.each(['other', 'chroma', 'flux-fill', 'sd-3', 'lumina-2'] as const)('of the tensors of %s has no workflow', async (shapes) => {
    const reading = await read('llama.safetensors', SHAPES[shapes]);
    expect(reading).toMatchObject({
      kind: 'unusable',
      message: expect.stringMatching(/^The model file "llama.safetensors" of "mine" has no workflow/),
    });
  });
});

test.each([
  ['z_image_turbo_bf16.safetensors', 'z-image', { encoder: 'qwen_3_4b.safetensors', vae: 'ae.safetensors' }],
  ['flux-2-klein-9b.safetensors', 'flux-2-klein-9b', { encoder: 'qwen_3_8b_fp8mixed.safetensors', vae: 'flux2-vae.safetensors' }],
  ['flux2_dev_fp8mixed.safetensors', 'flux-2-dev', { encoder: 'mistral_3_small_flux2_bf16.safetensors', vae: 'flux2-vae.safetensors' }],
  ['qwen_image.safetensors', 'qwen-image', { encoder: 'qwen_2.5_vl_7b_fp8_scaled.safetensors', vae: 'qwen_image_vae.safetensors' }],
] as const)('%s takes its parts among those of others, by the names that upstream publishes', async (name, shapes, companions) => {
  const all = [...BESIDE, ...'qwen_3_4b qwen_3_8b_fp8mixed qwen_2.5_vl_7b_fp8_scaled mistral_3_small_flux2_bf16'.split(' ')];
  const beside = [...all, 'flux2-vae', 'qwen_image_vae'].map((each) => (each.endsWith('.safetensors') ? each : `${each}.safetensors`));
  const reading = await read(name, SHAPES[shapes], beside);
  expect(reading).toMatchObject({ contents: { companions, largestBytes: expect.any(Number) } });
  for (const each of beside) expect([each, imageFormat.recognize({ name: each })]).toEqual([each, 'part']);
});

test('LoRAs beside a model are found by their tensors, and are no models themselves', async () => {
  const [model, lora] = [safetensors(SHAPES.sdxl), safetensors(SHAPES.lora)];
  const files = {
    names: async () => ['a.safetensors', 'glow.safetensors', 'other.safetensors', '.hidden.safetensors'],
    sizeOf: async (name: string) => (name === 'glow.safetensors' ? lora : model).sizeBytes,
    read: async (name: string, offset: number, length: number) =>
      (name === 'glow.safetensors' ? lora : model).header.subarray(offset, offset + length),
  };
  const of = async (name: string) => imageFormat.read({ id: ID, entry: { name } }, files);
  expect(await of('a.safetensors')).toMatchObject({ contents: { family: 'sdxl', loras: ['glow.safetensors'] } });
  expect(await of('glow.safetensors')).toMatchObject({
    kind: 'unusable',
    message: 'The model file "glow.safetensors" of "mine" is a LoRA: put it beside a model, and name it in "loras" of a request',
  });
});

test('a diffusion model alone names what it needs beside it, and says what is missing', async () => {
  const reading = await read('flux1-schnell.safetensors', SHAPES['flux-schnell-split'], BESIDE.slice(0, 2));
  if (reading.kind !== 'model') throw new Error(reading.message);
  expect(reading.contents).toEqual({
    family: 'flux-schnell',
    companions: { t5: 't5xxl_fp16.safetensors', clip: 'clip_l.safetensors' },
  });
  expect(objectionTo({ id: ID, hostPath: '/m/flux1-schnell.safetensors', provider: 'image', ...reading })).toBe(
    'The file of "mine" has no text encoders and no decoder; put the decoder "ae.safetensors" into its directory',
  );
});

test('a file that is still being copied is incomplete', async () => {
  expect(await read('a.safetensors', SHAPES.sdxl, [], 10)).toMatchObject({
    kind: 'unusable',
    message: expect.stringMatching(/is incomplete: it has \d+ of \d+ bytes; wait until it is copied, or get it again$/),
  });
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['a length without a text', Buffer.from('1000000000000000', 'hex')],
  ['an enormous length', Buffer.from('ffffffffffffff7f', 'hex')],
  ['text that is no JSON', Buffer.concat([Buffer.from('0200000000000000', 'hex'), Buffer.from('{x')])],
  ['a list', Buffer.concat([Buffer.from('0200000000000000', 'hex'), Buffer.from('[]')])],
  ['a tensor without a place', Buffer.concat([Buffer.from('0800000000000000', 'hex'), Buffer.from('{"a":{}}')])],
  ['a pickle', Buffer.from('80047d94', 'hex')],
])('a file with %s is damaged', async (_what, bytes) => {
  const files = {
    names: async () => ['a.safetensors'],
    sizeOf: async () => bytes.length,
    read: async (_name: string, offset: number, length: number) => bytes.subarray(offset, offset + length),
  };
  const reading = await imageFormat.read({ id: ID, entry: { name: 'a.safetensors' } }, files);
  expect(reading).toMatchObject({ kind: 'unusable', message: expect.stringContaining('is damaged or no safetensors file') });
});

test('files that can contain programs are no models, and encoders are parts', () => {
  for (const name of ['a.ckpt', 'a.pt', 'a.pkl', 'a.bin', 'a.gguf']) expect(imageFormat.recognize({ name })).toBeUndefined();
  for (const name of BESIDE) expect(imageFormat.recognize({ name })).toBe('part');
  expect(imageFormat.recognize({ name: 'sd_xl_turbo_1.0_fp16.safetensors' })).toBe('model');
});

test('names of files say enough where they cannot be read', () => {
  const directory = 'image/models/checkpoints/flux-schnell';
  const files = ['flux1-schnell.safetensors', ...BESIDE].map((name) => `${directory}/${name}`);
  expect(imageFormat.contentsFrom(undefined, files)).toEqual({
    family: 'flux-schnell',
    companions: { t5: BESIDE[0], clip: BESIDE[1], vae: BESIDE[2] },
  });
  expect(imageFormat.contentsFrom(undefined, ['image/models/checkpoints/x/sd_xl_turbo_1.0_fp16.safetensors'])).toEqual({
    family: 'sdxl-turbo',
  });
});

test('a checkpoint is named as ComfyUI lists it, with its directory below "models/checkpoints"', () => {
  expect(placeOf('/models/image/models/checkpoints/sdxl-turbo/a.safetensors')).toEqual({
    directory: '/models/image/models/checkpoints',
    name: 'sdxl-turbo/a.safetensors',
  });
  expect(placeOf('/models/a.safetensors')).toEqual({ directory: '/models', name: 'a.safetensors' });
  expect(besideCheckpoint('sdxl-turbo/a.safetensors', 'ae.safetensors')).toBe('sdxl-turbo/ae.safetensors');
  expect(besideCheckpoint('a.safetensors', 'ae.safetensors')).toBe('ae.safetensors');
});
