import { appendFile, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import type { SlotStatus, TimelineEntry } from '../../src/schema/status/slot-status.ts';
import { createEventFeed, TIMELINE_BYTES } from '../../src/files/timeline-files.ts';
import { createStatusFiles, createStatusRecords } from '../../src/files/status-files.ts';
import { SYSTEM_DISK } from '../../src/files/regular-file.ts';
import { embed, entry, img, status, writeReport } from './status-fixture.ts';

describe('status files and the event feed', () => {
  let root: string;
  let warnings: string[];
  let files: ReturnType<typeof createStatusFiles>;
  let statusDirectory: string;
  let timelineDirectory: string;
  const create = () =>
    createStatusFiles({
      statusDirectory,
      timelineDirectory,
      log: { info: () => undefined, warn: (_, message) => void warnings.push(message) },
    });
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-status-'));
    statusDirectory = join(root, 'status');
    timelineDirectory = join(root, 'timelines');
    warnings = [];
    files = create();
  });
  afterEach(async () => {
    await files.flush();
    await rm(root, { recursive: true, force: true });
  });
  const write = async (statuses: readonly SlotStatus[], entries: readonly TimelineEntry[] = []) =>
    await writeReport(files, statuses, entries);
  const log = { info: () => undefined, warn: (_: unknown, message: string): void => void warnings.push(message) };
  const feedOf = async (capacity = 2000) => await createEventFeed(timelineDirectory, log, capacity);

  test('writes a status only when it changed, and removes it together with its slot', async () => {
    await write([status(img, 0), status(embed, 0)]);
    const before = await stat(join(statusDirectory, 'img.json'));
    await write([status(img, 0), status(embed, 1)]);
    expect((await stat(join(statusDirectory, 'img.json'))).ino).toBe(before.ino);
    expect(JSON.parse(await readFile(join(statusDirectory, 'embed.json'), 'utf8'))).toEqual(status(embed, 1));
    await write([status(embed, 1)]);
    expect(await readdir(statusDirectory)).toEqual(['embed.json']);
  });

  const failures = [{ at: 5, kind: 'crash', reason: 'Crashed', message: 'It ended (exit code 139)' }] as const;
  const records = async () =>
    await createStatusRecords(statusDirectory, { info: () => undefined, warn: (_, message) => void warnings.push(message) }).read(
      AbortSignal.timeout(1000),
    );

  test('gives the next controller the failures that it wrote, and nothing before the first status', async () => {
    expect(await records()).toEqual(new Map());
    await write([{ ...status(img, 0), failures }, status(embed, 0)]);
    expect(await records()).toEqual(
      new Map([
        [img, { observedGeneration: 1, failures }],
        [embed, { observedGeneration: 1, failures: [] }],
      ]),
    );
    expect(warnings).toEqual([]);
  });

  test.each(['', 'null', '{"observedGeneration":1,"failures":[{}]}', '{"observedGeneration":"x"}'])(
    'leaves out a damaged status: %s',
    async (text) => {
      await write([
        { ...status(img, 0), failures },
        { ...status(embed, 0), failures },
      ]);
      await writeFile(join(statusDirectory, 'img.json'), text);
      expect([...(await records()).keys()]).toEqual([embed]);
      expect(warnings).toEqual([expect.stringContaining('its crashes are counted from zero')]);
    },
  );

  test('keeps what is recorded of failures when slots end with the service, and nothing else', async () => {
    await write([{ ...status(img, 0), failures }, status(embed, 0)]);
    files.leave();
    await write([]);
    expect(await readdir(statusDirectory)).toEqual(['img.json']);
  });

  test('finishes immediately with a report that contains nothing new', async () => {
    await write([]);
    await write([status(img, 0)]);
    await write([status(img, 0)]);
    await write([status(img, 1)]);
    expect(JSON.parse(await readFile(join(statusDirectory, 'img.json'), 'utf8'))).toEqual(status(img, 1));
  });

  test('writes only timelines if statuses are stored elsewhere', async () => {
    files = createStatusFiles({ statusDirectory: undefined, timelineDirectory, log: { info: () => undefined, warn: () => undefined } });
    await write([status(img, 0)]);
    await write([status(img, 1)], [entry(1)]);
    await write([]);
    expect(await readdir(root)).toEqual(['timelines']);
    expect((await feedOf()).last()).toBe(1);
  });

  test('removes statuses of slots that were deleted while the controller was not running', async () => {
    await mkdir(statusDirectory);
    await writeFile(join(statusDirectory, 'gone.json'), '{}');
    await write([status(img, 0)]);
    expect(await readdir(statusDirectory)).toEqual(['img.json']);
  });

  test('ends with the last of many concurrent reports, and writes every entry once and in order', async () => {
    for (let seq = 1; seq <= 500; seq++) files.write({ at: seq, statuses: [status(img, seq)], entries: [entry(seq)], refused: new Map() });
    await files.flush();
    expect(JSON.parse(await readFile(join(statusDirectory, 'img.json'), 'utf8'))).toMatchObject({ restarts: 500 });
    const feed = await feedOf();
    expect((await feed.timeline(img, 1000)).map(({ seq }) => seq)).toEqual(Array.from({ length: 500 }, (_, index) => index + 1));
  });

  test('does not throw if nothing can be written, logs that once, and continues when writing is possible again', async () => {
    await writeFile(statusDirectory, 'a file where the directory should be');
    await writeFile(timelineDirectory, 'and another');
    for (let pass = 1; pass <= 3; pass++) await write([status(img, pass)], [entry(pass)]);
    expect(warnings).toEqual([expect.stringContaining('it is tried again until it succeeds')]);
    await rm(statusDirectory);
    await rm(timelineDirectory);
    files.retry();
    await files.flush();
    expect(JSON.parse(await readFile(join(statusDirectory, 'img.json'), 'utf8'))).toMatchObject({ restarts: 3 });
    // Nothing is lost that could not be written at first.
    expect((await (await feedOf()).timeline(img, 10)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    await write([status(img, 4)], [entry(4)]);
    expect((await (await feedOf()).timeline(img, 10)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  });

  test('does not take the removal of a status for a sign that the disk can be written again', async () => {
    let isFull = false;
    const told: string[] = [];
    const tell = (_: unknown, message: string): void => void told.push(message);
    const failed = expect.stringContaining('Writing the status of slot "img" failed');
    const disk = {
      ...SYSTEM_DISK,
      open: async (...args: Parameters<typeof SYSTEM_DISK.open>) =>
        isFull ? Promise.reject(Object.assign(new Error('Full'), { code: 'ENOSPC' })) : SYSTEM_DISK.open(...args),
    };
    files = createStatusFiles({ statusDirectory, timelineDirectory, disk, log: { info: tell, warn: tell } });
    await write([status(img, 0), status(embed, 0)]);
    isFull = true;
    await write([status(img, 1), status(embed, 0)]);
    await write([status(embed, 0)]);
    expect(await readdir(statusDirectory)).toEqual(['embed.json']);
    expect(told).toEqual([failed]);
    isFull = false;
    await write([status(embed, 1)]);
    expect(told).toEqual([failed, expect.stringContaining('can be written again')]);
  });

  test('keeps the order of entries that come while a write fails', async () => {
    await write([], [entry(1)]);
    await rm(timelineDirectory, { recursive: true });
    await writeFile(timelineDirectory, 'a file where the directory should be');
    for (let seq = 2; seq <= 6; seq++) files.write({ at: seq, statuses: [], entries: [entry(seq)], refused: new Map() });
    await files.flush();
    await rm(timelineDirectory);
    files.retry();
    await files.flush();
    expect((await (await feedOf()).timeline(img, 10)).map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6]);
  });

  test('does not create the state directory again, and writes everything into the next one', async () => {
    await write([status(img, 1), status(embed, 1)], [entry(1)]);
    await rename(root, `${root}-moved`);
    await write([status(img, 2), status(embed, 1)], [entry(2)]);
    expect(await stat(root).catch(() => 'missing')).toBe('missing');
    await mkdir(root);
    files.renew();
    await files.flush();
    expect((await readdir(statusDirectory)).toSorted()).toEqual(['embed.json', 'img.json']);
    expect((await (await feedOf()).timeline(img, 10)).map(({ seq }) => seq)).toEqual([2]);
    await rm(`${root}-moved`, { recursive: true });
  });

  test('keeps the timelines of a limited number of deleted slots', async () => {
    const names = Array.from({ length: 70 }, (_, index) => SlotName.parse(`slot-${index}`));
    for (const [index, name] of names.entries()) await write([status(img, 0), status(name, 0)], [entry(index + 1, name)]);
    await write([status(img, 0)]);
    const kept = await readdir(timelineDirectory);
    expect(kept.length).toBeLessThanOrEqual(51);
    expect(kept).toContain('slot-69.jsonl');
    expect(kept).not.toContain('slot-0.jsonl');
    expect((await (await feedOf()).timeline(SlotName.parse('slot-69'), 10)).map(({ seq }) => seq)).toEqual([70]);
    // A slot that is present is never among them, however long ago something happened to it.
    await utimes(join(timelineDirectory, 'slot-69.jsonl'), 1, 1);
    await write([status(img, 0), status(SlotName.parse('slot-69'), 0)]);
    await write([status(SlotName.parse('slot-69'), 0)]);
    expect(await readdir(timelineDirectory)).toContain('slot-69.jsonl');
  });

  test('limits a timeline to two files', async () => {
    const long = 'x'.repeat(TIMELINE_BYTES / 8);
    for (let seq = 1; seq <= 40; seq++) await write([], [entry(seq, img, long)]);
    expect((await readdir(timelineDirectory)).toSorted()).toEqual(['img.jsonl', 'img.jsonl.1']);
    for (const file of await readdir(timelineDirectory))
      expect((await stat(join(timelineDirectory, file))).size).toBeLessThanOrEqual(TIMELINE_BYTES);
    const kept = await (await feedOf()).timeline(img, 100);
    expect(kept.at(-1)?.seq).toBe(40);
    expect(kept.map(({ seq }) => seq)).toEqual(Array.from({ length: kept.length }, (_, index) => 41 - kept.length + index));
    expect((await (await feedOf()).timeline(img, 2)).map(({ seq }) => seq)).toEqual([39, 40]);
    expect(await (await feedOf()).timeline(img, 0)).toEqual([]);
  });

  test('continues sequence numbers after a restart, skips damaged lines, and does not append to an incomplete line', async () => {
    await write([], [entry(1), entry(2, embed), { ...entry(3), from: 'ready', to: 'serving', cause: 'a request' }]);
    await appendFile(join(timelineDirectory, 'img.jsonl'), 'garbage\n{"seq":"9"}\n{"seq":99,"at":1,"slot":"img","ki');
    await writeFile(join(timelineDirectory, '..jsonl'), '{}');
    files = create();
    expect((await feedOf()).last()).toBe(3);
    await write([], [entry(4)]);
    const feed = await feedOf();
    expect(feed.last()).toBe(4);
    expect(feed.since(0)).toEqual({
      entries: [entry(1), entry(2, embed), { ...entry(3), from: 'ready', to: 'serving', cause: 'a request' }, entry(4)],
      gap: false,
    });
    expect((await feed.timeline(img, 10)).map(({ seq }) => seq)).toEqual([1, 3, 4]);
  });

  test('the feed notifies listeners, holds a limited number of entries, and reports a gap', async () => {
    const feed = await feedOf(3);
    const heard: number[] = [];
    const stop = feed.subscribe(({ seq }) => heard.push(seq));
    expect(feed.since(0)).toEqual({ entries: [], gap: false });
    feed.write({ at: 1, statuses: [], entries: [entry(1), entry(2)], refused: new Map() });
    expect(feed.since(1)).toEqual({ entries: [entry(2)], gap: false });
    feed.write({ at: 2, statuses: [], entries: [entry(3), entry(4)], refused: new Map() });
    stop();
    feed.write({ at: 3, statuses: [], entries: [entry(5)], refused: new Map() });
    expect(heard).toEqual([1, 2, 3, 4]);
    expect(feed.last()).toBe(5);
    expect(feed.since(2)).toEqual({ entries: [entry(3), entry(4), entry(5)], gap: false });
    expect(feed.since(1)).toEqual({ entries: [entry(3), entry(4), entry(5)], gap: true });
    expect(feed.since(5)).toEqual({ entries: [], gap: false });
    expect(feed.since(77)).toMatchObject({ gap: true });
    expect(await feed.timeline(img, 2)).toEqual([entry(4), entry(5)]);
  });
});
