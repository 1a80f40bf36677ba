import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { lockDirectory, type DirectoryLock, type LockAnswer } from '../../src/files/directory-lock.ts';

const SINCE = Date.UTC(2026, 0, 2);

/** Locks a directory in a process of its own, and prints the answer. */
const SCRIPT = `
import { lockDirectory } from ${JSON.stringify(resolve('src/files/directory-lock.ts'))};
const answer = await lockDirectory({ directory: process.argv[1], name: 'service', since: ${SINCE} });
console.log(answer.kind);
setInterval(() => undefined, 1000);
`;

describe('lockDirectory()', () => {
  let directory: string;
  const children: ChildProcess[] = [];
  const locks: DirectoryLock[] = [];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'svc-lock-'));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await end(child);
    for (const lock of locks.splice(0)) lock.release();
    await rm(directory, { recursive: true });
  });

  const take = async (name = 'service'): Promise<LockAnswer> => {
    const answer = await lockDirectory({ directory, name, since: SINCE });
    if (answer.kind === 'locked') locks.push(answer.lock);
    return answer;
  };
  const takeInChild = async (): Promise<{ readonly child: ChildProcess; readonly said: string }> => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const said = await new Promise<string>((done) => child.stdout?.once('data', (data: Buffer) => done(data.toString().trim())));
    return { child, said };
  };
  const end = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill('SIGKILL');
    await ended;
  };

  test('says which process holds the lock, and since when', async () => {
    const { child, said } = await takeInChild();
    expect(said).toBe('locked');
    expect(await take()).toEqual({
      kind: 'held',
      holder: `process ${child.pid} on "${hostname()}", since 2026-01-02T00:00:00.000Z,`,
    });
  });

  test('is free as soon as its holder was killed, whatever that has left behind', async () => {
    const { child } = await takeInChild();
    await end(child);
    expect((await take()).kind).toBe('locked');
    // The process id of a dead holder may belong to somebody else by now; what counts is the lock.
    expect(JSON.parse(await readFile(join(directory, 'service.json'), 'utf8'))).toMatchObject({ pid: process.pid });
    expect((await takeInChild()).said).toBe('held');
  });

  const openFiles = async (): Promise<readonly string[]> => {
    const names = await readdir('/proc/self/fd');
    const targets = await Promise.all(names.map(async (name) => await readlink(`/proc/self/fd/${name}`).catch(() => '')));
    return targets.filter((target) => target.startsWith(directory));
  };

  (process.platform === 'linux' ? test : test.skip)('leaves no file open when somebody else holds it, or it is no lock', async () => {
    await takeInChild();
    expect((await take()).kind).toBe('held');
    await writeFile(join(directory, '.other.lock'), 'a text of somebody else, longer than a header of a database\n'.repeat(20));
    expect((await take('.other')).kind).toBe('unusable');
    expect(await openFiles()).toEqual([]);
    expect((await take('.third')).kind).toBe('locked');
    expect(await openFiles()).toEqual([join(directory, '.third.lock')]);
  });

  test('is held by one of many that try at the same moment', async () => {
    const said = await Promise.all(Array.from({ length: 4 }, async () => (await takeInChild()).said));
    expect(said.toSorted()).toEqual(['held', 'held', 'held', 'locked']);
  }, 30_000);

  test('can be taken again after it was released, and locks of other names do not matter', async () => {
    const first = await take();
    expect((await take()).kind).toBe('held');
    expect((await take('.other')).kind).toBe('locked');
    if (first.kind === 'locked') first.lock.release();
    expect((await take()).kind).toBe('locked');
  });

  test('notices that its directory was moved, emptied or replaced', async () => {
    const answer = await take();
    if (answer.kind !== 'locked') throw new Error('The lock is free');
    const { lock } = answer;
    expect(await lock.isInPlace()).toBe(true);
    await rename(directory, `${directory}-moved`);
    expect(await lock.isInPlace()).toBe(false);
    await mkdir(directory);
    expect((await take()).kind).toBe('locked');
    expect(await lock.isInPlace()).toBe(false);
    await rm(directory, { recursive: true });
    await rename(`${directory}-moved`, directory);
    expect(await lock.isInPlace()).toBe(true);
  });

  test('says why it cannot be used', async () => {
    const missing = await lockDirectory({ directory: join(directory, 'missing'), name: 'service', since: SINCE });
    expect(missing).toEqual({ kind: 'unusable', message: expect.stringContaining('ENOENT') });
    await writeFile(join(directory, 'service.lock'), 'a text of somebody else, longer than a header of a database\n'.repeat(20));
    expect(await take()).toEqual({ kind: 'unusable', message: expect.stringContaining('is not a lock of this service; delete it') });
  });
});
