/** Images from the whole service: the slot `img` with a stand-in for ComfyUI as its process, on a recorded machine, used as clients of OpenAI do. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { z } from 'zod';
import { SHAPES, writeCheckpoint } from '../support/comfyui/checkpoints.ts';
import { readPng } from '../support/comfyui/png.ts';
import { recordingFile, recordingOf } from '../support/hardware/recorded-machines.ts';
import { changed, PORTRAIT } from '../support/comfyui/user-workflows.ts';
import { condition, isAnswering, startService, type Service, type SlotView } from '../support/service.ts';

const PROGRAM = path.resolve('test/support/comfyui/comfyui.mjs');
const CHECKPOINTS = 'image/models/checkpoints';
const TURBO = 'sdxl-turbo';
const Hal0 = z.object({ _hal0: z.object({ workflow: z.string(), checkpoint: z.string() }) });
let bin = '';
let service: Service;
let client: OpenAI;

beforeAll(async () => {
  bin = await mkdtemp(path.join(tmpdir(), 'svc-bin-'));
  await symlink(PROGRAM, path.join(bin, 'comfyui'));
  service = await startService({
    runtime: 'process',
    environment: { PATH: `${bin}:${path.dirname(process.execPath)}:${process.env['PATH']}`, SVC_HARDWARE_FILE: recordingFile('w7900') },
  });
  const store = path.join(service.modelsDir, CHECKPOINTS);
  await writeCheckpoint(path.join(store, TURBO, 'sd_xl_turbo_1.0_fp16.safetensors'), SHAPES.sdxl);
  await writeCheckpoint(path.join(store, 'sd-1.5-pruned-emaonly/v1-5-pruned-emaonly.safetensors'), SHAPES['sd-1.5']);
  await writeCheckpoint(path.join(store, 'flux-schnell/flux1-schnell.safetensors'), SHAPES['flux-schnell-split']);
  for (const name of ['t5xxl_fp8_e4m3fn', 'clip_l', 'ae'])
    await writeCheckpoint(path.join(store, 'flux-schnell', `${name}.safetensors`), { weight: [4, 4] });
  await writeCheckpoint(path.join(service.modelsDir, 'mine/flux1-dev.safetensors'), SHAPES['flux-dev-split']);
  client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
  await service.save('img', `[model]\ndefault = "${TURBO}"\naliases = ["dall-e-3"]\n`);
  await service.until('img', 'ready', isAnswering);
}, 90_000);
afterAll(async () => {
  await service.dispose();
  await rm(bin, { recursive: true });
});

const svcctl = async (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, ['src/cli/svcctl.mjs', ...args, '--server', service.url]);

async function imageOf(url: string | undefined): Promise<Buffer> {
  const answer = await fetch(new URL(url ?? '', service.url));
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
  return Buffer.from(await answer.arrayBuffer());
}

test('the `openai` package draws images as URLs, with `_hal0`', async () => {
  const answer = await client.images.generate({ model: 'dall-e-3', prompt: 'a red fox', n: 2, size: '256x256' });
  expect(answer.data).toHaveLength(2);
  for (const { url, b64_json: inline } of answer.data ?? []) {
    expect(url).toMatch(new RegExp(`^${service.url}/api/images/cache/[0-9a-f-]{36}\\.png$`));
    expect(inline).toBeUndefined();
    expect(readPng(await imageOf(url))).toEqual({ width: 256, height: 256 });
  }
  expect(Hal0.parse(answer)._hal0).toEqual({ workflow: 'sdxl-turbo', checkpoint: 'sd_xl_turbo_1.0_fp16.safetensors' });
});

test('the `openai` package draws images in base64, with the extensions of the service', async () => {
  const extensions = { seed: '18446744073709551615', steps: 2, cfg: 1.5, negative_prompt: 'rain' };
  const body = { prompt: 'a red fox', response_format: 'b64_json', user: 'somebody', ...extensions } as const;
  const answer = await client.images.generate(body);
  expect(readPng(Buffer.from(answer.data?.[0]?.b64_json ?? '', 'base64'))).toEqual({ width: 512, height: 512 });
  const nestedBody = { prompt: 'x', response_format: 'b64_json', extra_body: extensions } as const;
  const nested = await client.images.generate(nestedBody);
  expect(nested.data?.[0]?.b64_json).toBeDefined();
});

test('errors are those of OpenAI’s clients', async () => {
  const wrong = client.images.generate({ prompt: 'x', n: 11 });
  await expect(wrong).rejects.toMatchObject({ status: 400, code: 'request.invalid', param: 'n', type: 'invalid_request_error' });
  const odd = { prompt: 'x', size: '100x101' } as const;
  const size = client.images.generate(odd);
  await expect(size).rejects.toMatchObject({ status: 422, code: 'image.size_unsupported', param: 'size' });
  const chat = client.chat.completions.create({ model: 'img', messages: [{ role: 'user', content: 'x' }] });
  await expect(chat).rejects.toMatchObject({ status: 400, code: 'model.unsupported' });
});

test('`svcctl slot load img --model` starts the slot with another model, of each family', async () => {
  for (const [model, workflow] of [
    ['flux-schnell', 'flux-schnell-split'],
    ['sd-1.5-pruned-emaonly', 'sd-1.5'],
  ] as const) {
    await svcctl('slot', 'load', 'img', '--model', model, '--wait');
    const answer = await client.images.generate({ model, prompt: 'a red fox', size: '256x256' });
    expect(Hal0.parse(answer)._hal0.workflow).toBe(workflow);
  }
}, 120_000);

test('a model that lacks the files beside it says which, and where to put them', async () => {
  await service.save('img', `[model]\ndefault = "mine/flux1-dev.safetensors"\n`);
  const slot = await service.until('img', 'stalled', (seen) => condition(seen, 'Stalled')?.status === 'True');
  expect(condition(slot, 'Stalled')).toMatchObject({
    reason: 'ModelUnsuitable',
    message: expect.stringMatching(
      /^The file of "mine\/flux1-dev.safetensors" has no text encoders and no decoder; put the text encoder .* and the decoder "ae.safetensors" /,
    ),
  });
}, 60_000);

test('a workflow that somebody puts into the model store is a model: listed, loaded, and read again when it changes', async () => {
  const id = `${CHECKPOINTS}/portrait/portrait.workflow.json`;
  const file = path.join(service.modelsDir, id);
  await mkdir(path.dirname(file), { recursive: true });
  await writeCheckpoint(path.join(path.dirname(file), 'glow.safetensors'), SHAPES.other);
  await writeCheckpoint(path.join(path.dirname(file), 'sdxl-turbo/base.safetensors'), SHAPES.sdxl);
  await writeFile(file, JSON.stringify(PORTRAIT));
  expect((await svcctl('model', 'list')).stdout).toMatch(/portrait\.workflow\.json .*yes/);
  expect(await (await fetch(`${service.url}/api/models`)).text()).toContain('"SDXL (workflow)"');
  await svcctl('slot', 'load', 'img', '--model', id, '--wait');
  const sizeOf = async () => {
    const answer = await client.images.generate({ model: 'img', prompt: 'a red fox' });
    expect(Hal0.parse(answer)._hal0).toEqual({ workflow: 'portrait', checkpoint: 'base.safetensors' });
    return readPng(await imageOf(answer.data?.[0]?.url));
  };
  expect(await sizeOf()).toEqual({ width: 832, height: 1216 });
  const restarts = (await service.slot('img'))?.status.restarts;
  await writeFile(file, JSON.stringify(changed(PORTRAIT, '5', { inputs: { width: 640, height: 448 } })));
  while ((await sizeOf())?.width !== 640);
  expect((await service.slot('img'))?.status.restarts).toBe(restarts);
  // What served before keeps serving, and the slot says what is wrong.
  for (const [text, problem] of [
    [JSON.stringify(changed(PORTRAIT, '3', { inputs: { clip: ['7', 0] } })), 'goes in a circle'],
    [JSON.stringify(changed(PORTRAIT, '7', null)), 'lacks the node "7"'],
    [`{"x":"${'y'.repeat(10_000_000)}"}`, 'has 10000008 bytes'],
  ] as const) {
    await writeFile(file, text);
    const says = (seen: SlotView | undefined) => seen?.status.conditions.find(({ message }) => message.includes(problem))?.message;
    const slot = await service.until('img', 'any', (seen) => says(seen) !== undefined);
    expect(says(slot)).toContain(`The workflow "${id}" ${problem}`);
    expect(await sizeOf()).toEqual({ width: 640, height: 448 });
  }
  await writeFile(file, JSON.stringify(PORTRAIT));
  while ((await sizeOf())?.width !== 832);
  expect((await service.slot('img'))?.status.restarts).toBe(restarts);
}, 120_000);

test('images survive the service and its restart, and the slot draws on at once', async () => {
  await service.save('img', `[model]\ndefault = "${TURBO}"\n`);
  await service.until('img', 'ready', (slot) => isAnswering(slot) && slot?.status.model === TURBO);
  const { data } = await client.images.generate({ prompt: 'a red fox' });
  const before = await imageOf(data?.[0]?.url);
  await service.kill('SIGKILL');
  await service.start();
  expect(await imageOf(data?.[0]?.url)).toEqual(before);
  await service.until('img', 'ready', isAnswering);
  expect((await client.images.generate({ prompt: 'again' })).data).toHaveLength(1);
  expect((await readdir(path.join(service.dir, 'state/images'))).filter((name) => !name.endsWith('.png'))).toEqual([]);
}, 90_000);

test('the image server that dies while it draws is started again, and the request is answered', async () => {
  const slot = await service.slot('img');
  const endpoint = slot?.status.endpoint ?? '';
  const server = endpoint.startsWith('http') ? endpoint : `http://${endpoint}`;
  await fetch(`${server}/stand-in`, { method: 'POST', body: '{"paused":true}' });
  const drawing = client.images.generate({ prompt: 'a red fox' });
  const isDrawing = async () => JSON.parse(await (await fetch(`${server}/queue`)).text()).queue_running.length === 1;
  while (!(await isDrawing()));
  await fetch(`${server}/stand-in`, { method: 'POST', body: '{"crash":true}' }).catch(() => undefined);
  expect((await drawing).data).toHaveLength(1);
}, 90_000);

test('a GPU with less memory than the family needs is refused, with both numbers', async () => {
  const recording = recordingOf('w7900');
  const files = Object.entries(recording.files ?? {}).map(([file, text]) => [
    file,
    file.endsWith('mem_info_vram_total') ? '6442450944\n' : file.endsWith('mem_info_vram_used') ? '0\n' : text,
  ]);
  const directory = path.join(bin, 'small');
  await mkdir(directory);
  const file = path.join(directory, 'small.json');
  await writeFile(file, JSON.stringify({ ...recording, files: Object.fromEntries(files) }));
  const small = await startService({
    runtime: 'process',
    environment: { PATH: service.environment['PATH'] ?? '', SVC_HARDWARE_FILE: file },
  });
  try {
    const store = path.join(small.modelsDir, CHECKPOINTS);
    await writeCheckpoint(path.join(store, TURBO, 'sd_xl_turbo_1.0_fp16.safetensors'), SHAPES.sdxl);
    await small.save('img', `[model]\ndefault = "${TURBO}"\n`);
    const slot = await small.until('img', 'stalled', (seen) => condition(seen, 'Stalled')?.status === 'True');
    expect(condition(slot, 'Stalled')).toMatchObject({
      reason: 'DeviceTooSmall',
      message: '"sdxl-turbo" needs a GPU with at least 8 GB, and the largest here has 6.4 GB; choose a smaller model or a larger GPU',
    });
    const fit = await fetch(`${small.url}/api/fit?model=${TURBO}`);
    expect(await fit.text()).toContain('and the largest here has 6.4 GB');
  } finally {
    await small.dispose();
  }
}, 120_000);
