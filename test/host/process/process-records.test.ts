/** The records of processes: what is known holds while their directory is moved away, at whatever moment, and a removal may be repeated. */
import { mkdir, mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createProcessRecords, type ProcessRecord } from '../../../src/host/process/process-records.ts';
import { Revision, SlotName } from '../../../src/schema/words/names.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const ROUNDS = 60;

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-records-'));
});
afterEach(async () => rm(dir, { recursive: true }));

const recordOf = (name: string): ProcessRecord => ({
  name,
  slot: SlotName.parse('primary'),
  revision: Revision.parse('0123456789ab'),
  generation: 1,
  pid: 4_000_000,
  start: '1',
  bootId: 'boot',
  startedAt: 0,
  argv: ['server'],
  program: ['/bin/server'],
  env: {},
  port: { host: 8080, container: 8080 },
});

test('a directory that is moved while it is read loses no record', async () => {
  const state = join(dir, 'state');
  const moved = join(dir, 'moved');
  await mkdir(state);
  const records = createProcessRecords(join(state, 'run'));
  for (const name of NAMES) await records.write(recordOf(name));
  const namesRead = async () => (await records.readAll()).records.map(({ name }) => name);
  for (let round = 0; round < ROUNDS; round += 1) {
    const during = namesRead();
    for (let turns = 0; turns < round; turns += 1) await turn();
    await rename(state, moved);
    expect([round, await during, await namesRead()]).toEqual([round, NAMES, NAMES]);
    await rename(moved, state);
    expect([round, await namesRead()]).toEqual([round, NAMES]);
  }
});

test.each([false, true])(
  'a record is removed whether or not an exit was recorded (%s), and a second removal does no harm',
  async (ended) => {
    const records = createProcessRecords(join(dir, 'run'));
    await records.write(recordOf('a'));
    if (ended) await records.writeExit(recordOf('a'), { code: 1, at: 1 });
    await records.remove('a');
    await records.remove('a');
    expect(await readdir(join(dir, 'run'))).toEqual([]);
  },
);

test('a damaged file is a loss when it is found, and no longer in later reads', async () => {
  const run = join(dir, 'run');
  const records = createProcessRecords(run);
  await records.write(recordOf('a'));
  const read = async () => {
    const { records: found, lost } = await records.readAll();
    return [found.map(({ name }) => name), lost];
  };
  expect(await read()).toEqual([['a'], false]);
  await writeFile(join(run, 'b.json'), 'damaged');
  expect([await read(), await read()]).toEqual([
    [['a'], true],
    [['a'], false],
  ]);
  await writeFile(join(run, 'c.json'), 'damaged');
  expect([await read(), await read()]).toEqual([
    [['a'], true],
    [['a'], false],
  ]);
});

test('the stamp of the records is known once they have settled, and differs after each write and removal', async () => {
  const run = join(dir, 'run');
  const records = createProcessRecords(run);
  expect(await records.stamp()).toBe(undefined);
  /** What is written now must not look like what was written a moment ago. */
  const settle = async (secondsAgo: number) => {
    expect(await records.stamp()).toBe(undefined);
    const at = new Date(Date.now() - secondsAgo * 1000);
    await utimes(run, at, at);
    return await records.stamp();
  };
  await records.write(recordOf('a'));
  const first = await settle(60);
  expect(first).toEqual(expect.any(String));
  expect(await records.stamp()).toBe(first);
  await records.writeExit(recordOf('a'), { code: 1, at: 1 });
  const second = await settle(50);
  await records.remove('a');
  expect(new Set([first, second, await settle(40)]).size).toBe(3);
});
