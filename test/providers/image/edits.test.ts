/** `/v1/images/edits` with ComfyUI: what the server is sent, and what is refused before that. */
import { afterEach, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import { createComfyWorld, failedWith } from '../../support/comfyui/comfy-gateway.ts';
import { maskOf, pngOf, readPng } from '../../support/comfyui/png.ts';
import type { Comfy } from '../../support/comfyui/comfy-server.ts';

const { at, start, close } = createComfyWorld();

afterEach(close);

const PHOTO = pngOf(640, 480, 9);
const MASK = maskOf(640, 480);
const png = async (bytes: Buffer, name = 'photo.png') => toFile(bytes, name, { type: 'image/png' });
const openai = () => new OpenAI({ baseURL: `http://127.0.0.1:${at().gateway.port}/v1`, apiKey: 'none', maxRetries: 0 });

type Fields = Readonly<Record<string, string | Buffer | readonly Buffer[]>>;

async function edit(fields: Fields, path = '/v1/images/edits') {
  const form = new FormData();
  for (const [name, value] of Object.entries(path.endsWith('edits') ? { prompt: 'a hat', ...fields } : fields)) {
    for (const each of Array.isArray(value) ? value : [value])
      form.append(name, typeof each === 'string' ? each : new File([new Uint8Array(each)], '../../x.png', { type: 'image/png' }));
  }
  const reply = await fetch(`http://127.0.0.1:${at().gateway.port}${path}`, { method: 'POST', body: form });
  return { status: reply.status, text: await reply.text() };
}

const graphOf = ({ workflows }: Comfy) => JSON.parse(workflows.at(-1) ?? '{}').prompt;
const inputsOf = (standIn: Comfy, className: string) =>
  Object.values<{ readonly class_type: string; readonly inputs: object }>(graphOf(standIn))
    .filter((node) => node.class_type === className)
    .map(({ inputs }) => inputs);

describe('an image is changed', () => {
  test('where the mask of the package of OpenAI is transparent', async () => {
    const standIn = await start();
    const body = { model: 'img', prompt: 'a hat', image: await png(PHOTO), mask: await png(MASK), response_format: 'b64_json' } as const;
    const { data } = await openai().images.edit(body);
    expect(readPng(Buffer.from(data?.[0]?.b64_json ?? '', 'base64'))).toEqual({ width: 640, height: 480 });
    const [image = '', mask = ''] = standIn.uploads.keys();
    expect([standIn.uploads.get(image), standIn.uploads.get(mask)]).toEqual([PHOTO, MASK]);
    expect([image, mask]).toEqual([
      expect.stringMatching(/^svc\/[0-9a-f-]{36}-image\.png$/),
      expect.stringMatching(/^svc\/[0-9a-f-]{36}-mask\.png$/),
    ]);
    // The second output of LoadImage is 1 where the file is transparent.
    const [id] = Object.entries(graphOf(standIn)).find(([, node]) => JSON.stringify(node).includes(mask)) ?? [];
    expect(inputsOf(standIn, 'SetLatentNoiseMask')).toEqual([expect.objectContaining({ mask: [id, 1] })]);
    expect(inputsOf(standIn, 'SDTurboScheduler')).toEqual([expect.objectContaining({ denoise: 1 })]);
  });

  test('as a whole without a mask, as much as `strength` says', async () => {
    const standIn = await start('sd-1.5');
    expect((await edit({ image: PHOTO })).status).toBe(200);
    expect(inputsOf(standIn, 'KSampler')).toEqual([expect.objectContaining({ denoise: 0.75 })]);
    expect(inputsOf(standIn, 'SetLatentNoiseMask')).toEqual([]);
    expect((await edit({ 'image[]': PHOTO, strength: '0.3', n: '2', size: '256x128', response_format: 'b64_json' })).status).toBe(200);
    expect(inputsOf(standIn, 'KSampler')).toEqual([expect.objectContaining({ denoise: 0.3 })]);
    expect(inputsOf(standIn, 'RepeatLatentBatch')).toEqual([expect.objectContaining({ amount: 2 })]);
    expect(inputsOf(standIn, 'ImageScale')).toEqual([expect.objectContaining({ width: 256, height: 128 })]);
  });

  test('in a stream with the events of changes', async () => {
    await start();
    const body = { model: 'img', prompt: 'a hat', image: await png(PHOTO), stream: true, partial_images: 1, steps: 4 } as const;
    const types = [];
    for await (const { type } of await openai().images.edit(body)) types.push(type);
    expect(types).toEqual(['image_edit.partial_image', 'image_edit.completed']);
  });

  test('though it is much larger than the memory for bodies', async () => {
    const standIn = await start('sdxl-turbo', {}, { SVC_BUFFER_LIMIT: '2Mi' });
    const large = Buffer.concat([Buffer.from('ffd8ffc0001108010002000301110002110003110', 'hex'), Buffer.alloc(8 * 1024 * 1024, 7)]);
    expect((await edit({ image: large })).status).toBe(200);
    expect([...standIn.uploads.values()].map((bytes) => bytes.equals(large))).toEqual([true]);
    expect(inputsOf(standIn, 'ImageScale')).toEqual([expect.objectContaining({ width: 512, height: 256 })]);
  });
});

describe('models that are shown images beside the prompt', () => {
  test.each([
    ['flux-kontext', 'ReferenceLatent', 4],
    ['qwen-image-edit', 'TextEncodeQwenImageEditPlus', 2],
  ] as const)('%s gets two of them as `image[]`', async (family, className, nodes) => {
    const standIn = await start(family);
    const reply = await edit({ 'image[]': [PHOTO, pngOf(64, 64, 3)], strength: '0.5', negative_prompt: 'rain' });
    expect(reply.status).toBe(200);
    expect([...standIn.uploads.keys()].map((name) => name.replace(/^svc\/[0-9a-f-]{36}/, ''))).toEqual(['-image.png', '-image-2.png']);
    expect(inputsOf(standIn, className)).toHaveLength(nodes);
    expect(inputsOf(standIn, 'EmptySD3LatentImage')).toEqual([{ width: 640, height: 480, batch_size: 1 }]);
    const { ignored } = JSON.parse(reply.text)._hal0;
    expect(ignored).toEqual(family === 'flux-kontext' ? ['strength', 'negative_prompt'] : ['strength']);
  });

  test('no more than the model takes, and no mask', async () => {
    const standIn = await start('qwen-image-edit');
    expect(failedWith(await edit({ 'image[]': [PHOTO, PHOTO, PHOTO, PHOTO] }))[2]).toBe(
      'Models of Qwen-Image-Edit cannot join 4 images; send at most 3',
    );
    expect(failedWith(await edit({ image: PHOTO, mask: MASK }))[2]).toMatch(/^Model of Qwen-Image-Edit takes no mask: /);
    expect(failedWith(await at().draw())[2]).toBe('Model of Qwen-Image-Edit needs an image; send one to "/v1/images/edits"');
    expect(standIn.seen).toEqual([]);
  });
});

test('a variation of an image needs no prompt', async () => {
  const standIn = await start('sd-1.5');
  const reply = await edit({ image: PHOTO, n: '2', model: 'img' }, '/v1/images/variations');
  expect([reply.status, JSON.parse(reply.text).data.length]).toEqual([200, 2]);
  expect(inputsOf(standIn, 'KSampler')).toEqual([expect.objectContaining({ denoise: 0.6 })]);
  expect(inputsOf(standIn, 'CLIPTextEncode')).toEqual([expect.objectContaining({ text: '' }), expect.objectContaining({ text: '' })]);
  expect((await openai().images.createVariation({ model: 'img', image: await png(PHOTO) })).data).toHaveLength(1);
});

describe('what is refused', () => {
  const noAlpha = pngOf(640, 480, 1);
  const cases: readonly (readonly [string, Fields, string, string])[] = [
    ['no image', {}, 'image', 'Send the image to be changed'],
    ['an image that is a text', { image: 'data:image/png;base64,AAAA' }, 'image', 'Send the image to be changed'],
    ['several images', { 'image[]': [PHOTO, PHOTO] }, 'image', 'cannot join 2 images'],
    ['an empty file', { image: Buffer.alloc(0) }, 'image', 'has 0 bytes'],
    ['HTML', { image: Buffer.from('<!doctype html><title>Login</title>') }, 'image', 'Send a PNG, JPEG or WebP image'],
    ['half an image', { image: PHOTO.subarray(0, PHOTO.length - 20) }, 'image', 'is cut off'],
    ['a PNG bomb', { image: maskOf(8, 8, { width: 50_000, height: 50_000 }) }, 'image', 'has 50000x50000 pixels'],
    [
      'a mask of another size',
      { image: PHOTO, mask: maskOf(64, 64) },
      'mask',
      'has 64x64 pixels; send one as large as the image, which has 640x480',
    ],
    ['a mask without transparency', { image: PHOTO, mask: noAlpha }, 'mask', 'with an alpha channel'],
    ['a mask that is a bomb', { image: PHOTO, mask: maskOf(8, 8, { width: 1, height: 2 ** 31 }) }, 'mask', 'at most 4096x4096'],
    ['two masks', { image: PHOTO, mask: [MASK, MASK] }, 'mask', 'Send one "mask"'],
    ['a strength of 2', { image: PHOTO, strength: '2' }, 'strength', 'Set "strength" to a number from'],
  ];
  test.each(cases)('%s, before the server is asked', async (_what, fields, param, message) => {
    const standIn = await start();
    const reply = await edit(fields);
    expect(failedWith(reply).slice(0, 2)).toEqual([400, 'request.invalid']);
    expect(JSON.parse(reply.text).error).toMatchObject({ param, message: expect.stringContaining(message) });
    expect(standIn.seen).toEqual([]);
    expect((await edit({ image: PHOTO })).status).toBe(200);
  });

  test('a server that does not take the image fails the request, and nothing is queued', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { upload: 'failed' } });
    expect(failedWith(await edit({ image: PHOTO })).slice(0, 2)).toEqual([502, 'image.failed']);
    expect(standIn.workflows).toEqual([]);
  });
});
