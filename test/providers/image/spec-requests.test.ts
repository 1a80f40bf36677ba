/** The rows of the specification about `POST /v1/images/generations`, each by its name, against the stand-in for ComfyUI. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { askHealth } from '../../../src/providers/image/image.ts';
import type { ProbeIo } from '../../../src/providers/provider.ts';
import { post } from '../../gateway/support/client.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { createComfyWorld, GENERATIONS, IMG } from '../../support/comfyui/comfy-gateway.ts';
import { readPng } from '../../support/comfyui/png.ts';
import { specOf } from '../../support/providers/odd-models.ts';

const { at, start, draw, close } = createComfyWorld();

afterEach(close);

const answerOf = async (body: object = {}) => JSON.parse((await draw({ size: '64x64', ...body })).text);
const inline = async (body: object = {}) => answerOf({ response_format: 'b64_json', ...body });

describe('the fields of a request', () => {
  test('`model` is a string, and whatever it says, the slot `img` draws', async () => {
    await start();
    for (const model of ['img', 'sdxl-turbo', 'dall-e-3', 'gpt-image-1', 'flux-schnell', 'no such model']) {
      const { status, text } = await draw({ model });
      expect([model, status, JSON.parse(text)._hal0?.checkpoint]).toEqual([model, 200, 'sd_xl_turbo_1.0_fp16.safetensors']);
    }
  });

  test('`prompt` is required, and reaches the server', async () => {
    const standIn = await start();
    expect((await post(at().gateway.port, GENERATIONS, '{}')).status).toBe(400);
    await answerOf({ prompt: 'a blue heron' });
    expect(standIn.workflows[0]).toContain('"a blue heron"');
  });

  test('`n` is an integer, 1 by default', async () => {
    await start();
    expect((await answerOf()).data).toHaveLength(1);
    expect((await answerOf({ n: 3 })).data).toHaveLength(3);
  });

  test('`size` is `<W>x<H>` in pixels', async () => {
    await start();
    const { data } = await inline({ size: '128x64' });
    expect(readPng(Buffer.from(data[0].b64_json, 'base64'))).toEqual({ width: 128, height: 64 });
  });

  test('`response_format` is `url` by default, or `b64_json`', async () => {
    await start();
    expect(Object.keys((await answerOf()).data[0])).toEqual(['url']);
    expect(Object.keys((await answerOf({ response_format: 'url' })).data[0])).toEqual(['url']);
    expect(Object.keys((await inline()).data[0])).toEqual(['b64_json']);
  });

  test('`extra_body` has `seed`, `steps`, `cfg` and `negative_prompt`', async () => {
    const standIn = await start('sd-1.5');
    await answerOf({ extra_body: { seed: 5, steps: 3, cfg: 2.5, negative_prompt: 'rain' } });
    expect(standIn.workflows[0]).toMatch(/"seed":5,"steps":3,"cfg":2.5/);
    expect(standIn.workflows[0]).toContain('"rain"');
  });
});

describe('the fields of an answer', () => {
  test('`created` is a Unix timestamp in seconds', async () => {
    await start();
    expect((await answerOf()).created).toBeGreaterThan(1.7e9);
    expect((await answerOf()).created).toBeLessThan(1e11);
  });

  test('`data[].url` has the shape `/api/images/cache/<uuid>.png`', async () => {
    await start();
    for (const { url } of (await answerOf({ n: 2 })).data)
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/images\/cache\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.png$/);
  });

  test.each([
    [{ host: 'localhost:8080' }, 'http://localhost:8080/api/'],
    [{ host: 'localhost', 'x-forwarded-proto': 'https' }, 'https://localhost/api/'],
  ])('`data[].url` begins with what the client calls the service: %j', async (headers, begin) => {
    await start();
    const body = JSON.stringify({ prompt: 'x', size: '64x64' });
    const { url } = JSON.parse((await post(at().gateway.port, GENERATIONS, body, { headers })).text).data[0];
    expect(url.slice(0, begin.length)).toBe(begin);
  });

  test('`data[].b64_json` is a PNG in base64', async () => {
    await start();
    for (const { b64_json: text } of (await inline({ n: 2 })).data)
      expect(readPng(Buffer.from(text, 'base64'))).toEqual({ width: 64, height: 64 });
  });

  test('`_hal0` holds `workflow` and `checkpoint`', async () => {
    await start('sd-1.5');
    expect((await answerOf())._hal0).toEqual({ workflow: 'sd-1.5', checkpoint: 'v1-5.safetensors' });
  });
});

describe('beyond the specification', () => {
  test('`_hal0.ignored` names the fields without effect, and is absent without any', async () => {
    await start('sd-1.5');
    expect((await answerOf({ quality: 'hd', cfg_scale: 4, extra_body: { stepz: 3 } }))._hal0.ignored).toEqual([
      'quality',
      'cfg_scale',
      'stepz',
    ]);
    expect(Object.keys((await answerOf())._hal0)).toEqual(['workflow', 'checkpoint']);
  });

  test('`sampler` and `scheduler` reach the server, which says when it does not know one', async () => {
    const standIn = await start('sd-1.5');
    await answerOf({ sampler: 'dpmpp_2m', scheduler: 'karras' });
    expect(standIn.workflows[0]).toContain('"sampler_name":"dpmpp_2m","scheduler":"karras"');
    const refused = await draw({ sampler: 'eulerr' });
    expect([refused.status, JSON.parse(refused.text).error]).toEqual([
      400,
      expect.objectContaining({ code: 'request.invalid', param: 'sampler', message: expect.stringContaining('has no such "sampler"') }),
    ]);
  });
});

describe('the rules', () => {
  test('the backend is a black box that speaks `POST /prompt`, `GET /history/<id>` and `GET /view`', async () => {
    const standIn = await start();
    await answerOf();
    await until(() => standIn.seen.length >= 4);
    const asked = standIn.seen.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, '<id>')}`);
    // The last one lets it forget the prompt.
    expect(asked).toEqual(['POST /prompt', 'GET /history/<id>', 'GET /view', 'POST /history']);
  });

  test('`health()` is a cheap probe: nothing is drawn, and the slot is ready once the checkpoint is in the list of the loader', async () => {
    const standIn = await start();
    const io: ProbeIo = {
      async request({ host, port }, { path }) {
        const reply = await fetch(`http://${host}:${port}${path}`);
        return { status: reply.status, body: await reply.text() };
      },
    };
    const slot = { name: IMG, spec: specOf('image'), model: at().model };
    const endpoint = { host: '127.0.0.1', port: standIn.port };
    expect(await askHealth(endpoint, io, slot, new AbortController().signal)).toEqual({ kind: 'passing' });
    expect(standIn.seen.map(({ path }) => path)).toEqual(['/system_stats', '/object_info/CheckpointLoaderSimple']);
    const missing = { ...slot, model: { ...at().model, hostPath: '/store/image/models/checkpoints/x/other.safetensors' } };
    expect(await askHealth(endpoint, io, missing, new AbortController().signal)).toMatchObject({
      kind: 'failing',
      message: expect.stringContaining('does not list the model "x/other.safetensors"'),
    });
  });
});
