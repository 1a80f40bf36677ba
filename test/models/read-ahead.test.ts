/** Files that are read ahead: real files, and entries that are none. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createReadAhead } from '../../src/models/read-ahead.ts';
import { gguf } from '../../src/providers/gguf/gguf.ts';
import type { NextModel, ReadAheadReport } from '../../src/reconciler/ports.ts';
import { ModelId, SlotName } from '../../src/schema/words/names.ts';
import { eventually } from '../support/eventually.ts';

const MIB = 2 ** 20;
/** Temporary files may be in memory, where nothing is to be read ahead. */
const ON_DISK = '/var/tmp';
const slot = SlotName.parse('primary');
let directory: string;
beforeEach(async () => void (directory = await mkdtemp(path.join(ON_DISK, 'svc-read-ahead-'))));
afterEach(async () => await rm(directory, { recursive: true, force: true }));

/** A disk that has delivered as many bytes as it is told to; `cached` means that it delivers nothing. */
function begin({ cached = false }: { readonly cached?: boolean } = {}) {
  let count = 0;
  const reports: ReadAheadReport[] = [];
  const readFromDisk = async (): Promise<number> => Promise.resolve(cached ? 0 : (count += 1));
  const ahead = createReadAhead({ providers: { gguf }, readFromDisk });
  return {
    reports,
    follow: (...models: readonly NextModel[]) => ahead.follow(models, (_, report) => void reports.push(report)),
    last: async (): Promise<ReadAheadReport | undefined> => {
      await eventually('a report', () => reports.length > 0);
      return reports.at(-1);
    },
  };
}

function modelOf(name: string, sizeBytes: number, more: Partial<NextModel['model']> = {}): NextModel {
  return { slot, model: { id: ModelId.parse(name), hostPath: path.join(directory, name), sizeBytes, provider: 'gguf', ...more } };
}

async function writeModel(name: string, sizeBytes = 9 * MIB): Promise<NextModel> {
  await writeFile(path.join(directory, name), Buffer.alloc(sizeBytes, 1));
  return modelOf(name, sizeBytes);
}

/** Makes an entry at this path, which should be a model of 9 MiB. */
type Spoil = (file: string) => Promise<unknown>;

const ODD: readonly (readonly [string, Spoil, object])[] = [
  ['a pipe', async (file) => execFileSync('mkfifo', [file]), { doneBytes: 0, problem: expect.stringContaining('not a regular file') }],
  ['a file that has become shorter', async (file) => writeFile(file, Buffer.alloc(MIB)), { doneBytes: MIB }],
  ['no longer there', async () => undefined, { doneBytes: 0, problem: 'it is no longer there' }],
  ['a directory', async (file) => execFileSync('mkdir', ['-p', `${file}/more`]), { doneBytes: 0 }],
];

describe('a model that is read ahead', () => {
  test('is read once, and again after it was not wanted for a while', async () => {
    const { follow, last, reports } = begin();
    const model = await writeModel('a.gguf');
    follow(model);
    expect(await last()).toEqual({ model: 'a.gguf', doneBytes: 9 * MIB, totalBytes: 9 * MIB });
    follow(model);
    follow();
    follow(model);
    await eventually('a second report', () => reports.length === 2);
  });

  test('is read with its shards', async () => {
    await writeModel('a-00001-of-00002.gguf');
    await writeModel('a-00002-of-00002.gguf', MIB);
    const { follow, last } = begin();
    follow(modelOf('a-00001-of-00002.gguf', 10 * MIB));
    expect(await last()).toMatchObject({ doneBytes: 10 * MIB });
  });

  test('is not read where it is in the page cache', async () => {
    const { follow, last } = begin({ cached: true });
    follow(await writeModel('a.gguf'));
    expect(await last()).toEqual({ model: 'a.gguf', doneBytes: 9 * MIB, totalBytes: 9 * MIB, wasCached: true });
  });

  test('is no longer read once it is not wanted, and another one is', async () => {
    const { follow, reports } = begin();
    const [first, second] = [await writeModel('a.gguf', 400 * MIB), await writeModel('b.gguf', MIB)];
    follow(first);
    await new Promise((resolve) => setTimeout(resolve, 20));
    follow(second);
    await eventually('both reports', () => reports.length === 2);
    expect(reports[0]?.doneBytes).toBeLessThan(400 * MIB);
    expect(reports[1]).toMatchObject({ model: 'b.gguf', doneBytes: MIB });
  });

  test.each(ODD)('does not hinder others where it is %s', async (_, spoil, expected) => {
    const { follow, reports } = begin();
    const [odd, good] = [modelOf('a.gguf', 9 * MIB), await writeModel('b.gguf')];
    await spoil(odd.model.hostPath);
    follow(odd, good);
    await eventually('both reports', () => reports.length === 2);
    expect(reports[0]).toMatchObject({ model: 'a.gguf', ...expected });
    expect(reports[1]).toMatchObject({ model: 'b.gguf', doneBytes: 9 * MIB });
  });

  test('is read in its new version after it was replaced', async () => {
    const { follow, last, reports } = begin();
    const old = await writeModel('a.gguf');
    follow(old);
    await last();
    await rename((await writeModel('b.gguf', 5 * MIB)).model.hostPath, old.model.hostPath);
    follow(modelOf('a.gguf', 5 * MIB, { version: '2' }));
    await eventually('a second report', () => reports.length === 2);
    expect(reports[1]).toMatchObject({ doneBytes: 5 * MIB, totalBytes: 5 * MIB });
  });
});
