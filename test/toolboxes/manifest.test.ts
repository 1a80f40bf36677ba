import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { PROVIDER_KINDS } from '../../src/schema/slot/provider-kinds.ts';
import { image } from '../../src/providers/image/image.ts';
import { parse } from 'smol-toml';
import { ToolboxManifest, UNPUBLISHED } from '../../src/schema/slot/toolbox-images.ts';

const toolboxes = path.resolve(import.meta.dirname, '../../toolboxes');

test('the shipped manifest is valid and has an image for every backend that is supported', async () => {
  const manifest = ToolboxManifest.parse(parse(await readFile(path.join(toolboxes, '../manifests/toolboxes.toml'), 'utf8')));
  expect(Object.keys(manifest.gguf ?? {}).toSorted()).toEqual([...PROVIDER_KINDS.gguf.backends].toSorted());
  expect(Object.keys(manifest.stt ?? {})).toEqual(PROVIDER_KINDS.stt.backends);
  // Nothing that this project has computes speech with Vulkan.
  expect(Object.keys(manifest.tts ?? {})).toEqual(['cpu']);
  expect(Object.keys(manifest.npu ?? {})).toEqual(['npu']);
  // For CUDA, users name an image of their own.
  expect(Object.keys(manifest.image ?? {})).toEqual(image.toolbox?.backends);
  for (const { image, digest } of Object.values(manifest).flatMap((each) => Object.values(each))) {
    expect(image).toMatch(/:v1$/);
    expect(digest === UNPUBLISHED || digest?.startsWith('sha256:')).toBe(true);
  }
});

test('the lock file of the speech server contains no registry and no install scripts', async () => {
  const lock: { packages: Record<string, { resolved?: string; hasInstallScript?: boolean }> } = JSON.parse(
    await readFile(path.join(toolboxes, 'speech', 'package-lock.json'), 'utf8'),
  );
  expect(Object.keys(lock.packages)).toContain('node_modules/sherpa-onnx-linux-arm64');
  for (const entry of Object.values(lock.packages)) {
    expect(entry.resolved).toBeUndefined();
    expect(entry.hasInstallScript).toBeUndefined();
  }
});

test('the lock file of the engine contains no registry and no packages for GPUs', async () => {
  const lock: { packages: Record<string, { name?: string; resolved?: string; os?: string[] | string; hasInstallScript?: boolean }> } =
    JSON.parse(await readFile(path.join(toolboxes, 'embedded', 'package-lock.json'), 'utf8'));
  for (const entry of Object.values(lock.packages)) expect(entry.resolved).toBeUndefined();
  for (const [place, entry] of Object.entries(lock.packages)) {
    if (/linux-.*(cuda|vulkan)/.test(place)) expect([entry.os].flat()).toEqual(['win32']);
  }
});
