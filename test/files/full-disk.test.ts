/** What is said of a full disk, and what is left after it. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createStatusFiles } from '../../src/files/status-files.ts';
import { createEventFeed } from '../../src/files/timeline-files.ts';
import { explainWriteError } from '../../src/files/write-file.ts';
import { createTomlDirectory } from '../../src/host/slots/toml-directory.ts';
import { createTomlEditor } from '../../src/host/slots/toml-editor.ts';
import { describeWithMounts, mountSmallDisk, type SmallDisk } from '../support/require/require-mounts.ts';
import { embed, entry, img, status, writeReport } from './status-fixture.ts';

describeWithMounts('a full disk', () => {
  let disk: SmallDisk;
  let said: string[];
  const record = (_fields: object, message: string) => void said.push(message);
  const log = { info: record, warn: record };
  /** Leaves as many bytes as a page has, or none. */
  const fill = async (left: 'a page' | 'nothing'): Promise<void> => {
    const filler = join(disk.path, 'filler');
    const chunk = Buffer.alloc(4096, 'x');
    const all: Buffer[] = [];
    for (;;) {
      all.push(chunk);
      try {
        await writeFile(filler, Buffer.concat(all));
      } catch {
        break;
      }
    }
    await writeFile(filler, Buffer.concat(all.slice(left === 'nothing' ? 1 : 2)));
  };
  beforeEach(() => {
    disk = mountSmallDisk(1);
    said = [];
  });
  afterEach(() => disk.dispose());

  test('is named once with its path and what to do, and "again" is said once a write has succeeded', async () => {
    const statusDirectory = join(disk.path, 'status');
    const files = createStatusFiles({ statusDirectory, timelineDirectory: join(disk.path, 'timelines'), log });
    await writeReport(files, [status(img, 0), status(embed, 0)]);
    await fill('nothing');
    for (let count = 1; count <= 3; count += 1)
      await writeReport(files, [status(img, count), status(embed, count)], [entry(count, img, 'x'.repeat(5000))]);
    // A removal succeeds on a full disk, and shows nothing.
    await writeReport(files, [status(img, 3)]);
    expect(said).toEqual([
      `Writing the status of slot "img" failed: the disk of "${join(statusDirectory, 'img.json')}" is full (0 B free); free disk space; it is tried again until it succeeds`,
    ]);
    await rm(join(disk.path, 'filler'));
    files.retry();
    await files.flush();
    expect(said.slice(1)).toEqual([`"${join(disk.path, 'timelines')}" can be written again`]);
  });

  test('is not said to have room because a status could be removed', async () => {
    const files = createStatusFiles({ statusDirectory: join(disk.path, 'status'), timelineDirectory: join(disk.path, 'timelines'), log });
    await writeReport(files, [status(img, 0)]);
    await fill('nothing');
    await writeReport(files, [status(img, 1)]);
    await rm(join(disk.path, 'filler'));
    await writeReport(files, []);
    expect(said).toHaveLength(1);
    await writeReport(files, [status(img, 2)]);
    expect(said.slice(1)).toEqual([expect.stringContaining('can be written again')]);
  });

  test('leaves a timeline that has each entry once and in order', async () => {
    const timelineDirectory = join(disk.path, 'timelines');
    const files = createStatusFiles({ statusDirectory: undefined, timelineDirectory, log });
    await writeReport(files, [], [entry(1)]);
    await fill('a page');
    // The first of these entries would fit.
    await writeReport(files, [], [entry(2, img, 'y'.repeat(2000)), entry(3, img, 'z'.repeat(9000))]);
    await writeReport(files, [], [entry(4)]);
    await rm(join(disk.path, 'filler'));
    await writeReport(files, [], [entry(5)]);
    expect((await (await createEventFeed(timelineDirectory, log)).timeline(img, 100)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect((await readFile(join(timelineDirectory, 'img.jsonl'), 'utf8')).trimEnd().split('\n')).toHaveLength(5);
  });

  test('does not make generations decrease, and an edit says what to free', async () => {
    const config = await mkdtemp(join(tmpdir(), 'svc-config-'));
    const directories = { directory: config, lastGoodDirectory: join(disk.path, 'slots') };
    const source = createTomlDirectory({ ...directories, quietPeriodMs: 0, log });
    const read = async (from = source): Promise<number | undefined> => {
      const state = await from.read(new AbortController().signal);
      return state.ok ? state.value.slots.get(img)?.generation : undefined;
    };
    const save = async (model: string) => await writeFile(join(config, 'img.toml'), `[model]\ndefault = "${model}.gguf"\n`);
    await save('a');
    await read();
    await fill('nothing');
    for (const model of ['b', 'c', 'd']) {
      await save(model);
      await read();
    }
    expect(said).toEqual([
      expect.stringMatching(/^Writing the last good spec of slot "img" failed: the disk of ".*img.json" is full \(0 B free\)/),
    ]);
    await rm(join(disk.path, 'filler'));
    expect(await read()).toBe(4);
    expect(said.slice(1)).toEqual([`"${directories.lastGoodDirectory}" can be written again`]);
    expect(await read(createTomlDirectory({ ...directories, quietPeriodMs: 0, log }))).toBe(4);
    await rm(config, { recursive: true });

    const slots = join(disk.path, 'config');
    await mkdir(slots);
    await fill('nothing');
    const edited = await createTomlEditor({ directory: slots }).put(img, { model: { default: 'a.gguf' } });
    expect(edited).toMatchObject({
      kind: 'failed',
      message: expect.stringMatching(/the disk of ".*img.toml" is full \(0 B free\); free disk space$/),
    });
  });
});

test.each([
  ['EDQUOT', 'the disk quota for "/x/y" is used up; free disk space or raise the quota'],
  ['EFBIG', '"/x/y" is larger than this process may write; raise "LimitFSIZE" or "ulimit -f"'],
  ['EIO', 'it broke'],
])('%s is explained', (code, message) => {
  expect(explainWriteError('/x/y', Object.assign(new Error('it broke'), { code }))).toBe(message);
});
