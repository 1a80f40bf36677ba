/** Captures and their files: when they end, what is left, and how long. */
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { isExpired } from '../../src/files/captures.ts';
import { SYSTEM_DISK, type Disk } from '../../src/files/regular-file.ts';
import { openSealed } from '../../src/files/sealed-lines.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { eventually } from '../support/eventually.ts';
import { openCaptures } from '../support/open-captures.ts';
import { createWorldClock } from '../support/simulation/world-clock.ts';

const SLOT = SlotName.parse('primary');
const WISH = { slot: SLOT, requests: 10, seconds: 300 };
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let cleanUp: (() => Promise<void>) | undefined;
afterEach(async () => await cleanUp?.());

type Options = NonNullable<Parameters<typeof openCaptures>[0]>;

async function opened(options: Options = {}) {
  const clock = createWorldClock();
  const files = await openCaptures({ clock, ...options });
  const captures = files.open();
  cleanUp = files.remove;
  return { ...files, clock, captures };
}

async function started(captures: Awaited<ReturnType<typeof opened>>['captures'], wish: Parameters<typeof captures.start>[0] = WISH) {
  const capture = await captures.start(wish);
  if ('problem' in capture) throw new Error(capture.problem);
  return capture;
}

test('a capture takes its requests and no others, and only the key opens its file', async () => {
  const { captures, directory, rules } = await opened();
  const { id, key } = await started(captures, { ...WISH, requests: 2 });
  const other = await started(captures, { caller: 'anyone', requests: 10, seconds: 300 });
  expect(rules()).toMatchObject([
    { id, slot: SLOT },
    { id: other.id, caller: 'anyone' },
  ]);
  captures.take([id], 'one');
  captures.take([other.id], 'no');
  captures.take([id, other.id], 'two');
  captures.take([id], 'too late');
  expect(rules()).toMatchObject([{ id: other.id }]);
  const file = await captures.stop(id).then(async () => await readFile(join(directory, `${id}.svcc`), 'utf8'));
  expect(openSealed(file, key)).toEqual({ lines: ['one', 'two'], why: 'it has all of its requests', problem: undefined });
  expect(openSealed(file, other.key).lines).toEqual([]);
  expect(file).not.toContain(key);
  expect((await stat(join(directory, `${id}.svcc`))).mode & 0o777).toBe(0o600);
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
});

test('four run at once, also if they are started together', async () => {
  const { captures } = await opened();
  const all = await Promise.all(Array.from({ length: 6 }, () => captures.start(WISH)));
  const [first] = all.filter((capture) => 'id' in capture);
  expect(all.filter((capture) => 'problem' in capture)).toEqual(
    Array.from({ length: 2 }, () => ({ problem: expect.stringContaining('4 captures run') })),
  );
  expect(captures.active()).toBe(4);
  await captures.stop(first?.id ?? '');
  expect(await captures.start(WISH)).toHaveProperty('key');
});

test('a capture ends with its time, whatever the wall clock shows', async () => {
  const { captures, clock } = await opened();
  const { id } = await started(captures);
  clock.stepWall(-HOUR / 2);
  await clock.advance(5 * 60_000 - 1);
  clock.stepWall(HOUR / 2);
  expect(captures.active()).toBe(1);
  await clock.advance(1);
  expect(await captures.list()).toMatchObject([{ id, active: false, ended_by: 'its time is over', requests: 0 }]);
});

test('a capture ends before its file is too large', async () => {
  const { captures, directory } = await opened();
  const { id, key } = await started(captures, { ...WISH, requests: 1000 });
  const large = 'x'.repeat(2 ** 20);
  for (let count = 0; captures.active() > 0; count += 1) captures.take([id], large);
  await captures.stop(id);
  const file = await readFile(join(directory, `${id}.svcc`), 'utf8');
  expect(file.length).toBeGreaterThan(60 * 2 ** 20);
  expect(file.length).toBeLessThan(64 * 2 ** 20 + 10_000);
  expect(openSealed(file, key)).toMatchObject({ why: 'it would be larger than 64 MiB', problem: undefined });
});

test.each([
  ['at once', 0, false],
  ['after less than a day', DAY - 1, false],
  ['after a day', DAY, true],
  ['after a year', 365 * DAY, true],
  ['by a clock that was set back by half an hour', -HOUR / 2, false],
  ['by a clock that was set back by a year', -365 * DAY, true],
])('a file expires: %s', (_when, ageMs, expired) => {
  expect(isExpired(DAY * 1000, DAY * 1000 + ageMs)).toBe(expired);
});

test('a file is deleted after a day, by itself, and what runs is not', async () => {
  const { captures, directory, clock } = await opened({ sweepMs: 10 });
  const first = await started(captures);
  await captures.stop(first.id);
  await clock.advance(DAY - 1);
  const second = await started(captures);
  expect((await captures.list()).map(({ id }) => id)).toEqual([second.id, first.id]);
  clock.stepWall(1);
  await eventually('the first file is gone', async () => (await readdir(directory)).join() === `${second.id}.svcc`);
  clock.stepWall(-365 * DAY);
  expect(await captures.list()).toMatchObject([{ id: second.id, active: true }]);
});

