/** Workflows of users through the gateway: what the server is sent, and what clients are told. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import OpenAI, { toFile } from 'openai';
import { askReadiness } from '../../../src/providers/image/image.ts';
import { createComfyWorld, failedWith } from '../../support/comfyui/comfy-gateway.ts';
import type { Comfy } from '../../support/comfyui/comfy-server.ts';
import { maskOf, pngOf, readPng } from '../../support/comfyui/png.ts';
import { changed, PORTRAIT, RETOUCH } from '../../support/comfyui/user-workflows.ts';
import { specOf } from '../../support/providers/odd-models.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

const { at, startWith, draw, close } = createComfyWorld();

afterEach(close);

const sent = ({ workflows }: Comfy) => JSON.parse(workflows.at(-1) ?? '{}').prompt;

describe('a workflow of a user', () => {
  test('draws, and is named in `_hal0` with the model that it loads', async () => {
    const standIn = await startWith(PORTRAIT);
    const reply = await draw({ size: '512x256', glow: 1.25, seed: '18446744073709551615', response_format: 'b64_json' });
    expect(reply.status).toBe(200);
    const { data, _hal0: hal0 } = JSON.parse(reply.text);
    expect(hal0).toEqual({ workflow: 'portrait', checkpoint: 'base.safetensors' });
    expect(readPng(Buffer.from(data[0].b64_json, 'base64'))).toEqual({ width: 512, height: 256 });
    expect(standIn.workflows[0]).toContain('"seed":18446744073709551615');
    expect(sent(standIn)['12:1'].inputs.filename_prefix).toMatch(/^svc\/[0-9a-f-]{36}$/);
    expect(JSON.parse((await draw()).text).data[0].url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/images\/cache\//);
  });

  test('has previews, whose size is the saved one', async () => {
    await startWith(PORTRAIT);
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${at().gateway.port}/v1`, apiKey: 'none', maxRetries: 0 });
    const events = [];
    const body = { prompt: 'a fox', model: 'img', stream: true, partial_images: 1 } as const;
    for await (const event of await client.images.generate(body)) events.push(event);
    expect(events.map(({ type, size }) => [type, size])).toEqual([
      ['image_generation.partial_image', '832x1216'],
      ['image_generation.completed', '832x1216'],
    ]);
  });

  test('changes an image of the client, with its mask', async () => {
    const standIn = await startWith(RETOUCH);
    const file = async (bytes: Buffer) => toFile(bytes, 'x.png', { type: 'image/png' });
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${at().gateway.port}/v1`, apiKey: 'none', maxRetries: 0 });
    const [photo, mask] = [pngOf(640, 480, 1), maskOf(640, 480)];
    await client.images.edit({ model: 'img', prompt: 'a hat', image: await file(photo), mask: await file(mask) });
    expect([...standIn.uploads.values()]).toEqual([photo, mask]);
    expect(sent(standIn)['8'].inputs.image).toMatch(/^svc\/.*-image\.png$/);
    expect(sent(standIn)['9'].inputs.image).toMatch(/^svc\/.*-mask\.png$/);
    const without = client.images.edit({ model: 'img', prompt: 'a hat', image: await file(photo) });
    await expect(without).rejects.toMatchObject({ status: 400, param: 'mask', message: expect.stringContaining('; send a "mask"') });
    expect(failedWith(await draw())).toEqual([
      400,
      'request.invalid',
      'Workflow "portrait" needs an image; send one to "/v1/images/edits"',
    ]);
  });

  test('that takes no image says so', async () => {
    const standIn = await startWith(PORTRAIT);
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${at().gateway.port}/v1`, apiKey: 'none', maxRetries: 0 });
    const image = await toFile(pngOf(64, 64, 1), 'x.png', { type: 'image/png' });
    const edit = client.images.edit({ model: 'img', prompt: 'a hat', image });
    await expect(edit).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('Workflow "portrait" takes no image'),
    });
    expect(standIn.seen).toEqual([]);
  });
});

describe('what the server does not accept', () => {
  test('of a parameter is an error of the client', async () => {
    await startWith(PORTRAIT);
    expect(failedWith(await draw({ glow: 1e6 }))).toEqual([
      400,
      'request.invalid',
      expect.stringMatching(/^The image server refused "glow": Value 1000000 bigger than max of 100.*; set it to another value$/),
    ]);
    expect(failedWith(await draw({ sampler: 'none' }))[2]).toMatch(
      /^The image server refused "sampler": Value not in list.*; set it to another value$/,
    );
    expect((await draw()).status).toBe(200);
  });

  test('of the workflow itself names the workflow', async () => {
    await startWith(changed(PORTRAIT, '7', { inputs: { vae: ['1', 0] } }));
    expect(failedWith(await draw())[2]).toMatch(/^Node "VAEDecode" of the image server refused workflow "portrait": Return type mismatch/);
  });

  test('because a node is of another author is known before the first request', async () => {
    const workflow = {
      ...PORTRAIT,
      '7': { ...PORTRAIT['7'], class_type: 'FancyDecode', inputs: PORTRAIT['7']?.inputs ?? {}, _meta: { title: '' } },
    };
    const standIn = await startWith(workflow);
    expect(failedWith(await draw())[2]).toMatch(/^The image server lacks a node of workflow "portrait": .*FancyDecode/);
    const health = await askReadiness(
      { host: '127.0.0.1', port: standIn.port },
      {
        async request({ host, port }, { path: asked }) {
          const reply = await fetch(`http://${host}:${port}${asked}`);
          return { status: reply.status, body: await reply.text() };
        },
      },
      { name: SlotName.parse('img'), spec: specOf('image'), model: at().model },
      new AbortController().signal,
    );
    expect(health).toEqual({
      kind: 'failing',
      message: 'The server has no node "FancyDecode", which the workflow "portrait" needs: nodes of other authors are not loaded',
    });
  });

  test('since a file has gone names the workflow', async () => {
    await startWith(PORTRAIT);
    await rm(path.join(at().checkpoints, 'portrait/glow.safetensors'));
    expect(failedWith(await draw())[2]).toMatch(
      /^The image server lacks a file of workflow "portrait": .*portrait\/glow.safetensors.*; put it back/,
    );
  });
});
