/** The log as a journal, a collector and a terminal get it. */
import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { leadsToJournal } from '../../src/cli/verbs/serve.ts';
import { createPlainLog } from '../../src/platform/log.ts';

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
