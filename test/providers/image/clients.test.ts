/** What clients send in 2026: the package of OpenAI, and Open WebUI. */
import { afterEach, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import { post } from '../../gateway/support/client.ts';
import { createComfyWorld, GENERATIONS } from '../../support/comfyui/comfy-gateway.ts';
import { pngOf, readPng } from '../../support/comfyui/png.ts';

const { at, start, close } = createComfyWorld();

afterEach(close);

const PHOTO = pngOf(128, 64, 9);
const base = () => `http://127.0.0.1:${at().gateway.port}/v1`;
const openai = () => new OpenAI({ baseURL: base(), apiKey: 'none', maxRetries: 0 });
const photo = async (name: string) => toFile(PHOTO, name, { type: 'image/png' });

describe('the package of OpenAI', () => {
  test.each(['url', 'b64_json'] as const)('generates and edits with `response_format` %s', async (format) => {
    await start();
    const common = { model: 'img', prompt: 'a hat', response_format: format, size: '256x256' } as const;
    const generated = await openai().images.generate(common);
    const edited = await openai().images.edit({ ...common, image: await photo('photo.png') });
    for (const { data } of [generated, edited]) {
      const [{ url = '', b64_json: text } = {}] = data ?? [];
      const bytes = text === undefined ? await at().cachedImage(url) : Buffer.from(text, 'base64');
      expect(readPng(bytes)).toEqual({ width: 256, height: 256 });
    }
  });

  test('sends several images as `image[]`: a model that cannot join them says so, and one image is changed', async () => {
    await start();
    const several = openai().images.edit({ model: 'img', prompt: 'a hat', image: [await photo('a.png'), await photo('b.png')] });
    await expect(several).rejects.toMatchObject({ status: 400, param: 'image', message: expect.stringContaining('cannot join 2 images') });
    const one = await openai().images.edit({ model: 'img', prompt: 'a hat', image: [await photo('a.png')], response_format: 'b64_json' });
    expect(readPng(Buffer.from(one.data?.[0]?.b64_json ?? '', 'base64'))).toEqual({ width: 128, height: 64 });
  });

  test('may send everything that its types have', async () => {
    await start();
    const body = {
      model: 'img',
      prompt: 'a fox',
      n: 1,
      size: 'auto',
      quality: 'high',
      background: 'opaque',
      moderation: 'low',
      output_format: 'webp',
      output_compression: 80,
      user: 'somebody',
      style: 'vivid',
      response_format: 'b64_json',
    } as const;
    expect((await openai().images.generate(body)).data).toHaveLength(1);
  });
});

describe('Open WebUI', () => {
  test('draws an image', async () => {
    await start();
    const body = { model: 'img', prompt: 'a fox', n: 1, size: '512x512', response_format: 'b64_json' };
    const reply = await post(at().gateway.port, GENERATIONS, JSON.stringify(body));
    expect(readPng(Buffer.from(JSON.parse(reply.text).data[0].b64_json, 'base64'))).toEqual({ width: 512, height: 512 });
  });

  test.each([['image'], ['image[]']])('changes an image that it sends as `%s`, after the other fields', async (name) => {
    await start();
    const form = new FormData();
    const fields = { model: 'img', prompt: 'a hat', n: '1', size: '256x256', background: 'auto', response_format: 'b64_json' };
    for (const [key, value] of Object.entries(fields)) form.append(key, value);
    form.append(name, new File([new Uint8Array(PHOTO)], 'image.png', { type: 'image/png' }));
    const reply = await fetch(`${base()}/images/edits`, { method: 'POST', body: form });
    const { data } = JSON.parse(await reply.text());
    expect(readPng(Buffer.from(data[0].b64_json, 'base64'))).toEqual({ width: 256, height: 256 });
  });

  test('shows an image by its URL, if it asks for none in base64', async () => {
    await start();
    const reply = await post(at().gateway.port, GENERATIONS, JSON.stringify({ model: 'img', prompt: 'a fox', n: 1, size: '64x64' }));
    expect(readPng(await at().cachedImage(JSON.parse(reply.text).data[0].url))).toEqual({ width: 64, height: 64 });
  });
});
