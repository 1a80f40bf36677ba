/** What is said of statuses and timelines that are there and cannot be read: nothing is taken for absent. */
import { appendFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SYSTEM_DISK, type Disk } from '../../src/files/regular-file.ts';
import { createEventFeed, removeOldTimelines } from '../../src/files/timeline-files.ts';
import { createStatusFiles, readEarlierStatuses } from '../../src/files/status-files.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { embed, entry, img, status, writeReport } from './status-fixture.ts';

describe('statuses and timelines that cannot be read', () => {
  let root: string;
  let statusDirectory: string;
  let timelineDirectory: string;
  let warnings: string[];
  let files: ReturnType<typeof createStatusFiles>;
  const log = { info: () => undefined, warn: (_: unknown, message: string): void => void warnings.push(message) };
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-unreadable-'));
    statusDirectory = join(root, 'status');
    timelineDirectory = join(root, 'timelines');
    warnings = [];
    files = createStatusFiles({ statusDirectory, timelineDirectory, log });
  });
  afterEach(async () => await rm(root, { recursive: true, force: true }));
  const feedOf = async (disk = SYSTEM_DISK) => await createEventFeed(timelineDirectory, log, undefined, disk);

  /** A disk that refuses to open these files so many times. */
  const refusing = (isRefused: (path: string) => boolean, times = Number.POSITIVE_INFINITY): Disk => {
    let left = times;
    return {
      ...SYSTEM_DISK,
      async open(path, ...rest) {
        if (!isRefused(String(path)) || left <= 0) return await SYSTEM_DISK.open(path, ...rest);
        left -= 1;
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      },
    };
  };

  test('numbers go on above those of timelines that cannot be read, and clients learn that they missed entries', async () => {
    await writeReport(files, [], [entry(1), entry(2, embed), entry(3)]);
    const refused = await feedOf(refusing((path) => path.includes('img')));
    expect(refused.last()).toBeGreaterThan(3);
    expect(warnings).toEqual([expect.stringContaining('cannot be read')]);
    for (const seen of [0, 2, 3]) expect(refused.since(seen)).toMatchObject({ entries: [], gap: true });
    await expect(refused.timeline(img, 10)).rejects.toThrow('EMFILE');
    const next = refused.last() + 1;
    await writeReport(files, [], [entry(next)]);
    const feed = await feedOf();
    expect(feed.last()).toBe(next);
    expect((await feed.timeline(img, 10)).map(({ seq }) => seq)).toEqual([1, 3, next]);
  });

  test('a timeline that is no file, or has damaged bytes, does not hide the others', async () => {
    await writeReport(files, [], [entry(1), entry(2, embed)]);
    await appendFile(join(timelineDirectory, 'img.jsonl'), Buffer.from([0xff, 0xfe, 0x0a]));
    await mkdir(join(timelineDirectory, 'odd.jsonl'));
    expect((await feedOf()).since(0)).toEqual({ entries: [entry(1), entry(2, embed)], gap: false });
    expect(warnings).toEqual([]);
  });

  test('removes no timeline whose age cannot be read', async () => {
    const disk: Disk = { ...SYSTEM_DISK };
    Object.assign(disk, { stat: () => Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' })) });
    const names = Array.from({ length: 60 }, (_, index) => SlotName.parse(`slot-${index}`));
    for (const [index, name] of names.entries()) await writeReport(files, [status(img, 0), status(name, 0)], [entry(index + 1, name)]);
    const before = await readdir(timelineDirectory);
    await removeOldTimelines(timelineDirectory, () => false, disk);
    expect(await readdir(timelineDirectory)).toEqual(before);
  });

  test('what an earlier run published is read again after an error, and named where that does not help', async () => {
    await writeReport(files, [status(img, 0), status(embed, 0)]);
    const all = await readEarlierStatuses(statusDirectory, log);
    expect([...all.keys()]).toEqual([embed, img]);
    expect(
      await readEarlierStatuses(
        statusDirectory,
        log,
        refusing((path) => path.endsWith('img.json'), 2),
      ),
    ).toEqual(all);
    expect(warnings).toEqual([]);
    const some = await readEarlierStatuses(
      statusDirectory,
      log,
      refusing((path) => path.endsWith('img.json')),
    );
    expect([...some.keys()]).toEqual([embed]);
    expect(warnings).toEqual([expect.stringContaining('cannot be read, so the times in them begin anew')]);
  });
});
