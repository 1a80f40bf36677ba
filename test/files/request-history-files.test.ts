/** Histories of requests survive a restart, are private, and a damaged one costs no other. */
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createRequestHistoryFiles } from '../../src/files/request-history-files.ts';
import { NO_HISTORY, STEPS_PER_DAY, type RequestHistory } from '../../src/schema/status/request-history.ts';
import { SlotName } from '../../src/schema/words/names.ts';

const CODER = SlotName.parse('coder');
const HISTORY: RequestHistory = {
  days: [{ date: '2026-11-26', steps: '01'.repeat(STEPS_PER_DAY / 2) }],
  outcomes: [true, false],
  missedOn: '2026-11-26',
};

let folder = '';
let warnings: string[] = [];
const open = () =>
  createRequestHistoryFiles(join(folder, 'learned'), {
    info: () => undefined,
    warn: (_fields, message) => void warnings.push(message),
  });
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-learned-'));
  warnings = [];
});
afterEach(async () => await rm(folder, { recursive: true, force: true }));

test('what was written is read by the next controller, and by nobody else', async () => {
  const files = open();
  expect(await files.read()).toEqual(new Map());
  files.write(CODER, NO_HISTORY);
  files.write(CODER, HISTORY);
  await files.flush();
  expect(await open().read()).toEqual(new Map([[CODER, HISTORY]]));
  expect(((await stat(join(folder, 'learned/coder.json'))).mode & 0o777).toString(8)).toBe('600');
  files.write(CODER, undefined);
  await files.flush();
  expect([await readdir(join(folder, 'learned')), warnings]).toEqual([[], []]);
});

test.each([
  ['damaged', async (path: string) => await writeFile(path, '{"days": [')],
  ['of another shape', async (path: string) => await writeFile(path, '{"days":[{"date":"2026-11-26","steps":"01"}],"outcomes":[]}')],
  ['a directory', async (path: string) => await mkdir(path)],
  ['a link to another file', async (path: string) => await symlink('/etc/hostname', path)],
])('one that is %s is left out, and the log says so', async (_, damage) => {
  const files = open();
  files.write(CODER, HISTORY);
  await files.flush();
  await damage(join(folder, 'learned/other.json'));
  await writeFile(join(folder, 'learned/README'), 'no history');
  expect(await files.read()).toEqual(new Map([[CODER, HISTORY]]));
  expect(warnings).toEqual([expect.stringMatching(/other\.json" cannot be read, so what it has of earlier requests is learned anew$/)]);
});

test('a state directory that is gone is not created again, and later writes succeed', async () => {
  const files = open();
  await rm(folder, { recursive: true });
  files.write(CODER, HISTORY);
  await files.flush();
  expect(warnings).toEqual([expect.stringContaining('Writing what slot "coder" has learned failed')]);
  await mkdir(folder);
  files.write(CODER, HISTORY);
  await files.flush();
  expect(await files.read()).toEqual(new Map([[CODER, HISTORY]]));
});
