import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { checkToolboxFile, createToolboxSource } from '../../src/files/toolbox-manifest.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const id = `sha256:${'b'.repeat(64)}`;

describe('createToolboxSource()', () => {
  let root: string;
  let log: string[];
  const local = () => join(root, 'toolboxes.toml');
  const open = (more: { readonly lastGoodFile?: string } = {}) => {
    const record = (_details: object, message: string) => void log.push(message);
    return createToolboxSource({ shipped: join(root, 'manifest.json'), local: local(), log: { info: record, warn: record }, ...more });
  };
  const read = async (shipped: string | undefined, own?: string) => {
    if (shipped !== undefined) await writeFile(join(root, 'manifest.json'), shipped);
    if (own !== undefined) await writeFile(local(), own);
    return await open().read();
  };
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-toolboxes-'));
    log = [];
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

  test('has no image for an entry that is not published, until the machine has an image of its own', async () => {
    const unpublished = JSON.stringify({ npu: { npu: { image: 'localhost/svc-toolbox-npu:v1', digest: 'unpublished' } } });
    const images = await read(unpublished);
    expect([images.problems, images.find('npu', 'npu')]).toEqual([[], undefined]);
    const built = await read(unpublished, `[npu.npu]\nimage = "localhost/svc-toolbox-npu:v1"\nid = "${id}"\n`);
    expect(built.find('npu', 'npu')).toEqual({ reference: 'localhost/svc-toolbox-npu:v1', imageId: id });
  });

  test('merges the machine’s own entries with the shipped ones, one by one', async () => {
    const images = await read(SHIPPED, `[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\nid = "${id}"\n`);
    expect(images.problems).toEqual([]);
    expect(images.find('gguf', 'cpu')).toEqual({ reference: 'localhost/svc-toolbox-gguf-cpu:v1', imageId: id });
    expect(images.find('gguf', 'vulkan')).toEqual({ reference: `ghcr.io:443/svc/gguf@${digest}` });
  });

  test.each([
    ['[gguf.cpu]\nimage = "ghcr.io/x:v1"\n', { line: 1, message: expect.stringContaining('Set "digest"') }],
    ['[gguf.cpu]\nimage = "localhost/x"\nid = "abc"\n', { line: 3, column: 1, path: ['gguf', 'cpu', 'id'] }],
    ['[gguf\n', { line: 1, message: expect.stringContaining('This file is not valid') }],
    ['[other.cpu]\nimage = "localhost/x"\n', { line: 1, message: expect.stringContaining('Unknown key "other"; known here: "gguf"') }],
    ['[gguf.cpi]\nimage = "localhost/x"\n', { line: 1, message: expect.stringContaining('did you mean "cpu"?') }],
    [
      '[gguf.cpu]\nimage = "localhost/x"\nidd = "x"\n',
      { line: 3, message: expect.stringContaining('Unknown key "idd"; did you mean "id"?') },
    ],
    ['[gguf.cpu]\n', { message: expect.stringContaining('Set "gguf.cpu.image": it is required') }],
  ])('ignores an invalid own file %j that was never valid, reports a problem, and uses the shipped manifest', async (own, problem) => {
    const images = await read(SHIPPED, own);
    expect(images.problems).toMatchObject([{ file: local(), ...problem }]);
    expect(await checkToolboxFile(local())).toMatchObject([{ file: local(), ...problem }]);
    expect(images.find('gguf', 'cpu')).toEqual({ reference: `ghcr.io/svc/gguf-cpu@${digest}` });
  });

  test.each([true, false])('an invalid own file leaves the last good text in force; stored for a restart: %s', async (kept) => {
    const lastGoodFile = join(root, 'state', 'toolboxes.json');
    const source = open(kept ? { lastGoodFile } : {});
    const own = `[gguf.cpu]\nimage = "localhost/mine:v1"\nid = "${id}"\n`;
    const imageOf = async (of: typeof source) => (await of.read()).find('gguf', 'cpu')?.reference;
    await writeFile(join(root, 'manifest.json'), SHIPPED);
    await writeFile(local(), own);
    expect(await imageOf(source)).toBe('localhost/mine:v1');
    await writeFile(local(), own.replace('image', 'imgae'));
    expect([await imageOf(source), await imageOf(source)]).toEqual(['localhost/mine:v1', 'localhost/mine:v1']);
    expect(log).toEqual([expect.stringMatching(/toolboxes\.toml:\d.*imgae.*; the last good text stays in force/)]);
    const shipped = `ghcr.io/svc/gguf-cpu@${digest}`;
    expect(await imageOf(open(kept ? { lastGoodFile } : {}))).toBe(kept ? 'localhost/mine:v1' : shipped);
    await writeFile(local(), own.replace('mine', 'other'));
    expect(await imageOf(source)).toBe('localhost/other:v1');
    await rm(local());
    expect(await imageOf(source)).toBe(shipped);
    expect(await readdir(join(root, 'state')).catch(() => [])).toEqual([]);
    expect(await checkToolboxFile(local())).toBeUndefined();
  });

  test('logs that the last good text cannot be stored and uses it anyway', async () => {
    await writeFile(join(root, 'manifest.json'), SHIPPED);
    await writeFile(local(), '[gguf.cpu]\nimage = "localhost/mine:v1"\n');
    await writeFile(join(root, 'file'), '');
    const images = await open({ lastGoodFile: join(root, 'file', 'toolboxes.json') }).read();
    expect(images.find('gguf', 'cpu')?.reference).toBe('localhost/mine:v1');
    expect(log).toEqual([expect.stringContaining('failed')]);
  });

  test('reports that the shipped manifest is missing or invalid', async () => {
    expect((await read(undefined)).problems).toMatchObject([{ file: join(root, 'manifest.json') }]);
    expect((await read('{')).problems).toMatchObject([{ message: expect.stringContaining('This file is not valid') }]);
  });
});
