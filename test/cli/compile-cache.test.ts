import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { svcctl } from './run-svcctl.ts';

let home = '';
beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'svc-home-'));
});
afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

const version = (env: Readonly<Record<string, string>>) =>
  svcctl(['--version'], { env: { HOME: home, XDG_CACHE_HOME: '', NODE_COMPILE_CACHE: undefined, ...env } });
const entries = (directory: string): Promise<readonly string[]> => readdir(directory).catch(() => []);

test('svcctl keeps its compiled code in a directory that nobody else can write to', async () => {
  expect(await version({})).toMatchObject({ code: 0, err: '' });
  const directory = path.join(home, '.cache/svc/compile');
  expect(await entries(directory)).not.toEqual([]);
  expect((await stat(directory)).mode & 0o077).toBe(0);
});

test('svcctl follows XDG_CACHE_HOME', async () => {
  expect(await version({ XDG_CACHE_HOME: home })).toMatchObject({ code: 0 });
  expect(await entries(path.join(home, 'svc/compile'))).not.toEqual([]);
  expect(await entries(home)).toEqual(['svc']);
});

test('svcctl leaves the directory to NODE_COMPILE_CACHE', async () => {
  const own = path.join(home, 'own');
  expect(await version({ NODE_COMPILE_CACHE: own })).toMatchObject({ code: 0 });
  expect(await entries(own)).not.toEqual([]);
  expect(await entries(home)).toEqual(['own']);
});

test('svcctl neither reads nor writes code where another user could have put it', async () => {
  const directory = path.join(home, '.cache/svc/compile');
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o777);
  expect(await version({})).toMatchObject({ code: 0, err: '' });
  expect(await entries(directory)).toEqual([]);
});

test.each(['/nonexistent/home', '/proc/self'])('svcctl works with "%s" as its home, where it cannot keep anything', async (HOME) => {
  expect(await version({ HOME })).toMatchObject({ code: 0, err: '' });
});
