/** Usage in a real file of SQLite, with everything that can be wrong with it. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { GROUPINGS, type Grouping } from '../../src/usage/decide/usage-rows.ts';
import { UsageStore } from '../../src/usage/usage-store.ts';
import { rowOf } from './row-of.ts';
import { describeWithMounts, mountSmallDisk, type SmallDisk } from '../support/require/require-mounts.ts';

const ALL = { from: 0, to: 1_000_000, most: 100 };

let directory: string;
let file: string;
let store: UsageStore;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-usage-'));
  file = path.join(directory, 'usage.sqlite');
  store = new UsageStore(file);
});
afterEach(async () => {
  store.close();
  await rm(directory, { recursive: true, force: true });
});

const read = (by: readonly Grouping[] = [], range: object = {}) => store.read({ ...ALL, by, ...range });
const requests = (): number | string => {
  const answer = read();
  return answer.ok ? (answer.value[0]?.requests ?? 0) : answer.fault;
};

describe('the store of usage', () => {
  test('adds up rows of one hour, caller, slot and model', () => {
    store.write([rowOf(50, { input: 5, cached: 2 }), rowOf(51)]);
    store.write([rowOf(50, { input: 3, busyMs: 10 })]);
    expect(read(['hour', 'token', 'slot', 'model'])).toEqual({
      ok: true,
      value: [{ ...rowOf(50), requests: 2, input: 8, cached: 2, busyMs: 10 }, { ...rowOf(51) }],
    });
    expect(read(['day'])).toMatchObject({ value: [{ hour: 48, requests: 3, input: 8 }] });
    expect(read()).toMatchObject({ value: [{ requests: 3 }] });
  });

  test('sums of any range are those of its hours', () => {
    store.write(Array.from({ length: 100 }, (_, hour) => rowOf(hour, { requests: 2 ** (hour % 20) })));
    for (const [from, to] of [
      [0, 100],
      [3, 99],
      [24, 72],
      [25, 30],
      [25, 48],
      [30, 30],
      [47, 49],
    ] as const) {
      const hours = Array.from({ length: to - from }, (_, index) => 2 ** ((from + index) % 20));
      const expected = hours.reduce((sum, each) => sum + each, 0);
      for (const by of [[], ['slot'], ['day', 'token'], ['hour']] as const) {
        const answer = read(by, { from, to });
        expect(answer.ok && answer.value.reduce((sum, each) => sum + each.requests, 0)).toBe(expected);
      }
    }
  });

  test('keeps names that are SQL, empty, or have control characters', () => {
    const names = ["'; DROP TABLE hours; --", '', 'user:\u0000\u001b[2J', 'user:äöü@例え.jp', '"'];
    store.write(names.map((caller) => rowOf(1, { caller })));
    const answer = read(['token']);
    expect(answer.ok && answer.value.map(({ caller }) => caller)).toEqual(expect.arrayContaining(names));
  });

  test('deletes old hours and days', () => {
    store.write([rowOf(10), rowOf(24), rowOf(60)]);
    expect(store.prune(24)).toMatchObject({ ok: true });
    expect([requests(), read(['hour'])]).toMatchObject([2, { value: [{ hour: 24 }, { hour: 60 }] }]);
  });

  test('adds up costs of one currency only', () => {
    const costs = [rowOf(1, { currency: 'EUR', nanos: 5 }), rowOf(1, { currency: 'USD', nanos: 7 }), rowOf(1)];
    store.write([...costs, ...costs]);
    const answer = read(['token']);
    expect(answer.ok && answer.value.map(({ currency, nanos, requests: count }) => [currency, nanos, count])).toEqual([
      ['', 0, 2],
      ['EUR', 10, 2],
      ['USD', 14, 2],
    ]);
  });

  test.each([8e18, 1e19, Number.POSITIVE_INFINITY])('goes on after sums of %d, which are too large', (nanos) => {
    for (let times = 0; times < 3; times += 1) expect(store.write([rowOf(1, { nanos })])).toMatchObject({ ok: true });
    expect(read()).toMatchObject({ value: [{ requests: 3, nanos: 9e18 }] });
  });

  test('refuses more sums than asked for', () => {
    store.write([rowOf(1), rowOf(2), rowOf(3)]);
    const answer = read(['hour'], { most: 2 });
    expect(answer.ok && answer.value.length).toBe(3);
  });

  test('writes all rows or none', () => {
    expect(store.write([rowOf(1), rowOf(2, { requests: Number.NaN })])).toMatchObject({ ok: false });
    expect(requests()).toBe(0);
  });

  test('makes files that only the service can read', async () => {
    store.write([rowOf(1)]);
    for (const name of await readdir(directory)) expect((await stat(path.join(directory, name))).mode & 0o777).toBe(0o600);
    store.close();
    await chmod(file, 0o644);
    store.write([rowOf(1)]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  test('survives that its file is deleted', async () => {
    store.write([rowOf(1)]);
    await rm(file);
    expect(store.write([rowOf(2)])).toMatchObject({ ok: true });
    expect(await readdir(directory)).toContain('usage.sqlite');
    expect(requests()).toBe(1);
  });
});

describe('a file of usage that is', () => {
  test('locked is written when the lock is gone', () => {
    store.write([rowOf(1)]);
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    expect(store.write([rowOf(1)])).toMatchObject({ ok: false, fault: 'locked' });
    other.exec('ROLLBACK');
    other.close();
    expect(store.write([rowOf(1)])).toMatchObject({ ok: true });
    expect(requests()).toBe(2);
  });

  test.each([
    ['no database', Buffer.from('x'.repeat(5000))],
    ['cut off', undefined],
  ])('damaged (%s) is set aside once, and another one begins', async (_what, bytes) => {
    store.write(Array.from({ length: 500 }, (_, hour) => rowOf(hour)));
    store.close();
    const damaged = bytes ?? (await readFile(file)).fill(0xee, 2000);
    await writeFile(file, damaged);
    expect(store.write([rowOf(1)])).toMatchObject({ ok: true, notice: expect.stringContaining('usage.sqlite.damaged') });
    expect(requests()).toBe(1);
    expect(await readFile(`${file}.damaged`)).toEqual(damaged);
  });

  test('newer stays as it is', async () => {
    store.write([rowOf(1)]);
    store.close();
    const other = new DatabaseSync(file);
    other.exec('PRAGMA user_version = 99');
    other.close();
    const before = await readFile(file);
    expect(store.write([rowOf(1)])).toMatchObject({ ok: false, fault: 'newer', message: expect.stringContaining('schema 99') });
    expect(requests()).toBe('newer');
    expect(await readFile(file)).toEqual(before);
  });

  test.each([
    ['a directory', async () => await mkdir(file)],
    ['a link', async () => await symlink('/dev/null', file)],
    ['in a directory that is missing', async () => await rm(directory, { recursive: true })],
  ])('%s is left alone', async (_what, prepare) => {
    await prepare();
    expect(store.write([rowOf(1)])).toMatchObject({ ok: false });
    expect(GROUPINGS.map((by) => read([by]).ok)).not.toContain(true);
  });
});

test('sums of whole days do not read hours', () => {
  store.write([rowOf(24), rowOf(30), rowOf(47), rowOf(48)]);
  const other = new DatabaseSync(file);
  other.exec('DELETE FROM hours WHERE hour >= 24 AND hour < 48');
  other.close();
  expect(read(['day', 'token'], { from: 20, to: 50 })).toMatchObject({ value: [{ requests: 3 }, { requests: 1 }] });
});

describeWithMounts('a file of usage', () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = mountSmallDisk(1);
    file = path.join(disk.path, 'usage.sqlite');
    store = new UsageStore(file);
  });
  afterEach(() => {
    store.close();
    disk.dispose();
  });

  test('on a full disk is written when there is room', async () => {
    store.write([rowOf(1)]);
    const filler = path.join(disk.path, 'filler');
    await writeFile(filler, Buffer.alloc(700 * 1024));
    const many = Array.from({ length: 8000 }, (_, hour) => rowOf(hour, { caller: `user:${hour}` }));
    expect(store.write(many)).toMatchObject({ ok: false, fault: 'full' });
    expect(requests()).toBe(1);
    await rm(filler);
    expect(store.write(many.slice(0, 500))).toMatchObject({ ok: true });
    expect(requests()).toBe(501);
  });

  test('on a disk that became read-only stays as it was', () => {
    store.write([rowOf(1)]);
    store.close();
    disk.setReadOnly(true);
    expect(store.write([rowOf(1)])).toMatchObject({ ok: false, fault: 'read-only' });
    disk.setReadOnly(false);
    expect(store.write([rowOf(1)])).toMatchObject({ ok: true });
    expect(requests()).toBe(2);
  });
});
