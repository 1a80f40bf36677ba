import { mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createCatalogueSource, type CatalogueSource } from '../../../src/models/catalogue/catalogue-source.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { eventually } from '../../support/eventually.ts';

const SHA = 'a'.repeat(64);
const entry = (id: string, more = '') =>
  `[[models]]\nid = "${id}"\nkind = "chat"\n${more}[[models.files]]\nrepo = "o/r"\nfile = "m.gguf"\nsize = 42\nsha256 = "${SHA}"\n`;

let root = '';
let local = '';
let log: string[] = [];
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-catalogue-'));
  local = path.join(root, 'etc/models.toml');
  await mkdir(path.dirname(local));
  log = [];
});
afterEach(async () => await rm(root, { recursive: true, force: true }));

const open = async (): Promise<CatalogueSource> =>
  await createCatalogueSource({
    local,
    lastGoodFile: path.join(root, 'models.json'),
    hub: { endpoint: 'https://hub.test' },
    providers: ['gguf'],
    quietPeriodMs: 10,
    log: { info: () => undefined, warn: (_fields, message) => void log.push(message) },
  });

async function readAfter(source: CatalogueSource, text: string): Promise<readonly string[]> {
  await writeFile(local, text);
  return (await source.read()).map((problem) => formatProblem(problem).replace(root, ''));
}

describe('createCatalogueSource()', () => {
  test('has the demo models and the shipped ones without a file of the user', async () => {
    const source = await open();
    expect(await source.read()).toEqual([]);
    expect(source.catalogue.get('demo-fox')).toMatchObject({ verified: true, selectable: true });
    expect(source.catalogue.get('bge-m3')).toMatchObject({ kind: 'embed', verified: false, isOwn: false });
    expect(source.catalogue.has('own')).toBe(false);
  });

  test('says why a model cannot be used', async () => {
    const { catalogue } = await open();
    const reasonOf = (id: string) => catalogue.get(id)?.reason;
    expect(reasonOf('sdxl-turbo')).toBe('it needs the provider "image", which this version does not include yet');
    expect(reasonOf('bge-m3')).toBeUndefined();
    const withSpeech = await createCatalogueSource({
      local,
      hub: { endpoint: '' },
      providers: ['stt', 'image'],
      quietPeriodMs: 0,
      log: { info: () => undefined, warn: () => undefined },
    });
    expect(withSpeech.catalogue.get('moonshine-tiny-en')).toMatchObject({
      selectable: true,
      directory: expect.stringMatching(/^catalogue\/moonshine-tiny-en\/[0-9a-f]{12}$/),
    });
    expect(withSpeech.catalogue.get('sdxl-turbo')).toMatchObject({ selectable: true });
    expect(withSpeech.catalogue.get('flux-schnell')).toMatchObject({ selectable: true });
  });

  test('takes new entries, changed ones and removed ones without a restart', async () => {
    const source = await open();
    expect(await readAfter(source, entry('own'))).toEqual([]);
    const before = source.catalogue.get('own');
    expect(before).toMatchObject({ isOwn: true, files: [{ from: { url: 'https://hub.test/o/r/resolve/main/m.gguf', sizeBytes: 42 } }] });
    expect(await readAfter(source, entry('own', 'context = 4096\n'))).toEqual([]);
    expect(source.catalogue.get('own')).toMatchObject({ context: 4096, files: before?.files });
    expect(await readAfter(source, entry('own').replace(SHA, 'b'.repeat(64)))).toEqual([]);
    // Other content has another place, so the file that a server has open stays.
    expect(source.catalogue.get('own')?.files[0].path).not.toBe(before?.files[0].path);
    await rm(local);
    expect(await source.read()).toEqual([]);
    expect(source.catalogue.has('own')).toBe(false);
  });

  test('an entry with a mistake stays as it was, also after a restart, and the others change', async () => {
    const source = await open();
    await readAfter(source, entry('own') + entry('other'));
    const bad = entry('own', 'context = "much"\n') + entry('new');
    const problem = '/etc/models.toml:4:1: models.0.context: Write a number, not "much"';
    expect(await readAfter(source, bad)).toEqual([problem]);
    for (const each of [source, await open()]) {
      await each.read();
      const has = (id: string) => each.catalogue.has(id);
      expect([has('own'), has('other'), has('new')]).toEqual([true, false, true]);
    }
    expect(log.filter((line) => line.includes('models.0.context'))).toHaveLength(2);
  });

  test.each([
    ['no TOML', async () => await writeFile(local, '[[models]\n')],
    ['a directory', async () => await mkdir(local)],
    ['a large file', async () => await writeFile(local, '#'.repeat(2 ** 20 + 1))],
    ['a huge sparse file', async () => (await writeFile(local, ''), await truncate(local, 2 ** 40))],
    ['other bytes than UTF-8', async () => await writeFile(local, Buffer.from([0x61, 0xff, 0xfe]))],
    ['NUL bytes', async () => await writeFile(local, `${entry('new')}\0`)],
    ['a pipe that nobody writes to', async () => void spawnSync('mkfifo', [local])],
    ['a link into nothing', async () => await symlink('/nowhere/at-all', local)],
  ])('keeps every entry when the file becomes %s, also after a restart', async (_name, replace) => {
    const source = await open();
    await readAfter(source, entry('own'));
    await rm(local);
    await replace();
    for (const each of [source, await open()]) {
      expect(await each.read()).toHaveLength(1);
      expect(each.catalogue.has('own')).toBe(true);
      expect(each.catalogue.has('bge-m3')).toBe(true);
    }
  });

  test('a damaged record of the last good entries is ignored', async () => {
    await writeFile(path.join(root, 'models.json'), '[{"id": "../x"}]');
    const source = await open();
    await source.read();
    expect(source.catalogue.has('../x')).toBe(false);
  });

  test('wakes when the file appears, changes, and is replaced as editors and Kubernetes do, and for no other file', async () => {
    const source = await open();
    const abort = new AbortController();
    let wakes = 0;
    source.changes(() => void (wakes += 1), abort.signal);
    const changed = async (change: () => Promise<unknown>): Promise<void> => {
      const before = wakes;
      await change();
      await eventually('a wake', () => wakes > before);
    };
    try {
      await eventually('the first wake', () => wakes > 0);
      await changed(async () => await writeFile(local, entry('own')));
      await changed(async () => await writeFile(local, entry('own', 'context = 1\n')));
      await writeFile(`${local}.new`, entry('own'));
      await changed(async () => await rename(`${local}.new`, local));
      await changed(async () => await rm(local));
      await mkdir(path.join(root, 'etc/..2026'));
      await writeFile(path.join(root, 'etc/..2026/models.toml'), entry('own'));
      await symlink('..2026', path.join(root, 'etc/..data'));
      await changed(async () => await symlink('..data/models.toml', local));
      await source.read();
      expect(source.catalogue.has('own')).toBe(true);
      // The last change may wake more than once.
      let before = -1;
      while (wakes !== before) {
        before = wakes;
        await sleep(300);
      }
      await writeFile(path.join(root, 'etc/tokens.toml'), 'a = 1\n');
      await sleep(300);
      expect(wakes).toBe(before);
    } finally {
      abort.abort();
    }
  });
});
