/** A host that loses power at any step of any write, and files that a disk has lost. */
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createStatusFiles, createStatusRecords } from '../../../src/files/status-files.ts';
import { SYSTEM_DISK } from '../../../src/files/regular-file.ts';
import { createTomlDirectory } from '../../../src/host/slots/toml-directory.ts';
import { createTomlEditor } from '../../../src/host/slots/toml-editor.ts';
import type { DesiredSlot } from '../../../src/reconciler/ports.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
import { createLosingDisk, restore, type Remains } from '../../support/losing-disk.ts';
import { slotText } from './slot-directory.ts';

const primary = SlotName.parse('primary');
const silent = { info: () => undefined, warn: () => undefined };
const signal = new AbortController().signal;

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-power-'));
});
afterEach(async () => await rm(root, { recursive: true, force: true }));

/** What a controller that starts in this directory takes for the spec of the slot. */
async function readSlot(home: string, disk = {}): Promise<DesiredSlot | undefined> {
  const source = createTomlDirectory({
    directory: join(home, 'config'),
    lastGoodDirectory: join(home, 'state/slots'),
    records: createStatusRecords(join(home, 'state/status'), silent),
    quietPeriodMs: 0,
    log: silent,
    ...disk,
  });
  const read = await source.read(signal);
  if (!read.ok) throw new Error(read.failure.message);
  return read.value.slots.get(primary);
}

describe('the last good spec', () => {
  test('and its generation survive a power failure at every step, once anybody has learned of them', async () => {
    interface Moment {
      readonly remains: Remains;
      /** Generation and model that `read` has returned by then. */
      readonly told: number;
      readonly models: readonly string[];
    }
    const moments: Moment[] = [];
    const models: string[] = [];
    let told = 0;
    const { disk, remains } = createLosingDisk(() => {
      for (const each of remains()) moments.push({ remains: each, told, models: models.slice(Math.max(0, told - 1)) });
    });
    const home = join(root, 'home');
    await mkdir(join(home, 'config'), { recursive: true });
    await mkdir(join(home, 'state'));
    for (const model of ['a.gguf', 'b.gguf', 'c.gguf']) {
      models.push(model);
      await writeFile(join(home, 'config/primary.toml'), slotText(model));
      const slot = await readSlot(home, { disk });
      told = slot?.generation ?? 0;
    }
    expect(told).toBe(3);
    for (const each of remains()) moments.push({ remains: each, told, models: ['c.gguf'] });
    expect(moments.length).toBeGreaterThan(20);
    for (const [index, moment] of moments.entries()) {
      const after = join(root, String(index));
      await mkdir(join(after, 'config'), { recursive: true });
      await restore(moment.remains, home, after);
      // Somebody is in the middle of an edit, so only the stored spec tells what to run.
      await writeFile(join(after, 'config/primary.toml'), '[model\n');
      const slot = await readSlot(after);
      if (moment.told === 0) continue;
      expect(moment.models).toContain(slot?.spec.model.default);
      expect(slot?.generation).toBeGreaterThanOrEqual(moment.told);
    }
  });

  const DAMAGES: Readonly<Record<string, (file: string) => Promise<void>>> = {
    empty: async (file) => await truncate(file, 0),
    torn: async (file) => await truncate(file, Math.floor((await readFile(file)).length / 2)),
    'full of zeros': async (file) => await writeFile(file, Buffer.alloc((await readFile(file)).length)),
  };
  const edit = async (count: number): Promise<void> => {
    await mkdir(join(root, 'config'), { recursive: true });
    await mkdir(join(root, 'state'), { recursive: true });
    for (let number = 1; number <= count; number += 1) {
      await writeFile(join(root, 'config/primary.toml'), slotText(`m${number}.gguf`));
      await readSlot(root);
    }
  };

  test.each(Object.keys(DAMAGES))('survives if one of its files is %s, and both are whole afterwards', async (how) => {
    await edit(8);
    await writeFile(join(root, 'config/primary.toml'), '[model\n');
    const file = join(root, 'state/slots/primary.json');
    for (const damaged of [file, `${file}~`, file]) {
      await DAMAGES[how]?.(damaged);
      expect(await readSlot(root)).toMatchObject({ generation: 8, spec: { model: { default: 'm8.gguf' } } });
      expect(await readFile(damaged, 'utf8')).toContain('m8.gguf');
    }
  });

  test.each(Object.keys(DAMAGES))('has a greater generation than its status if both of its files are %s', async (how) => {
    await edit(8);
    await mkdir(join(root, 'state/status'));
    await writeFile(join(root, 'state/status/primary.json'), '{"observedGeneration":8}');
    for (const name of ['primary.json', 'primary.json~']) await DAMAGES[how]?.(join(root, 'state/slots', name));
    expect((await readSlot(root))?.generation).toBe(9);
  });
});

