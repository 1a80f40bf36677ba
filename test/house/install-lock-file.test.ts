/** `npm ci` of npm 11 refuses a lock file without the packages of other platforms, which npm omits if a registry does not have them. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { ROOT } from './lint-fixtures.ts';
import { unlockedPackages } from '../../scripts/install/unlocked-packages.mjs';

const Lock = z.looseObject({ packages: z.record(z.string(), z.looseObject({ resolved: z.string().optional() })) });

describe('the lock file', () => {
  let checkout: string;
  beforeEach(async () => {
    checkout = await mkdtemp(path.join(tmpdir(), 'svc-lock-file-'));
    for (const file of ['package.json', 'package-lock.json', '.npmrc', 'scripts']) {
      await cp(path.join(ROOT, file), path.join(checkout, file), { recursive: true });
    }
  });
  afterEach(() => rm(checkout, { recursive: true, force: true }));

  const readLock = async () => Lock.parse(JSON.parse(await readFile(path.join(checkout, 'package-lock.json'), 'utf8')));
  async function withoutLocked(name: string): Promise<void> {
    const lock = await readLock();
    delete lock.packages[name];
    await writeFile(path.join(checkout, 'package-lock.json'), JSON.stringify(lock));
  }
  const run = async (program: string, args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> =>
    await new Promise((resolve) =>
      execFile(program, args, { cwd: checkout, env: { PATH: process.env['PATH'], HOME: checkout } }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : 1, output: stdout + stderr }),
      ),
    );
  const npmCi = async () => await run('npm', ['ci', '--dry-run', '--offline', '--loglevel=error']);

  test('has every platform package, and names no registry; otherwise run "node scripts/complete-lock.mjs"', async () => {
    const { packages } = await readLock();
    expect(unlockedPackages(packages)).toEqual([]);
    expect(Object.values(packages).flatMap(({ resolved }) => resolved ?? [])).toEqual([]);
  });

  test('is accepted by npm ci in an empty home directory, and npm 11 refuses it without one of the platform packages', async () => {
    expect(await npmCi()).toMatchObject({ code: 0 });
    await withoutLocked('node_modules/@oxlint/binding-win32-x64-msvc');
    const { output } = await run('npm', ['--version']);
    // npm 10, which comes with Node 22, does not miss it.
    const refused = { code: 1, output: expect.stringContaining('Missing: @oxlint/binding-win32-x64-msvc') };
    expect(await npmCi()).toMatchObject(Number.parseInt(output, 10) < 11 ? { code: 0 } : refused);
  }, 60_000);

  test('is completed as it was', async () => {
    const before = await readLock();
    const musl = 'node_modules/@oxfmt/binding-linux-x64-musl';
    await withoutLocked(musl);
    expect(unlockedPackages((await readLock()).packages)).toEqual([
      { name: '@oxfmt/binding-linux-x64-musl', version: before.packages[musl]?.['version'], parent: 'node_modules/oxfmt' },
    ]);
    expect(await run(process.execPath, ['scripts/complete-lock.mjs'])).toEqual({ code: 0, output: '' });
    expect(await readLock()).toEqual(before);
  });

  test('may leave the bundled Node without its link, which the check for Node then makes', async () => {
    const bin = path.join(checkout, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin');
    await mkdir(bin, { recursive: true });
    await symlink(process.execPath, path.join(bin, 'node'));
    const check = `import { checkNode } from './scripts/install/check-node.mjs'; checkNode(${JSON.stringify(checkout)}, console.log);`;
    expect(await run(process.execPath, ['--input-type=module', '--eval', check])).toEqual({ code: 0, output: '' });
    expect(await realpath(path.join(checkout, 'node_modules/.bin/node'))).toBe(await realpath(process.execPath));
  });

  test('is compared with the installed packages before a script that needs them, which says what to do', async () => {
    const { code, output } = await run(process.execPath, ['scripts/ensure-installed.mjs', '--check']);
    expect({ code, output }).toEqual({
      code: 1,
      output: expect.stringMatching(/^Packages are missing: \d+ of package-lock\.json, such as "node_modules\/[^"]+"; run "npm ci"\n$/),
    });
  });
});
