/** The packages of a checkout are replaced while its own Node, which is one of them, runs the installation. The registry is a server of this test. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, copyFile, cp, link, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { packTar } from 'modern-tar';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
const NODE = process.execPath;
const PACKAGE = JSON.stringify({ name: 'own-node', version: '2.0.0', bin: { node: 'node.sh' } });

describe('the packages of a checkout', () => {
  let checkout: string;
  let archive: Buffer;
  let registry: Server;
  let origin: string;

  beforeEach(async () => {
    const files = [
      { header: { name: 'package/package.json', size: Buffer.byteLength(PACKAGE) }, body: PACKAGE },
      { header: { name: 'package/node.sh', size: NODE.length + 21, mode: 0o755 }, body: `#!/bin/sh\nexec "${NODE}" "$@"` },
    ].map(({ header, body }) => ({ header: { ...header, size: Buffer.byteLength(body) }, body }));
    archive = gzipSync(await packTar(files));
    registry = createServer((req, res) => {
      if (req.url?.endsWith('.tgz') === true) res.end(archive);
      else res.setHeader('content-type', 'application/json').end('{}');
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    const address = registry.address();
    origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    checkout = await createCheckout();
  });
  afterEach(async () => {
    registry.closeAllConnections();
    registry.close();
    await rm(checkout, { recursive: true, force: true });
  });

  /** With the Node of an older lock file, as a package of its own. */
  async function createCheckout(): Promise<string> {
    const directory = await mkdtemp(path.join(tmpdir(), 'svc-replace-'));
    await cp(path.join(ROOT, 'scripts'), path.join(directory, 'scripts'), { recursive: true });
    const packages = path.join(directory, 'node_modules');
    await mkdir(path.join(packages, 'old-node/bin'), { recursive: true });
    await mkdir(path.join(packages, '.bin'));
    const program = path.join(packages, 'old-node/bin/node');
    await link(NODE, program).catch(async () => {
      await copyFile(NODE, program);
      await chmod(program, 0o755);
    });
    await symlink('../old-node/bin/node', path.join(packages, '.bin/node'));
    const scripts = { ready: 'node scripts/ensure-installed.mjs && node --print "1 + 1"' };
    const dependencies = { 'own-node': '2.0.0' };
    const facts = { name: 'checkout', version: '1.0.0', dependencies };
    await writeFile(path.join(directory, 'package.json'), JSON.stringify({ ...facts, scripts }));
    const resolved = `${origin}/own-node/-/own-node-2.0.0.tgz`;
    const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
    const locked = { '': facts, 'node_modules/own-node': { version: '2.0.0', resolved, integrity, bin: { node: 'node.sh' } } };
    await writeFile(path.join(directory, 'package-lock.json'), JSON.stringify({ ...facts, lockfileVersion: 3, packages: locked }));
    return directory;
  }

  /** As people do it whose PATH has the Node of the checkout. */
  async function ready(): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
    const own = Object.entries(process.env).filter(([key]) => !/^npm_/i.test(key));
    const env = {
      ...Object.fromEntries(own),
      PATH: `${path.join(checkout, 'node_modules/.bin')}:${process.env['PATH']}`,
      HOME: checkout,
      npm_config_registry: `${origin}/`,
      npm_config_replace_registry_host: 'never',
      npm_config_cache: path.join(checkout, 'cache'),
      npm_config_fetch_retries: '0',
    };
    const child = spawn('npm', ['run', '--silent', 'ready'], { cwd: checkout, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    return { code: await new Promise((resolve) => child.once('close', resolve)), out, err };
  }

  const installed = async (): Promise<readonly string[]> =>
    (await readdir(path.join(checkout, 'node_modules'))).filter((name) => !name.startsWith('.'));

  test('are replaced by the Node that is one of them, after the lock file has changed', async () => {
    expect(await ready()).toMatchObject({ code: 0, out: '2\n', err: expect.stringContaining('Installed in') });
    expect(await installed()).toEqual(['own-node']);
    expect(await readdir(path.join(checkout, '.svc'))).toEqual([]);
    expect(await ready()).toEqual({ code: 0, out: '2\n', err: '' });
  }, 120_000);

  test('stay as they were if others cannot be installed', async () => {
    const lock = path.join(checkout, 'package-lock.json');
    const right = await readFile(lock, 'utf8');
    await writeFile(lock, right.replace(/sha512-[^"]+/, `sha512-${'A'.repeat(86)}==`));
    const failed = await ready();
    expect(failed).toMatchObject({ code: 1, out: '' });
    expect(failed.err.trim().split('\n').at(-1)).toMatch(/^Could not install the packages\. Run "npm cache clean --force"/);
    expect(await installed()).toEqual(['old-node']);
    await writeFile(lock, right);
    expect(await ready()).toMatchObject({ code: 0, out: '2\n' });
  }, 120_000);
});
