import { mkdir, mkdtemp, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readTextFile, createTextFileMemory, LOOK_AGAIN_MS, UNCERTAIN_MS, type FileStamp } from '../../src/files/read-text-file.ts';

/** Counts how often a file is read, with clocks that the test moves. Files look `ageMs` older than they are. */
function createCountedMemory(ageMs: number) {
  const counts = { reads: 0 };
  const clock = { now: 0 };
  const memory = createTextFileMemory({
    async readFile(path) {
      counts.reads += 1;
      return await readTextFile(path);
    },
    wallNow: () => Date.now() + ageMs,
    now: () => clock.now,
  });
  const textOf = async (path: string): Promise<string | undefined> => {
    const read = await memory.read(path);
    return read?.file.kind === 'text' ? read.file.text : read?.file.message;
  };
  return { memory, counts, clock, textOf };
}

describe('a memory of text files', () => {
  let root: string;
  let path: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-texts-'));
    path = join(root, 'a.toml');
    await writeFile(path, 'one');
  });
  afterEach(async () => await rm(root, { recursive: true, force: true }));

  /** The system gives files that are written soon after each other the same time. */
  const waitForAnotherTime = async (): Promise<void> => {
    const probe = join(root, 'probe');
    await writeFile(probe, '');
    const { ctimeNs } = await stat(probe, { bigint: true });
    do await writeFile(probe, '');
    while ((await stat(probe, { bigint: true })).ctimeNs === ctimeNs);
  };

  test('reads a file once as long as nothing changes, and returns the same object', async () => {
    const { memory, counts } = createCountedMemory(UNCERTAIN_MS + 1000);
    const first = await memory.read(path);
    expect(await memory.read(path)).toBe(first);
    expect(counts.reads).toBe(1);
  });

  test.each([
    ['an atomic save', async () => await writeFile(`${path}~`, 'two').then(async () => await rename(`${path}~`, path))],
    ['a write of the same size', async () => await writeFile(path, 'two')],
    [
      'a write of the same size, with the time of the last write as it was',
      async () => {
        const { atime, mtime } = await stat(path);
        await writeFile(path, 'two');
        await utimes(path, atime, mtime);
      },
    ],
    [
      'a write with the time of the last write in the past',
      async () => await writeFile(path, 'two').then(async () => await utimes(path, new Date(1000), new Date(1000))),
    ],
    [
      'a replacement by an older file',
      async () => {
        await writeFile(`${path}~`, 'two');
        await utimes(`${path}~`, new Date(1000), new Date(1000));
        await rename(`${path}~`, path);
      },
    ],
  ])('notices %s', async (_, edit) => {
    const { textOf } = createCountedMemory(UNCERTAIN_MS + 1000);
    expect([await textOf(path), await textOf(path)]).toEqual(['one', 'one']);
    await waitForAnotherTime();
    await edit();
    expect(await textOf(path)).toBe('two');
  });

  test('notices another target of a symbolic link, as where Kubernetes replaces a mounted ConfigMap, and a change of the target', async () => {
    const { textOf } = createCountedMemory(UNCERTAIN_MS + 1000);
    for (const version of ['v1', 'v2']) {
      await mkdir(join(root, version));
      await writeFile(join(root, version, 'b.toml'), version);
    }
    await symlink('v1', join(root, '..data'));
    await symlink('..data/b.toml', join(root, 'b.toml'));
    const link = join(root, 'b.toml');
    expect([await textOf(link), await textOf(link)]).toEqual(['v1', 'v1']);
    await symlink('v2', join(root, '..data_tmp'));
    await rename(join(root, '..data_tmp'), join(root, '..data'));
    expect(await textOf(link)).toBe('v2');
    await waitForAnotherTime();
    await writeFile(join(root, 'v2', 'b.toml'), 'v3');
    expect(await textOf(link)).toBe('v3');
    await rm(join(root, 'v2'), { recursive: true });
    expect(await textOf(link)).toMatch(/symbolic link/);
  });

  test('notices that a file is gone, and that it is there again', async () => {
    const { memory, textOf } = createCountedMemory(UNCERTAIN_MS + 1000);
    await textOf(path);
    await rm(path);
    expect(await memory.read(path)).toBeUndefined();
    await writeFile(path, 'two');
    expect(await textOf(path)).toBe('two');
  });

  test('reads a file again that was changed shortly before it was read, since another write could bear the same times', async () => {
    const { counts, textOf } = createCountedMemory(0);
    await textOf(path);
    await textOf(path);
    expect(counts.reads).toBe(2);
  });

  test('reads a file again where its times lie in the future', async () => {
    const { counts, textOf } = createCountedMemory(UNCERTAIN_MS + 1000);
    await utimes(path, new Date(Date.now() + 3_600_000), new Date(Date.now() + 3_600_000));
    await textOf(path);
    await textOf(path);
    expect(counts.reads).toBe(2);
  });

  test('returns the same object for a text that was read again and is the same', async () => {
    const { memory } = createCountedMemory(0);
    const first = await memory.read(path);
    expect((await memory.read(path))?.file).toBe(first?.file);
  });
});

describe('a file that the system describes wrongly', () => {
  const SETTLED = BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n;
  const STAMP: FileStamp = { dev: 1n, ino: 2n, size: 3n, mtimeNs: SETTLED, ctimeNs: SETTLED };

  function createWrongMemory(stamp: FileStamp, wallNow: number) {
    const state = { text: 'one', now: 0, described: stamp };
    const memory = createTextFileMemory({
      readFile: async () => ({ file: { kind: 'text', text: state.text }, writtenAt: 0, changedMeanwhile: false, stamp }),
      describeFile: async () => state.described,
      wallNow: () => wallNow,
      now: () => state.now,
    });
    return { state, text: async () => (await memory.read('/a.toml'))?.file };
  }

  test('is read as it is after a minute at the latest', async () => {
    const { state, text } = createWrongMemory(STAMP, Number(SETTLED / 1_000_000n) + UNCERTAIN_MS + 1);
    await text();
    state.text = 'two';
    expect(await text()).toMatchObject({ text: 'one' });
    state.now = LOOK_AGAIN_MS;
    expect(await text()).toMatchObject({ text: 'two' });
  });

  test.each(['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const)('is read again once its %s alone is another', async (field) => {
    const { state, text } = createWrongMemory(STAMP, Number(SETTLED / 1_000_000n) + UNCERTAIN_MS + 1);
    await text();
    state.text = 'two';
    expect(await text()).toMatchObject({ text: 'one' });
    state.described = { ...STAMP, [field]: STAMP[field] - 1n };
    expect(await text()).toMatchObject({ text: 'two' });
  });

  test.each(['mtimeNs', 'ctimeNs'] as const)('is read as it is while its %s is recent', async (time) => {
    const recent = { ...STAMP, [time]: SETTLED + 5_000_000_000n };
    const { state, text } = createWrongMemory(recent, Number(SETTLED / 1_000_000n) + 5000 + UNCERTAIN_MS);
    await text();
    state.text = 'two';
    expect(await text()).toMatchObject({ text: 'two' });
  });
});