test('after a restart nothing runs, files are listed until they expire, and what a crash left of one is deleted', async () => {
  const { captures, open, directory, clock } = await opened();
  const { id, key } = await started(captures, { ...WISH, caller: 'anyone' });
  captures.take([id], 'one');
  await captures.close();
  const started_at = new Date(clock.wallNow()).toISOString();
  await writeFile(join(directory, '0123456789abcdef.svcc'), '{"id":"01234');
  await writeFile(join(directory, 'notes.txt'), 'not a capture');
  const again = open();
  expect(again.active()).toBe(0);
  const listed = { id, caller: 'anyone', slot: SLOT, active: false, ended_by: null, requests: null, started_at };
  expect(await again.list()).toMatchObject([listed]);
  expect((await readdir(directory)).toSorted()).toEqual([`${id}.svcc`, 'notes.txt']);
  const file = await again.read(id);
  expect(openSealed(file ?? '', key)).toEqual({ lines: ['one'], why: 'the service has stopped', problem: undefined });
  await clock.advance(DAY);
  expect(await again.list()).toEqual([]);
  expect(await readdir(directory)).toEqual(['notes.txt']);
  await again.close();
});

test('what runs can be read up to there, stopped twice, and deleted', async () => {
  const { captures, directory, rules } = await opened();
  const { id, key } = await started(captures);
  captures.take([id], 'one');
  await eventually('it is written', async () => openSealed((await captures.read(id)) ?? '', key).lines.length === 1);
  expect(openSealed((await captures.read(id)) ?? '', key).problem).toContain('It has no end');
  expect(await captures.stop(id)).toMatchObject({ active: false, ended_by: 'it was stopped', requests: 1 });
  expect(await captures.stop(id)).toMatchObject({ ended_by: 'it was stopped' });
  const running = await started(captures);
  expect([await captures.remove(id), await captures.remove(running.id), await captures.remove(id)]).toEqual([true, true, false]);
  expect([await readdir(directory), rules(), captures.active()]).toEqual([[], [], 0]);
});

test.each(['0123456789abcdef', '../other', '', '0123456789ABCDEF', 'a\u0000'])('"%s" is no capture', async (id) => {
  const { captures, directory } = await opened();
  await started(captures);
  for (const name of ['../other', '0123456789ABCDEF']) await writeFile(join(directory, `${name}.svcc`), '{}\n');
  expect([await captures.stop(id), await captures.read(id), await captures.remove(id)]).toEqual([undefined, undefined, false]);
});

test('what is no file of a capture does not hide the others, and stays', async () => {
  const { captures, directory } = await opened();
  const { id } = await started(captures);
  const of = (name: string): string => join(directory, `${name}.svcc`);
  const [pipe, link, folder] = ['000000000000000a', '000000000000000b', '000000000000000c'];
  execFileSync('mkfifo', [of(pipe ?? '')]);
  await writeFile(join(directory, '../target'), '{}\n');
  await symlink('../target', of(link ?? ''));
  await mkdir(of(folder ?? ''));
  expect((await captures.list()).map((capture) => capture.id)).toEqual([id]);
  for (const other of [pipe, link, folder]) expect(await captures.read(other ?? '')).toBeUndefined();
  expect(await readdir(directory)).toHaveLength(4);
});

/** Takes so many writes, and then none. */
function fullDisk(writes: number): Disk {
  let left = writes;
  return {
    ...SYSTEM_DISK,
    async open(...opening) {
      const handle = await SYSTEM_DISK.open(...opening);
      const append = handle.appendFile.bind(handle);
      handle.appendFile = async (...data) => {
        left -= 1;
        if (left < 0) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
        await append(...data);
      };
      return handle;
    },
  };
}

test('a disk that is full ends the capture with the reason, and what was written can be read', async () => {
  const { captures, rules, said, directory } = await opened({ disk: fullDisk(2) });
  const { id, key } = await started(captures);
  captures.take([id], 'one');
  captures.take([id], 'two');
  captures.take([id], 'three');
  await eventually('it has ended', () => captures.active() === 0);
  expect(rules()).toEqual([]);
  expect(await captures.stop(id)).toMatchObject({ ended_by: expect.stringMatching(/could not be written.*is full/) });
  expect(said.join('\n')).toContain('is not complete');
  expect(openSealed(await readFile(join(directory, `${id}.svcc`), 'utf8'), key)).toMatchObject({
    lines: ['one'],
    problem: expect.stringContaining('could not write'),
  });
});

test('a capture whose file cannot be created is not started, and leaves nothing', async () => {
  const { captures, directory, rules } = await opened({ disk: fullDisk(0) });
  expect(await captures.start(WISH)).toEqual({ problem: expect.stringMatching(/no file: the disk of .* is full/) });
  expect([await readdir(directory), rules(), captures.active()]).toEqual([[], [], 0]);
});

test('a file that was cut is noticed by its reader', async () => {
  const { captures, directory } = await opened();
  const { id, key } = await started(captures);
  captures.take([id], 'one');
  await captures.stop(id);
  const path = join(directory, `${id}.svcc`);
  await truncate(path, (await stat(path)).size - 200);
  expect(openSealed(await readFile(path, 'utf8'), key).problem).toBeDefined();
});
