/** The log as a journal, a collector and a terminal get it. */
import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { leadsToJournal } from '../../src/cli/verbs/serve.ts';
import { createPlainLog, limitRepeats, type Log } from '../../src/platform/log.ts';

const PROGRAM = `
  import { createJsonLog } from ${JSON.stringify(path.resolve('src/platform/log.ts'))};
  import { leadsToJournal, withPriority } from ${JSON.stringify(path.resolve('src/cli/verbs/serve.ts'))};
  const log = createJsonLog('debug', leadsToJournal(process.env, 1) ? withPriority : undefined);
  for (const level of ['debug', 'info', 'warn', 'error']) log[level]({ slot: 'primary' }, level);`;

/** The lines of a program whose standard output is a file that is a journal, or is not. */
function linesOf(isJournal: boolean): readonly string[] {
  const dir = mkdtempSync(path.join(tmpdir(), 'svc-log-'));
  const out = openSync(path.join(dir, 'out'), 'w');
  try {
    const { dev, ino } = fstatSync(out);
    const env = { ...process.env, JOURNAL_STREAM: isJournal ? `${dev}:${ino}` : `${dev}:1` };
    spawnSync(process.execPath, ['--input-type=module', '--eval', PROGRAM], { env, stdio: ['ignore', out, 'inherit'] });
    return readFileSync(path.join(dir, 'out'), 'utf8').trim().split('\n');
  } finally {
    closeSync(out);
    rmSync(dir, { recursive: true });
  }
}

test('lines for a journal begin with their priority', () => {
  expect(linesOf(true).map((line) => line.slice(0, 4))).toEqual(['<7>{', '<6>{', '<4>{', '<3>{']);
});

test('lines for anything else are JSON alone', () => {
  expect(linesOf(false).map((line): unknown => JSON.parse(line))).toMatchObject([
    { msg: 'debug' },
    { msg: 'info' },
    { msg: 'warn' },
    { msg: 'error' },
  ]);
});

test('without a journal, nothing leads to one', () => {
  expect(leadsToJournal({}, 1)).toBe(false);
});

test('a person gets text, with the other fields only where they are asked for', () => {
  const lines: string[] = [];
  for (const withFields of [false, true])
    createPlainLog('info', (line) => lines.push(line), withFields).warn({ slot: 'primary', urls: ['a'] }, 'Listening');
  expect(lines).toEqual(['  primary  warn: Listening', '  primary  warn: Listening urls=["a"]']);
});

test('a line with a reason appears once a minute for each cause, and says how many were omitted', () => {
  const lines: unknown[] = [];
  const keep = (fields: object, message: string): void => void lines.push({ ...fields, message });
  let now = 0;
  const base: Log = { debug: keep, info: keep, warn: keep, error: keep };
  const log = limitRepeats(base, () => now);
  const reason = 'SlotsUnreadable';
  const serves = (seconds: number): void =>
    log.warn({ reason }, `SlotSpecs have not been read for ${seconds} s: "slotspecs" is not served`);
  for (; now < 60_000; now += 500) serves(now);
  expect(lines).toEqual([{ reason, message: expect.stringContaining(' 0 s') }]);
  // Another error or reason is another cause; another slot is none.
  for (const slot of ['a', 'b']) log.warn({ slot, reason, error: `No room for "${slot}"` }, `Writing the status of slot "${slot}" failed`);
  log.warn({ slot: 'a', reason, error: 'Forbidden' }, 'Writing the status of slot "a" failed');
  log.warn({ slot: 'a', reason: 'Forbidden' }, 'Writing the status of slot "a" failed');
  expect(lines).toHaveLength(4);
  serves(now);
  expect(lines.at(-1)).toEqual({ reason, omitted: 119, message: expect.stringContaining(' 60000 s') });
  for (const _ of [1, 2]) log.info({}, 'A line without a reason');
  expect(lines).toHaveLength(7);
});
