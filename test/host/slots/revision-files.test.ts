/** The history of slots as files, behind the real source of slots. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createRevisionFiles, type RevisionFiles } from '../../../src/host/slots/revision-files.ts';
import { versionOf } from '../../../src/host/slots/toml-editor.ts';
import { SYSTEM_DISK, type Disk } from '../../../src/files/regular-file.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createSlotDirectory, slot, slotText } from './slot-directory.ts';

const PRIMARY = SlotName.parse('primary');
let slots: Awaited<ReturnType<typeof createSlotDirectory>>;
let files: RevisionFiles;
let wall: number;
let disk: Disk;

const directory = () => join(slots.root, 'state', 'revisions');
const open = (most = 20): RevisionFiles => {
  const log = { info: () => undefined, warn: (_: unknown, message: string) => void slots.warnings.push(message) };
  return createRevisionFiles({ directory: directory(), most, log, wallNow: () => (wall += 1000), disk });
};
beforeEach(async () => {
  wall = 1_800_000_000_000;
  disk = SYSTEM_DISK;
  slots = await createSlotDirectory({ accepted: (...args) => files.follow(...args) });
  files = open();
});
afterEach(async () => await slots.close());

/** Saves a text, and lets a pass read it and publish what became of it. */
async function edit(text: string, served = true): Promise<number> {
  await slots.write('primary.toml', text);
  const generation = slot(await slots.read(), 'primary')?.generation ?? 0;
  if (served) files.write({ statuses: [statusOf(generation)] });
  return generation;
}

function statusOf(observedGeneration: number): SlotStatus {
  const shared = { status: 'True', message: '', lastTransitionAt: 0, observedGeneration } as const;
  return {
    name: PRIMARY,
    state: 'ready',
    conditions: [
      { ...shared, type: 'UpToDate', reason: 'SpecInForce' },
      { ...shared, type: 'Ready', reason: 'ProbePassed' },
    ],
    observedGeneration,
    provider: 'gguf',
    model: Object('a'),
    restarts: 0,
    since: 0,
  };
}
const modelsOf = async () => (await files.list(PRIMARY)).map(({ document }) => Object(document['model']).default);
async function restart(): Promise<void> {
  await files.flush();
  slots.restart();
  files = open();
  await slots.read();
}

