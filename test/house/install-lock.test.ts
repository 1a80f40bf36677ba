/** Two installations at once would corrupt node_modules: the lock admits one at a time, and a dead process does not keep it. */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ROOT } from './lint-fixtures.ts';

const run = promisify(execFile);
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-lock-'));
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

/** The arguments for Node of a program that takes the lock and runs `body`. */
const holder = (body: string) => [
  '--input-type=module',
  '--eval',
  `import { withInstallLock } from ${JSON.stringify(join(ROOT, 'scripts/install/install-lock.mjs'))};
   import { appendFileSync, existsSync } from 'node:fs';
   import { setTimeout as sleep } from 'node:timers/promises';
   const note = (text) => appendFileSync('notes', text + '\\n');
   await withInstallLock('lock', () => {}, async () => { ${body} });`,
];
const inFolder = () => ({ cwd: folder });
const notes = async () => (await readFile(join(folder, 'notes'), 'utf8')).trim().split('\n');

test('four processes at once work one after the other', async () => {
  const body = "note('begin'); await sleep(30); note('end');";
  await Promise.all(Array.from({ length: 4 }, () => run(process.execPath, holder(body), inFolder())));
  expect(await notes()).toEqual(Array.from({ length: 4 }, () => ['begin', 'end']).flat());
  expect(existsSync(join(folder, 'lock'))).toBe(false);
});

test('work that fails releases the lock', async () => {
  await expect(run(process.execPath, holder("throw new Error('full disk');"), inFolder())).rejects.toThrow('full disk');
  expect(existsSync(join(folder, 'lock'))).toBe(false);
});

const abandoned = async (pid: number | undefined) => {
  await mkdir(join(folder, 'lock'));
  await writeFile(join(folder, 'lock', 'owners'), JSON.stringify({ pids: [pid], host: hostname() }));
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(join(folder, 'lock'), longAgo, longAgo);
};

test('a lock whose processes have ended is taken over', async () => {
  const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await new Promise((resolve) => gone.once('exit', resolve));
  await abandoned(gone.pid);
  await run(process.execPath, holder("note('mine');"), inFolder());
  expect(await notes()).toEqual(['mine']);
});

test('an old lock whose process is still running is waited for', async () => {
  await abandoned(process.pid);
  const waiting = run(process.execPath, holder("note(existsSync('released') ? 'after' : 'before');"), inFolder());
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(existsSync(join(folder, 'notes'))).toBe(false);
  await writeFile(join(folder, 'released'), '');
  await rm(join(folder, 'lock'), { recursive: true });
  await waiting;
  expect(await notes()).toEqual(['after']);
});
