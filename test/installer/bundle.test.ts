/** What a release runs: the bundle, away from the sources and their packages. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, startService } from '../support/service.ts';

let release: string;
beforeAll(() => {
  release = mkdtempSync(path.join(tmpdir(), 'svc-bundle-'));
  execFileSync(process.execPath, ['scripts/stage-bundle.mjs', release]);
}, 120_000);
afterAll(() => rmSync(release, { recursive: true, force: true }));

const run = async (env: Readonly<Record<string, string | undefined>>, ...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [path.join(release, 'src/cli/svcctl.mjs'), ...args], { env })).stdout;

test('a bundle serves with authentication and several processes, and has its command line and dashboard', async () => {
  const service = await startService({
    runtime: 'process',
    program: path.join(release, 'src/cli/svcctl.mjs'),
    environment: { SVC_AUTH_ENABLED: '1', SVC_WORKERS: '2' },
  });
  try {
    const env = { ...ownEnvironment(), ...service.environment };
    const token = (await run(env, 'token', 'create', '--label', 'first', '--scope', 'admin')).trim();
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    const body = JSON.stringify({ model: 'primary', max_tokens: 4, messages: [{ role: 'user', content: 'a' }] });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const ask = async (): Promise<number> => (await fetch(`${service.url}/v1/chat/completions`, { method: 'POST', headers, body })).status;
    await eventually('a chat is answered', async () => (await ask()) === 200, 60_000);
    expect(await run({ ...env, SVCCTL_TOKEN: token }, 'get', 'slots', '--server', service.url)).toMatch(/^primary .*demo-fox/m);
    expect(await (await fetch(service.url)).text()).toContain('<title>');
    expect(service.output()).toContain('"2 processes forward requests');
  } finally {
    await service.dispose();
  }
}, 120_000);

test('a bundle has the actions of the installer, which looks for them', async () => {
  const program = path.join(release, 'src/cli/install.ts');
  const actions = [...readFileSync('src/cli/install.ts', 'utf8').matchAll(/action === ('[a-z-]+')/g)].map(([, action = '']) => action);
  expect(actions).toContain("'report'");
  for (const action of actions) expect(readFileSync(program, 'utf8')).toContain(action);
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'listen']);
  expect(stdout).toBe('0.0.0.0:8080\n');
});

test('a bundle has the files that it starts, the licences of all packages, and only native packages beside it', () => {
  const texts = globSync(path.join(release, 'src/*/*.mjs')).map((file) => readFileSync(file, 'utf8'));
  const started = texts.flatMap((text) => [...text.matchAll(/new URL\([`'"](\.\.\/[^`'"]+)/g)].map(([, target = '']) => target));
  expect(started.toSorted()).toEqual(['../archive/bunzip-worker.mjs', '../wiring/worker-main.mjs']);
  for (const target of started) expect(existsSync(path.join(release, 'src/chunks', target))).toBe(true);
  // Node's parser of TypeScript would take 17 MB of memory. Installers ask for this file by its name.
  expect(globSync('{src,toolboxes/demo}/**/*.ts', { cwd: release })).toEqual(['src/cli/install.ts']);
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));
  const licences = readFileSync(path.join(release, 'THIRD-PARTY-LICENSES'), 'utf8');
  for (const [name, version] of Object.entries(dependencies)) expect(licences).toContain(`${name} ${version} (`);
  expect(readdirSync(path.join(release, 'node_modules')).toSorted()).toEqual(['@phc', 'argon2', 'node-gyp-build']);
});

test('a bundle is in ASCII, which takes half of the memory, and loads no part of undici before it downloads something', async () => {
  const files = globSync(path.join(release, 'src/*/*.mjs'));
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((file) => readFileSync(file).some((byte) => byte > 0x7f))).toEqual([]);
  const list = path.join(release, 'modules');
  const service = await startService({
    runtime: 'process',
    program: path.join(release, 'src/cli/svcctl.mjs'),
    environment: { NODE_OPTIONS: `--import ${path.resolve('test/support/list-modules.mjs')}`, SVC_TEST_MODULES: list },
  });
  try {
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    const isReady = async (): Promise<boolean> => /"state": ?"ready"/.test(await (await fetch(`${service.url}/api/slots/primary`)).text());
    await eventually('the slot is ready', isReady, 60_000);
  } finally {
    await service.dispose();
  }
  const modules = readFileSync(list, 'utf8');
  expect(modules).toMatch(/chunks\/serve-/);
  expect(modules).toContain('NativeModule http\n');
  expect(modules.match(/.*undici.*/g)).toBeNull();
  // Nor for podman's socket.
  expect(files.filter((file) => file.includes('podman') && readFileSync(file, 'utf8').includes('undici'))).toEqual([]);
}, 120_000);