describe('createRevisionFiles()', () => {
  test('keeps each generation with its document, its time, who wrote it and what became of it, also over a restart', async () => {
    await edit(slotText('a'));
    await edit('# a comment is no revision\n' + slotText('a'));
    await edit(slotText('b'), false);
    await edit(slotText('c'));
    const expected = [
      { number: 1, who: 'file', outcome: 'served', document: { model: { default: 'a' } } },
      { number: 2, who: 'file', outcome: 'never_ready' },
      { number: 3, who: 'file', outcome: 'served', document: { model: { default: 'c' } } },
    ];
    expect(await files.list(PRIMARY)).toMatchObject(expected);
    const before = await files.list(PRIMARY);
    await restart();
    expect(await files.list(PRIMARY)).toEqual(before);
    await edit(slotText('d'), false);
    expect(await files.list(PRIMARY)).toMatchObject([...expected, { number: 4, outcome: 'pending' }]);
  });

  test('a text that is not valid, and one that is paused, are no revisions', async () => {
    await edit(slotText('a'));
    await edit(slotText('b', 'nonsense = 1\n'));
    await edit(slotText('b', '[rollout]\npaused = true\n'));
    expect(await modelsOf()).toEqual(['a']);
    await restart();
    expect(await modelsOf()).toEqual(['a']);
    await edit(slotText('b'));
    expect(await modelsOf()).toEqual(['a', 'b']);
  });

  test('says who wrote a text, whether a pass has read it before or reads it later', async () => {
    const [early, late] = [slotText('early'), slotText('late')];
    files.attribute(PRIMARY, versionOf(early), { who: 'anna' });
    await edit(early);
    await edit(late);
    files.attribute(PRIMARY, versionOf(late), { who: 'bert', undoOf: 1 });
    await edit(slotText('other'));
    files.attribute(PRIMARY, versionOf(late), { who: 'eve' });
    expect((await files.list(PRIMARY)).map(({ who, undoOf }) => [who, undoOf])).toEqual([
      ['anna', undefined],
      ['bert', 1],
      ['file', undefined],
    ]);
    await restart();
    expect((await files.list(PRIMARY)).map(({ who }) => who)).toEqual(['anna', 'bert', 'file']);
  });

  test('keeps as many as it should, the newest, with little to write for each edit, and for nobody else to read', async () => {
    files = open(3);
    for (let count = 1; count <= 6; count += 1) await edit(slotText(`m-${count}`, '[env]\nTOKEN = "hunter2"\n'));
    expect(await modelsOf()).toEqual(['m-4', 'm-5', 'm-6']);
    await files.flush();
    const names = await readdir(join(directory(), 'primary'));
    expect(names.toSorted()).toEqual(['4.json', '5.json', '6.json']);
    for (const name of names) {
      const { mode, size } = await stat(join(directory(), 'primary', name));
      expect(mode & 0o777).toBe(0o600);
      expect(size).toBeLessThan(1024);
    }
    expect((await stat(join(directory(), 'primary'))).mode & 0o777).toBe(0o700);
  });

  test('orders by number if the clock is set back', async () => {
    await edit(slotText('a'));
    wall = 0;
    await edit(slotText('b'));
    expect(await modelsOf()).toEqual(['a', 'b']);
  });

  test('leaves out damaged files and those of a later version, and names each once', async () => {
    for (const model of ['a', 'b', 'c']) await edit(slotText(model));
    await files.flush();
    await writeFile(join(directory(), 'primary', '1.json'), '{');
    const later = join(directory(), 'primary', '2.json');
    await writeFile(later, (await readFile(later, 'utf8')).replace('"format": 1', '"format": 2'));
    expect(await modelsOf()).toEqual(['c']);
    await modelsOf();
    expect(slots.warnings.toSorted()).toEqual([expect.stringContaining('1.json'), expect.stringContaining('2.json')]);
  });

  test.each<readonly [string, (path: string) => Promise<unknown>, string]>([
    ['a named pipe', async (path) => await promisify(execFile)('mkfifo', [path]), 'is a named pipe'],
    ['a directory', async (path) => await mkdir(path), 'is a directory'],
    ['a text that is no UTF-8', async (path) => await writeFile(path, Buffer.from([0xff, 0xfe, 0x7b])), 'UTF-16'],
    ['another value', async (path) => await writeFile(path, '[1]'), 'expected object'],
  ])('%s in place of a file is left out, and nobody waits for it', async (_, put, why) => {
    for (const model of ['a', 'b']) await edit(slotText(model));
    await files.flush();
    const place = join(directory(), 'primary', '1.json');
    await rm(place);
    await put(place);
    const logged: object[] = [];
    files = createRevisionFiles({
      directory: directory(),
      most: 20,
      wallNow: () => 0,
      log: { info: () => undefined, warn: (facts) => void logged.push(facts) },
    });
    expect(await modelsOf()).toEqual(['b']);
    expect(logged).toEqual([expect.objectContaining({ file: place, error: expect.stringContaining(why) })]);
  });

  test('a named pipe in place of the directory costs the history only', async () => {
    await promisify(execFile)('mkfifo', [directory()]);
    expect([await edit(slotText('a')), await edit(slotText('b'))]).toEqual([1, 2]);
    expect(await modelsOf()).toEqual(['a', 'b']);
    expect(slots.warnings).toContainEqual(expect.stringContaining('the history of slot "primary"'));
  });

  test('a state directory that can only be read costs the history only', async () => {
    const refuse = async () => Promise.reject(Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' }));
    disk = { ...SYSTEM_DISK, open: refuse, mkdir: refuse, rm: refuse };
    files = open();
    expect([await edit(slotText('a')), await edit(slotText('b'))]).toEqual([1, 2]);
    expect(await modelsOf()).toEqual(['a', 'b']);
    expect(slots.warnings.filter((line) => line.includes('the history'))).toEqual([
      expect.stringContaining('allow the service to write it'),
    ]);
  });

  test('a slot that is declared again inherits nothing, also if it was removed while the service did not run', async () => {
    await edit(slotText('a'));
    await rm(join(slots.directory, 'primary.toml'));
    await slots.read();
    await edit(slotText('b'));
    expect(await modelsOf()).toEqual(['b']);
    await files.flush();
    await rm(join(slots.directory, 'primary.toml'));
    await restart();
    await files.flush();
    expect(await readdir(directory())).toEqual([]);
  });

  test('what a full disk refuses is kept in memory, said once, and written with the next change', async () => {
    let isFull = true;
    disk = {
      ...SYSTEM_DISK,
      open: async (...args) => (isFull && String(args[0]).includes('revisions') ? Promise.reject(noSpace()) : SYSTEM_DISK.open(...args)),
    };
    files = open();
    await edit(slotText('a'));
    await edit(slotText('b'));
    expect(await modelsOf()).toEqual(['a', 'b']);
    expect(slots.warnings).toEqual([expect.stringContaining('the history of slot "primary"')]);
    isFull = false;
    await edit(slotText('c'));
    await restart();
    expect(await modelsOf()).toEqual(['a', 'b', 'c']);
  });

  test('a pass does not wait for the disk', async () => {
    disk = {
      ...SYSTEM_DISK,
      open: async (...args) => (String(args[0]).includes('revisions') ? new Promise(() => undefined) : SYSTEM_DISK.open(...args)),
    };
    files = open();
    expect(await edit(slotText('a'))).toBe(1);
    expect(await edit(slotText('b'))).toBe(2);
  });

  test('an entry that is none of its own is left alone', async () => {
    await mkdir(join(directory(), 'Not a slot'), { recursive: true });
    await edit(slotText('a'));
    await files.flush();
    expect((await readdir(directory())).toSorted()).toEqual(['Not a slot', 'primary']);
  });
});

const noSpace = (): Error => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
