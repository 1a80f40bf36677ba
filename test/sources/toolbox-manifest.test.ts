import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readToolboxManifest } from '../../src/sources/toolbox-manifest.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const id = `sha256:${'b'.repeat(64)}`;

describe('readToolboxManifest()', () => {
  let root: string;
  const read = async (shipped: string | undefined, local?: string) => {
    const paths = { shipped: join(root, 'manifest.json'), local: join(root, 'toolboxes.toml') };
    if (shipped !== undefined) await writeFile(paths.shipped, shipped);
    if (local !== undefined) await writeFile(paths.local, local);
    return await readToolboxManifest(paths);
  };
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-toolboxes-'));
  });
  afterEach(async () => await rm(root, { recursive: true, force: true }));

  const SHIPPED = JSON.stringify({
    gguf: { vulkan: { image: 'ghcr.io:443/svc/gguf:v1', digest }, cpu: { image: 'ghcr.io/svc/gguf-cpu:v1', digest } },
  });

  test('pins a pulled image by its digest', async () => {
    const images = await read(SHIPPED);
    expect(images.problems).toEqual([]);
    expect(images.find('gguf', 'vulkan')).toEqual({ reference: `ghcr.io:443/svc/gguf@${digest}` });
    expect(images.find('gguf', 'rocm')).toBeUndefined();
    expect(images.find('npu', 'npu')).toBeUndefined();
  });

  test('lays the machine’s own entries over the shipped ones, one by one', async () => {
    const images = await read(SHIPPED, `[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\nid = "${id}"\n`);
    expect(images.problems).toEqual([]);
    expect(images.find('gguf', 'cpu')).toEqual({ reference: 'localhost/svc-toolbox-gguf-cpu:v1', imageId: id });
    expect(images.find('gguf', 'vulkan')).toEqual({ reference: `ghcr.io:443/svc/gguf@${digest}` });
  });

  test.each([
    ['[gguf.cpu]\nimage = "ghcr.io/x:v1"\n', { line: 1, message: expect.stringContaining('Pin the image') }],
    ['[gguf.cpu]\nimage = "localhost/x"\nid = "abc"\n', { line: 3, column: 1, path: ['gguf', 'cpu', 'id'] }],
    ['[gguf\n', { line: 1, message: expect.stringContaining('Correct this file') }],
    ['[other.cpu]\nimage = "localhost/x"\n', { line: 1 }],
  ])('a bad own file %j is left out with a problem, and the shipped manifest stands', async (local, problem) => {
    const images = await read(SHIPPED, local);
    expect(images.problems).toMatchObject([{ file: join(root, 'toolboxes.toml'), ...problem }]);
    expect(images.find('gguf', 'cpu')).toEqual({ reference: `ghcr.io/svc/gguf-cpu@${digest}` });
  });

  test('says so when the shipped manifest is missing or broken', async () => {
    expect((await read(undefined)).problems).toMatchObject([{ file: join(root, 'manifest.json') }]);
    expect((await read('{')).problems).toMatchObject([{ message: expect.stringContaining('Correct this file') }]);
  });
});
