/** Files of usage that earlier versions wrote. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Grouping } from '../../src/usage/decide/usage-rows.ts';
import { UsageStore } from '../../src/usage/usage-store.ts';
import { rowOf } from './row-of.ts';

const FIRST = ['requests', 'errors', 'input', 'cached', 'output', 'estimated', 'queueMs', 'busyMs'];
const NAMES = "'token:1a2b3c4d', 'primary', 'fox'";
const VERSIONS = [
  { version: 1, keys: ['caller', 'slot', 'model'], counts: FIRST, hour: `${NAMES}, 3, 1, 30, 10, 6, 1, 500, 700` },
  {
    version: 2,
    keys: ['caller', 'slot', 'model', 'currency'],
    counts: [...FIRST, 'audioMs', 'images', 'nanos'],
    hour: `${NAMES}, 'EUR', 3, 1, 30, 10, 6, 1, 500, 700, 1500, 2, 9`,
  },
  {
    version: 3,
    keys: ['caller', 'slot', 'model', 'currency'],
    counts: [...FIRST, 'audioMs', 'images', 'nanos', 'milliJoules'],
    hour: `${NAMES}, 'EUR', 3, 1, 30, 10, 6, 1, 500, 700, 1500, 2, 9, 0`,
  },
];
const COUNTED = { requests: 3, errors: 1, input: 30, cached: 10, output: 6, estimated: 1, queueMs: 500, busyMs: 700 };
const MEDIA = { audioMs: 1500, images: 2, nanos: 9 };

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

const read = (by: readonly Grouping[]) => store.read({ from: 0, to: 1_000_000, most: 100, by });

/** Two hours of a day, as that version stored them. */
function make({ version, keys, counts, hour }: (typeof VERSIONS)[number]): void {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA user_version = ${version}`);
  const columns = [
    ...keys.map((name) => `${name} TEXT NOT NULL DEFAULT ''`),
    ...counts.map((name) => `${name} INTEGER NOT NULL DEFAULT 0`),
  ];
  for (const [table, time] of [
    ['hours', 'hour'],
    ['days', 'day'],
  ] as const)
    database.exec(
      `CREATE TABLE ${table} (${time} INTEGER NOT NULL, ${columns.join(', ')}, PRIMARY KEY (${time}, ${keys.join(', ')})) STRICT, WITHOUT ROWID`,
    );
  const names = [...keys, ...counts].join(', ');
  const twice = hour.replaceAll(/\b\d+(?=,|$)/g, (number) => String(2 * Number(number)));
  database.exec(
    `INSERT INTO hours (hour, ${names}) VALUES (24, ${hour}), (25, ${hour}); INSERT INTO days (day, ${names}) VALUES (1, ${twice})`,
  );
  database.close();
}

describe.each(VERSIONS)('a file of usage of version $version', (version) => {
  const own = version.version === 1 ? { ...COUNTED, currency: '' } : { ...COUNTED, ...MEDIA, currency: 'EUR' };

  test('keeps its sums, and gets what was counted since', () => {
    make(version);
    const hour = rowOf(24, own);
    expect(read(['hour', 'token', 'slot', 'model'])).toEqual({ ok: true, value: [hour, { ...hour, hour: 25 }] });
    store.write([rowOf(25, { currency: 'EUR', nanos: 9, images: 2, audioMs: 1500, milliJoules: 70 })]);
    store.write([rowOf(24, { currency: own.currency, requests: 0, milliJoules: 5, loads: 2, evictions: 1 })]);
    expect(read([])).toMatchObject({ value: expect.arrayContaining([expect.objectContaining({ loads: 2, evictions: 1 })]) });
    const energy = version.version === 1 ? [5, 70] : [75];
    const days = read(['day']);
    expect(days.ok && days.value.map(({ milliJoules }) => milliJoules)).toEqual(energy);
    expect(days).toMatchObject({
      value: [{ hour: 24, currency: own.currency, requests: version.version === 1 ? 6 : 7, input: 60 }, {}].slice(0, energy.length),
    });
    expect(read([])).toMatchObject({ value: expect.arrayContaining([expect.objectContaining({ currency: 'EUR' })]) });
    store.close();
    expect(read(['hour', 'token']).ok).toBe(true);
  });

  test('stays as it is while another program writes to it', () => {
    make(version);
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    expect(store.write([rowOf(1, {})])).toMatchObject({ ok: false, fault: 'locked' });
    other.exec('ROLLBACK');
    expect(other.prepare('SELECT TOTAL(requests) AS sum FROM hours').get()).toMatchObject({ sum: 6 });
    other.close();
    expect(store.write([rowOf(1, { currency: own.currency })])).toMatchObject({ ok: true });
    expect(read([])).toMatchObject({ value: [{ requests: 7 }] });
  });
});
