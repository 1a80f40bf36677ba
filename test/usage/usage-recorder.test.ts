/** The recorder with its real file, and with a store that fails. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { StoreResult } from '../../src/usage/usage-store.ts';
import { createUsageRecorder, openUsageFile, type UsageDatabase, type UsageRecorder } from '../../src/usage/usage-recorder.ts';
import { slotName } from '../gateway/support/board-fixture.ts';

const HOUR = 3_600_000;
const ALL = { from: 0, to: 10_000_000, by: [], most: 100 } as const;
const finished = {
  slot: slotName('primary'),
  caller: 'token:1a2b3c4d',
  route: '/v1/x',
  status: 200,
  seconds: 1,
  tokens: { input: 3, output: 4 },
};

let directory: string;
let file: string;
let recorders: UsageRecorder[];
let warnings: string[];
let time: { now: number; wall: number };
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-usage-'));
  file = path.join(directory, 'usage.sqlite');
  recorders = [];
  warnings = [];
  time = { now: 5, wall: 20_000 * 24 * HOUR };
});
afterEach(async () => {
  for (const recorder of recorders) await recorder.close();
  await rm(directory, { recursive: true, force: true });
});

function record(database: UsageDatabase = openUsageFile(file)): UsageRecorder {
  const recorder = createUsageRecorder({
    database,
    wallNow: () => time.wall,
    now: () => time.now,
    factsOf: () => ({ model: 'fox' }),
    log: { warn: (_fields, message) => void warnings.push(message) },
  });
  recorders.push(recorder);
  return recorder;
}

const pass = (ms: number): void => {
  time.now += ms;
  time.wall += ms;
};

test('what was counted is there after a restart', async () => {
  const first = record();
  first.note(finished);
  first.note({ ...finished, slot: undefined, tokens: undefined, status: 404 });
  await first.close();
  const second = record();
  second.note(finished);
  expect(await second.query({ ...ALL, by: ['slot', 'model'] })).toMatchObject({
    sums: [
      { slot: '', model: '', requests: 1, errors: 1 },
      { slot: 'primary', model: 'fox', requests: 2, input: 6, output: 8 },
    ],
    problem: undefined,
  });
});

test('loads and evictions that a request has caused are counted for its caller and the slot that they happened to', async () => {
  const recorder = record();
  const by = { caller: 'token:1a2b3c4d' };
  recorder.note(finished);
  recorder.write({
    caused: [
      { ...by, slot: slotName('primary'), what: 'loads' },
      { ...by, slot: slotName('embed'), what: 'evictions' },
      { ...by, slot: slotName('embed'), what: 'evictions' },
    ],
  });
  recorder.write({});
  expect(await recorder.query({ ...ALL, by: ['token', 'slot', 'model'] })).toMatchObject({
    sums: [
      { ...by, slot: 'embed', model: 'fox', requests: 0, loads: 0, evictions: 2 },
      { ...by, slot: 'primary', model: 'fox', requests: 1, loads: 1, evictions: 0 },
    ],
  });
});

test('what cannot be written stays in memory, is part of answers, and is written later', async () => {
  const recorder = record();
  recorder.note(finished);
  await recorder.query(ALL);
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  for (let count = 0; count < 2; count += 1) {
    recorder.note(finished);
    const answer = await recorder.query(ALL);
    expect(answer).toMatchObject({ sums: [{ requests: 2 + count }], problem: expect.stringContaining('locked') });
  }
  expect(warnings).toEqual([expect.stringContaining('locked')]);
  other.exec('ROLLBACK');
  other.close();
  expect(await recorder.query(ALL)).toMatchObject({ sums: [{ requests: 3 }], problem: undefined });
  await recorder.close();
  expect(await record().query(ALL)).toMatchObject({ sums: [{ requests: 3 }] });
}, 30_000);

test('warns of each cause once an hour', async () => {
  const failed: StoreResult<never> = { ok: false, fault: 'full', message: 'no room' };
  const recorder = record({ write: async () => failed, read: async () => failed, prune: async () => failed, close: async () => undefined });
  for (const ms of [0, 1000, HOUR - 2000, 1000, HOUR]) {
    pass(ms);
    recorder.note(finished);
    expect(await recorder.query(ALL)).toMatchObject({ problem: expect.stringContaining('no room') });
  }
  expect(warnings.length).toBe(3);
  expect(await recorder.query({ ...ALL, by: ['hour'] })).toMatchObject({ sums: [{ requests: 3 }, { requests: 1 }, { requests: 1 }] });
});

test('keeps 13 months, and deletes nothing while the clock jumps', async () => {
  const recorder = record();
  const count = async (): Promise<number> => (await recorder.query({ ...ALL, by: ['hour'] })).sums.length;
  recorder.note(finished);
  expect(await count()).toBe(1);
  // Two years ahead, and back again half an hour later.
  const jump = 731 * 24 * HOUR;
  time.wall += jump;
  recorder.note(finished);
  expect(await count()).toBe(2);
  pass(HOUR / 2);
  expect(await count()).toBe(2);
  time.wall -= jump;
  expect(await count()).toBe(2);
  pass(HOUR);
  expect(await count()).toBe(2);
  pass(398 * 24 * HOUR);
  await recorder.query(ALL);
  pass(25 * HOUR);
  expect(await count()).toBe(1);
});