test('failures that count towards a crash loop survive a power failure at every step after they were written', async () => {
  const failure = { at: 5, kind: 'crash', reason: 'Crashed', message: 'It ended' } as const;
  const status = (count: number): SlotStatus => ({
    name: primary,
    state: 'offline',
    conditions: [],
    observedGeneration: 1,
    provider: 'gguf',
    backend: 'cpu',
    model: ModelId.parse('a.gguf'),
    restarts: count,
    since: 1,
    failures: Array.from({ length: count }, (_each, index) => ({ ...failure, at: index })),
  });
  const moments: { readonly remains: Remains; readonly written: number }[] = [];
  let written = 0;
  const { disk, remains } = createLosingDisk(() => {
    for (const each of remains()) moments.push({ remains: each, written });
  });
  const home = join(root, 'home');
  await mkdir(home);
  const files = createStatusFiles({ statusDirectory: join(home, 'status'), timelineDirectory: join(home, 'timelines'), log: silent, disk });
  for (let count = 1; count <= 4; count += 1) {
    files.write({ at: count, statuses: [status(count)], entries: [], refused: new Map() });
    await files.flush();
    written = count;
  }
  for (const each of remains()) moments.push({ remains: each, written });
  for (const [index, moment] of moments.entries()) {
    const after = join(root, String(index));
    await restore(moment.remains, home, after);
    const failures = (await createStatusRecords(join(after, 'status'), silent).read(signal)).get(primary)?.failures ?? [];
    expect(failures.length).toBeGreaterThanOrEqual(moment.written);
  }
});

test('what could not be stored is stored with a later read, so that the generation does not decrease with the next start', async () => {
  await mkdir(join(root, 'config'));
  const source = createTomlDirectory({
    directory: join(root, 'config'),
    lastGoodDirectory: join(root, 'state/slots'),
    quietPeriodMs: 0,
    log: silent,
  });
  for (let number = 1; number <= 8; number += 1) {
    await writeFile(join(root, 'config/primary.toml'), slotText(`m${number}.gguf`));
    await source.read(signal);
  }
  // The state directory comes back.
  await mkdir(join(root, 'state'));
  await source.read(signal);
  expect(await readSlot(root)).toMatchObject({ generation: 8 });
});

test('recorded failures keep the spec that failed, and a file that the system cannot read is not taken for a damaged one', async () => {
  const failures = [{ at: 5, kind: 'crash', reason: 'Crashed', message: 'It ended' }];
  await writeFile(join(root, 'primary.json'), JSON.stringify({ observedGeneration: 1, failures, failedSpec: '0123456789abcdef' }));
  expect((await createStatusRecords(root, silent).read(signal)).get(primary)).toMatchObject({ failures, failedSpec: '0123456789abcdef' });
  const exhausted = { ...SYSTEM_DISK, open: () => Promise.reject(Object.assign(new Error('EMFILE'), { code: 'EMFILE' })) };
  await expect(createStatusRecords(root, silent, exhausted).read(signal)).rejects.toThrow('EMFILE');
});

test('an edit that was answered survives a power failure, of a new file and of one that was there', async () => {
  const directory = join(root, 'config');
  const file = join(directory, 'primary.toml');
  const { disk, remains } = createLosingDisk(() => undefined);
  const editor = createTomlEditor({ directory, disk });
  for (const model of ['a.gguf', 'b.gguf', 'c.gguf']) {
    expect(await editor.put(primary, { model: { default: model } })).toMatchObject({ kind: 'done' });
    for (const each of remains()) expect(each.get(file)).toContain(model);
  }
});
