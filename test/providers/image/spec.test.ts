/** The rows and rules of the specification about images, each by its name. What a whole service does with them is in test/e2e/images.test.ts. */
import { glob, readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { hardwareOf } from '../../../src/host/hardware/decide/hardware-of.ts';
import { parseCatalogue, entryOf } from '../../../src/models/catalogue/decide/parse-catalogue.ts';
import { loadedPath, type CatalogueEntry } from '../../../src/models/catalogue/catalogue.ts';
import { image } from '../../../src/providers/image/image.ts';
import type { Sized } from '../../../src/providers/provider.ts';
import { largestDeviceBytes, poolsOfBackend } from '../../../src/reconciler/decide/facts/memory-pools.ts';
import type { Hardware } from '../../../src/schema/status/hardware.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { DEFAULT_PROVIDER_OF_SLOT, PROVIDER_KIND_NAMES, PROVIDER_KINDS } from '../../../src/schema/slot/provider-kinds.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { DEFAULT_SLOT_OF_CAPABILITY, INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import { route } from '../../../src/gateway/route/decide/route.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import { boardSlot, boardView, PARK } from '../../gateway/support/board-fixture.ts';
import { specOf as specOfKind } from '../../support/providers/odd-models.ts';
import { recordingOf } from '../../support/hardware/recorded-machines.ts';

const { records } = parseCatalogue(await readFile('src/models/catalogue/catalogue.toml', 'utf8'), 'catalogue.toml');
const context = { hubUrl: () => 'https://huggingface.co/x', providers: new Set(['image'] as const), isOwn: false };
const IMG = SlotName.parse('img');

function entry(id: string): CatalogueEntry {
  const record = records.get(id);
  if (record === undefined) throw new Error(`The catalogue has no "${id}"`);
  return entryOf(record, context);
}

/** A model of the catalogue as a slot has it, on a machine with a Radeon of this size. */
function factsOf(id: string): Sized {
  const { files } = entry(id);
  const paths = files.map(({ path }) => path);
  const sizeBytes = files.reduce((sum, { from }) => sum + (from.kind === 'url' ? from.sizeBytes : 0), 0);
  return {
    id: ModelId.parse(id),
    hostPath: `/store/${paths[0]}`,
    sizeBytes,
    provider: 'image',
    contents: image.models.contentsFrom(undefined, paths),
  };
}

function radeonOf(bytes: number): Hardware {
  const recording = recordingOf('w7900');
  const files = Object.entries(recording.files ?? {}).map(([file, text]) => [
    file,
    file.endsWith('mem_info_vram_total') ? `${bytes}\n` : file.endsWith('mem_info_vram_used') ? '0\n' : text,
  ]);
  return hardwareOf({ ...recording, files: Object.fromEntries(files) }, { kind: 'machine' });
}

const specOf = (id: string) => {
  const parsed = parseSlot(IMG, { model: { default: id } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
};

describe('curated image model entry', () => {
  test.each([
    ['sdxl-turbo', 6.5e9, 'sdxl-turbo'],
    ['sd-1.5-pruned-emaonly', 4.3e9, 'sd-1.5'],
    ['flux-schnell', 23.8e9, 'flux-schnell'],
  ])('%s has about %d bytes in its first file, and a family with a workflow', (id, bytes, family) => {
    const [first] = entry(id).files;
    const sizeBytes = first.from.kind === 'url' ? first.from.sizeBytes : 0;
    expect(Math.abs(sizeBytes - bytes) / bytes).toBeLessThan(0.1);
    expect(factsOf(id).contents).toMatchObject({ family });
    expect(image.capabilities(IMG, specOf(id), factsOf(id))).toEqual(['image']);
    expect(image.objection?.(IMG, specOf(id), factsOf(id))).toBeUndefined();
  });

  test.each([
    ['sdxl-turbo', 8e9, 8_573_157_376],
    ['sd-1.5-pruned-emaonly', 4e9, 4_278_190_080],
    ['flux-schnell', 24e9, 25_753_026_560],
  ])('%s needs %d bytes of a discrete GPU, and runs on a card that is sold with so much (%d)', (id, least, card) => {
    const [spec, facts] = [specOf(id), factsOf(id)];
    expect(image.leastDeviceBytes?.(IMG, spec, facts)).toBe(least);
    const hardware = radeonOf(card);
    expect(poolsOfBackend(hardware, 'rocm').own).toHaveLength(1);
    expect(largestDeviceBytes(hardware, 'rocm')).toBe(card);
    expect(card).toBeGreaterThanOrEqual(least);
    // What it is admitted with fits beside the driver.
    expect(image.estimateMemory(IMG, spec, facts).deviceBytes).toBeLessThanOrEqual(card * 0.95);
  });

  test.each([
    ['sdxl-turbo', 'sai-nc-community'],
    ['sd-1.5-pruned-emaonly', 'creativeml-openrail-m'],
    ['flux-schnell', 'apache-2.0'],
  ])('the license of %s is %s', (id, license) => expect(entry(id).license).toBe(license));

  test('each entry carries a `license_url`', () => {
    for (const id of ['sdxl-turbo', 'sd-1.5-pruned-emaonly', 'flux-schnell']) expect(entry(id).licenseUrl).toMatch(/^https:\/\//);
  });

  test('checkpoint files live in the entry’s own directory under `models/checkpoints/` of the image provider', () => {
    for (const id of ['sdxl-turbo', 'sd-1.5-pruned-emaonly', 'flux-schnell']) {
      for (const { path } of entry(id).files) expect(path.startsWith(`image/models/checkpoints/${id}/`)).toBe(true);
      expect(loadedPath(entry(id))).toBe(entry(id).files[0].path);
    }
  });

  test('`flux-schnell` is selectable, as a workflow drives it', () => {
    expect(entry('flux-schnell')).toMatchObject({ selectable: true });
  });
});

describe('the slot `img`', () => {
  test('has the keys `enabled`, `backend` (`rocm` by default) and `default` of the table `[model]`', () => {
    const parsed = parseSlot(IMG, { enabled: false, backend: 'rocm', model: { default: 'sdxl-turbo' } });
    expect(parsed).toMatchObject({ ok: true, spec: { enabled: false, backend: 'rocm', model: { default: 'sdxl-turbo' } } });
    expect(specOf('flux-schnell')).toMatchObject({ enabled: true, provider: 'image', backend: 'rocm' });
    expect(parseSlot(IMG, { backend: 'vulkan', model: { default: 'sdxl-turbo' } }).ok).toBe(false);
  });
});

describe('the image runtime', () => {
  test('All five are first-class: it is one of the providers of this build', () => {
    expect(PROVIDERS.image).toBe(image);
    expect(Object.keys(PROVIDERS).toSorted()).toEqual([...PROVIDER_KIND_NAMES, 'remote'].toSorted());
    expect(PROVIDER_KIND_NAMES).toHaveLength(5);
  });

  test('computes with `rocm` by default and serves images', () => {
    expect(PROVIDER_KINDS.image).toEqual({ backends: ['rocm', 'cuda'], defaultBackend: 'rocm', serves: ['image'] });
    expect(specOf('sdxl-turbo')).toMatchObject({ provider: 'image', backend: 'rocm' });
    expect(DEFAULT_PROVIDER_OF_SLOT['img']).toBe('image');
  });

  test('beyond the specification, it computes with `cuda` where there are only GPUs of NVIDIA', () => {
    const nvidia = hardwareOf(recordingOf('rtx-3090-and-4090'), { kind: 'machine' });
    expect(image.rankBackends(nvidia)).toEqual([{ backend: 'rocm', missing: expect.stringContaining('AMD') }, { backend: 'cuda' }]);
    const parsed = parseSlot(IMG, { backend: 'cuda', model: { default: 'sdxl-turbo' }, resources: { gpus: 2 } });
    if (!parsed.ok) throw new Error('There is no spec');
    const model = factsOf('sdxl-turbo');
    const slot = { name: IMG, spec: parsed.spec, model, modelPath: model.hostPath, listen: { host: '0.0.0.0', port: 8188 } };
    expect(image.devices('cuda')).toEqual(['nvidia.com/gpu=all']);
    expect(image.buildEnv(slot)).toMatchObject({ CUDA_VISIBLE_DEVICES: '0,1' });
  });

  test('`build_env()` and `start_cmd()` name the model, its directory and where to listen', () => {
    const model = factsOf('sdxl-turbo');
    const slot = { name: IMG, spec: specOf('sdxl-turbo'), model, modelPath: model.hostPath, listen: { host: '0.0.0.0', port: 8188 } };
    expect(image.buildEnv(slot)).toEqual({
      COMFYUI_MODELS: '/store/image/models/checkpoints',
      COMFYUI_MODEL: '/store/image/models/checkpoints/sdxl-turbo/sd_xl_turbo_1.0_fp16.safetensors',
    });
    expect(image.startCmd(slot)).toEqual([
      'comfyui',
      '--listen',
      '0.0.0.0',
      '--port',
      '8188',
      '--disable-metadata',
      '--disable-all-custom-nodes',
      '--disable-api-nodes',
      '--preview-method',
      'latent2rgb',
    ]);
  });

  test('`infer()`: the slot `img` serves `/v1/images/*`', () => {
    expect(DEFAULT_SLOT_OF_CAPABILITY.image).toBe('img');
    for (const { path, capability } of INFERENCE_PATHS) expect(capability === 'image').toBe(path.startsWith('/v1/images/'));
    const plan = image.infer({ method: 'POST', path: '/v1/images/generations', capability: 'image' }, ['image']);
    expect(plan.kind).toBe('translate');
  });

  test('The dispatcher pins `/v1/images/*` to the `img` slot, also where another slot could draw', () => {
    const board = boardView(1, [
      { name: 'art', capabilities: ['image'], targets: [{ workload: 'a', port: 1 }] },
      { name: 'img', capabilities: ['image'] },
    ]);
    const images = INFERENCE_PATHS.filter(({ path }) => path.startsWith('/v1/images/'));
    expect(images.map(({ path }) => path).toSorted()).toEqual(['/v1/images/edits', '/v1/images/generations', '/v1/images/variations']);
    for (const { path, capability } of images)
      expect(route(capability, path, undefined, board)).toMatchObject({ kind: 'slot', slot: { name: 'img' } });
  });

  test.each([
    ['a model of OpenAI', 'dall-e-3', 'img'],
    ['a curated model that no slot has now', 'flux-schnell', 'img'],
    ['the model of `img`', 'sdxl-turbo', 'img'],
    ['a chat slot', 'primary', 'img'],
    ['a chat model', 'qwen3.5-4b', 'img'],
    ['another image slot', 'art', 'art'],
    ['the model of another image slot', 'sd-1.5-pruned-emaonly', 'art'],
    ['an image slot that still loads', 'slow', 'slow'],
  ])('The dispatcher pins `/v1/images/*`: with %s as `model`', (_what, model, slot) => {
    const slow = boardSlot({ name: 'slow', capabilities: [], admission: PARK });
    const { names, slots, ...view } = boardView(1, [
      { name: 'primary', model: 'qwen3.5-4b', capabilities: ['chat'] },
      { name: 'art', model: 'sd-1.5-pruned-emaonly', capabilities: ['image'] },
      { name: 'img', model: 'sdxl-turbo', capabilities: ['image'] },
      { name: 'slow', capabilities: [] },
    ]);
    const spec = specOfKind('image');
    const board = { ...view, names, slots: new Map([...slots, [slow.name, { ...slow, spec }]]) };
    for (const path of ['/v1/images/generations', '/v1/images/edits', '/v1/images/variations']) {
      const decision = route('image', path, model, board);
      const name = decision.kind === 'slot' ? decision.slot.name : decision.kind === 'refuse' ? decision.message.slice(6, 10) : '';
      expect(name).toBe(slot);
    }
  });

  test('Without the slot `img`, a name that no image slot has does not exist', () => {
    const board = boardView(1, [{ name: 'art', capabilities: ['image'] }]);
    expect(route('image', '/v1/images/generations', 'dall-e-3', board)).toMatchObject({ kind: 'refuse', code: 'model.not_found' });
  });

  test('Workflow templates are stored with the image provider: nothing else knows a node of ComfyUI', async () => {
    const folder = 'src/providers/image/';
    const withNodes: string[] = [];
    for await (const file of glob('src/**/*.{ts,json}')) if (/['"]KSampler['"]/.test(await readFile(file, 'utf8'))) withNodes.push(file);
    expect(withNodes).not.toEqual([]);
    expect(withNodes.filter((file) => !file.startsWith(folder))).toEqual([]);
  });
});
