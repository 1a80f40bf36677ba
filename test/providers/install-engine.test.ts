import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EMBEDDED_ENGINE } from '../../src/providers/gguf/gguf-server.ts';
import { lockDirectory } from '../../src/files/directory-lock.ts';
import { ensureEngine } from '../../src/providers/install-engine.ts';
import { findProgram } from '../../src/providers/host-program.ts';

const signal = new AbortController().signal;
let directory = '';

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-install-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Installs a script as npm. The tests of the engine itself use the real npm. */
async function fakeNpm(script: string): Promise<Record<string, string>> {
  const bin = path.join(directory, 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(path.join(bin, 'npm'), `#!/bin/sh\n${script}\n`);
  await chmod(path.join(bin, 'npm'), 0o755);
  return { PATH: `${bin}:/usr/bin:/bin` };
}

const install = (env: Record<string, string>) =>
  ensureEngine({ engine: EMBEDDED_ENGINE, dir: path.join(directory, 'engine'), env, onProgress: () => {} }, signal);

test('ensureEngine() installs the engine once and without scripts, even if it is called twice at the same time', async () => {
  const env = await fakeNpm('echo "$@" >> calls; sleep 0.2');
  const [first, second] = await Promise.all([install(env), install(env)]);
  expect(second).toEqual(first);
  expect(await install(env)).toEqual(first);
  const calls = (await readFile(path.join(directory, 'engine', 'calls'), 'utf8')).trim().split('\n');
  expect(calls).toHaveLength(1);
  expect(calls[0]).toContain('ci --ignore-scripts');
  expect(first).toMatchObject({
    ok: true,
    value: [process.execPath, expect.stringMatching(/main\.ts$/), '--modules', path.join(directory, 'engine')],
  });
});

test('ensureEngine() uses the packages that a release has beside the source code, and npm where they are those of another version', async () => {
  const sources = path.join(directory, 'sources');
  const shipped = path.join(sources, 'shipped');
  await mkdir(shipped, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) await writeFile(path.join(sources, file), '{}');
  const engine = { ...EMBEDDED_ENGINE, sources };
  const dir = path.join(directory, 'engine');
  const ensure = async (env: Record<string, string>) => await ensureEngine({ engine, dir, env, onProgress: () => {} }, signal);
  await ensure(await fakeNpm('exit 0'));
  await rename(path.join(dir, 'installed'), path.join(shipped, 'installed'));
  const withoutNpm = { PATH: directory };
  expect(await ensure(withoutNpm)).toMatchObject({ ok: true, value: [process.execPath, expect.anything(), '--modules', shipped] });
  await writeFile(path.join(shipped, 'installed'), 'packages of another version');
  expect(await ensure(withoutNpm)).toMatchObject({ ok: false, failure: { reason: 'EngineInstallFailed' } });
});

test('ensureEngine() reports why npm failed, and the next call tries again', async () => {
  expect(await install(await fakeNpm('echo "no network" >&2; exit 7'))).toMatchObject({
    ok: false,
    failure: {
      kind: 'retry',
      reason: 'EngineInstallFailed',
      message: expect.stringContaining('npm could not install the embedded engine (7); output: "no network"'),
    },
  });
  expect(await install(await fakeNpm('exit 0'))).toMatchObject({ ok: true });
});

test('ensureEngine() waits while another process installs, and says so', async () => {
  const [dir, told, env] = [path.join(directory, 'engine'), Promise.withResolvers<string>(), await fakeNpm('exit 0')];
  await mkdir(dir);
  const other = await lockDirectory({ directory: dir, name: 'installing', since: Date.now() });
  const done = ensureEngine({ engine: EMBEDDED_ENGINE, dir, env, onProgress: told.resolve }, signal);
  expect(await told.promise).toBe('Waiting for another process to install the embedded engine');
  if (other.kind === 'locked') other.lock.release();
  expect(await done).toMatchObject({ ok: true });
});

test('ensureEngine() is not held up by what a process left that no longer exists', async () => {
  const dir = path.join(directory, 'engine');
  await mkdir(dir);
  const script = `import { lockDirectory } from ${JSON.stringify(path.resolve('src/files/directory-lock.ts'))};
    await lockDirectory({ directory: ${JSON.stringify(dir)}, name: 'installing', since: 0 });
    process.kill(process.pid, 'SIGKILL');`;
  expect(spawnSync(process.execPath, ['--input-type=module', '-e', script]).signal).toBe('SIGKILL');
  await writeFile(path.join(dir, 'install.lock'), '999999999');
  expect(await install(await fakeNpm('exit 0'))).toMatchObject({ ok: true });
});

test('ensureEngine() fails with a message if npm is missing', async () => {
  expect(await install({ PATH: directory })).toMatchObject({ ok: false, failure: { reason: 'EngineInstallFailed' } });
});

test('findProgram() finds the first executable file of that name on the PATH', async () => {
  const [first, second] = [path.join(directory, 'a'), path.join(directory, 'b')];
  for (const part of [first, second]) await mkdir(part);
  await writeFile(path.join(first, 'llama-server'), '');
  await writeFile(path.join(second, 'llama-server'), '');
  await chmod(path.join(second, 'llama-server'), 0o755);
  expect(await findProgram('llama-server', `relative:${first}:${second}`)).toBe(path.join(second, 'llama-server'));
  expect(await findProgram('llama-server', first)).toBeUndefined();
  expect(await findProgram('llama-server', undefined)).toBeUndefined();
});

test('ensureEngine() gives npm what it needs to reach the registry, and no secret of the service', async () => {
  const secrets = {
    SVC_PROXY_SECRET: 's3cret-of-the-proxy',
    SVC_TOKEN: 's3cret-token',
    HF_TOKEN: 's3cret-of-the-hub',
    AWS_SECRET_ACCESS_KEY: 's3cret',
  };
  const needed = {
    HOME: directory,
    HTTPS_PROXY: 'http://proxy:3128',
    npm_config_registry: 'http://mirror',
    NODE_EXTRA_CA_CERTS: '/ca.crt',
  };
  expect(await install({ ...(await fakeNpm('env > seen')), ...secrets, ...needed })).toMatchObject({ ok: true });
  const seen = await readFile(path.join(directory, 'engine', 'seen'), 'utf8');
  for (const [key, value] of Object.entries(needed)) expect(seen).toContain(`${key}=${value}\n`);
  expect(seen).not.toContain('s3cret');
});
