import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createChangeRecord, MOST_CHANGES } from '../../src/files/change-files.ts';
import { SYSTEM_DISK } from '../../src/files/regular-file.ts';
import type { Change } from '../../src/schema/status/resource-answers.ts';

const change = (message: string): Change => ({
  at: '2026-11-27T08:00:00.000Z',
  who: 'anna',
  caller: 'token:1a2b3c4d',
  scope: 'admin',
  address: null,
  request_id: 'r1',
  slot: null,
  message,
});

let directory: string;
let file: string;
let warnings: string[];
const log = { info: () => undefined, warn: (_fields: unknown, message: string) => void warnings.push(message) };
const messagesOf = async (record: { list(): Promise<readonly Change[]> }) => (await record.list()).map(({ message }) => message);

beforeEach(async () => {
  warnings = [];
  directory = await mkdtemp(path.join(tmpdir(), 'changes-'));
  file = path.join(directory, 'audit', 'changes.jsonl');
});
afterEach(async () => await rm(directory, { recursive: true }));

describe('the record of changes', () => {
  test('outlives the service, and only its user can read it', async () => {
    const record = createChangeRecord(file, log);
    expect(await messagesOf(record)).toEqual([]);
    record.add(change('one'));
    record.add(change('two'));
    expect(await messagesOf(record)).toEqual(['one', 'two']);
    const next = createChangeRecord(file, log);
    next.add(change('three'));
    expect(await next.list()).toEqual(['one', 'two', 'three'].map(change));
    expect([(await stat(file)).mode & 0o777, (await stat(path.dirname(file))).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(warnings).toEqual([]);
  });

  test('skips lines that are damaged, and does not continue one that is incomplete', async () => {
    const record = createChangeRecord(file, log);
    record.add(change('one'));
    await record.list();
    await appendFile(file, '{"at":"yesterday"}\nnonsense\n{"at":"2026-');
    record.add(change('two'));
    expect(await messagesOf(record)).toEqual(['one', 'two']);
  });

  test('lists the last 1000, and keeps one older file', async () => {
    const record = createChangeRecord(file, log);
    const long = 'x'.repeat(1500);
    for (let index = 0; index < 3000; index += 1) {
      record.add(change(`${index} ${long}`));
      if (index % 500 === 499) await record.list();
    }
    const numbers = (await messagesOf(record)).map((message) => Number.parseInt(message, 10));
    expect(numbers).toEqual(Array.from({ length: MOST_CHANGES }, (_, index) => 2000 + index));
    const sizes = await Promise.all([file, `${file}.1`].map(async (each) => (await readFile(each)).length));
    expect(Math.max(...sizes)).toBeLessThan(2.1 * 1024 * 1024);
  });

  test('keeps what cannot be written, lists it, and writes it with the next change', async () => {
    let isFull = true;
    const full = Object.assign(new Error('No space left on device'), { code: 'ENOSPC' });
    const open: typeof SYSTEM_DISK.open = async (...args) => (isFull ? await Promise.reject(full) : await SYSTEM_DISK.open(...args));
    const record = createChangeRecord(file, log, { ...SYSTEM_DISK, open });
    record.add(change('one'));
    expect(await messagesOf(record)).toEqual(['one']);
    record.add(change('two'));
    expect(await messagesOf(record)).toEqual(['one', 'two']);
    expect(warnings).toHaveLength(1);
    isFull = false;
    record.add(change('three'));
    expect(await messagesOf(record)).toEqual(['one', 'two', 'three']);
    expect(await messagesOf(createChangeRecord(file, log))).toEqual(['one', 'two', 'three']);
  });

  test('is in memory only without a file', async () => {
    const record = createChangeRecord(undefined, log);
    for (let index = 0; index < 1200; index += 1) record.add(change(String(index)));
    expect(await messagesOf(record)).toEqual(Array.from({ length: MOST_CHANGES }, (_, index) => String(200 + index)));
  });
});
