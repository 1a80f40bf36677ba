import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { svcctl } from './run-svcctl.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svcctl-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const write = async (name: string, text: string): Promise<string> => {
  const file = path.join(dir, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  return file;
};

const TOML = `enabled = false
provider = "gguf"
node_selector = { "kubernetes.io/arch" = "amd64" }

[model]
default = "m.gguf"
aliases = ["gpt-4o"]

[lifecycle]
idle_timeout = "15m"

[env]
MY_camelCase = "1"
`;

describe('svcctl validate', () => {
  test('names file, line and column of problems in TOML and in YAML', async () => {
    const toml = await write('bad/mine.toml', 'provider = "gguf"\n\n[model]\ndefualt = "x"\n');
    const yaml = await write(
      'bad/two.yaml',
      'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata:\n  name: two\nspec:\n  provider: gguf\n  model:\n    default: x\n    contxt: 5\n',
    );
    const { code, out } = await svcctl(['validate', '-f', path.join(dir, 'bad')]);
    expect(code).toBe(1);
    expect(out).toContain(`${toml}:4:1: model.defualt: Unknown key "defualt"; did you mean "default"?`);
    expect(out).toContain(`${yaml}:9:13: spec.model.contxt: Unknown key "contxt"; did you mean "context"?`);
  });

  test('refuses broken YAML, other kinds and duplicate names, and counts valid slots', async () => {
    const good = 'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata: {name: img}\nspec: {model: {default: x}}\n';
    expect(await svcctl(['validate', '-f', '-'], { input: `${good}---\n${good.replace('img', 'stt')}` })).toMatchObject({
      code: 0,
      out: '2 slots are valid\n',
    });
    expect((await svcctl(['validate', '-f', '-'], { input: `${good}---\n${good}` })).out).toContain('Slot "img" is defined twice');
    expect((await svcctl(['validate', '-f', '-'], { input: 'a: [' })).out).toMatch(/^<stdin>:1:5: Invalid YAML/);
    expect((await svcctl(['validate', '-f', '-'], { input: 'kind: Pod\n' })).out).toBe(
      '<stdin>:1:1: apiVersion: Set "apiVersion" to "inference.svc.dev/v1alpha1" or "inference.svc.dev/v1beta1"\n',
    );
    expect(await svcctl(['validate', '-f', path.join(dir, 'none.toml')])).toMatchObject({ code: 1 });
  });
});

test('validate warns of an alias that two files claim, and accepts them', async () => {
  await write('pair/a.toml', 'provider = "gguf"\n[model]\ndefault = "x"\naliases = ["gpt"]\n');
  await write('pair/b.toml', '[model]\ndefault = "y.gguf"\naliases = ["gpt"]\n');
  const { code, out, err } = await svcctl(['validate', '-f', path.join(dir, 'pair')]);
  expect({ code, out }).toEqual({ code: 0, out: '2 slots are valid\n' });
  expect(err).toContain('a.toml: model: Requests for "gpt" go to this slot or to "b": use another alias\n');
});

test('--version prints the version, and the help of a verb has examples', async () => {
  expect(await svcctl(['--version'])).toMatchObject({ code: 0, out: expect.stringMatching(/^svcctl \d+\.\d+\.\d+\n$/) });
  expect((await svcctl(['wait', '--help'])).out).toContain('\nExamples:\n  svcctl wait slot/primary\n');
});

describe('svcctl convert', () => {
  test('goes from TOML to a resource and back without loss', async () => {
    const file = await write('good/mine.toml', TOML);
    const crd = await svcctl(['convert', '-f', file, '--to', 'crd', '--namespace', 'ai']);
    expect(crd.code).toBe(0);
    expect(crd.out).toContain('metadata:\n  name: mine\n  namespace: ai\n');
    expect(crd.out).toContain('  nodeSelector:\n    kubernetes.io/arch: amd64\n');
    expect(crd.out).toContain('    MY_camelCase: "1"\n');
    const back = path.join(dir, 'back');
    const toml = await svcctl(['convert', '-f', '-', '--to', 'toml', '--output-dir', back], { input: crd.out });
    expect(toml).toMatchObject({ code: 0, out: `${path.join(back, 'mine.toml')}\n` });
    const again = await svcctl(['convert', '-f', path.join(back, 'mine.toml'), '--to', 'crd', '--namespace', 'ai']);
    expect(again.out).toBe(crd.out);
  });

  test('goes from one version of the resource to the other and back without loss', async () => {
    const file = await write('good/mine.toml', TOML);
    const before = (await svcctl(['convert', '-f', file, '--to', 'v1alpha1', '--namespace', 'ai'])).out;
    expect((await svcctl(['convert', '-f', file, '--to', 'crd', '--namespace', 'ai'])).out).toBe(before);
    const later = await svcctl(['convert', '-f', '-', '--to', 'v1beta1'], { input: before });
    expect(later).toMatchObject({ code: 0, out: before.replace('svc.dev/v1alpha1', 'svc.dev/v1beta1') });
    expect((await svcctl(['convert', '-f', '-', '--to', 'v1alpha1'], { input: later.out })).out).toBe(before);
  });

  test('never overwrites a file', async () => {
    const file = await write('good/mine.toml', TOML);
    const { code, err } = await svcctl(['convert', '-f', file, '--to', 'toml', '--output-dir', path.dirname(file)]);
    expect(code).toBe(1);
    expect(err).toContain('already exists');
    expect(await readFile(file, 'utf8')).toBe(TOML);
  });
});

describe('svcctl doctor', () => {
  const doctor = async (env: Record<string, string>) => {
    const { code, out } = await svcctl(['doctor', '-o', 'json'], { env });
    const checks: { name: string; result: string; found: string; hint: string }[] = JSON.parse(out).checks;
    return { code, check: (name: string) => checks.find((entry) => entry.name === name) };
  };

  test('reports no problem with a valid configuration', async () => {
    await write('etc/slots/primary.toml', '[model]\ndefault = "a"\n');
    await mkdir(path.join(dir, 'models'), { recursive: true });
    const env = { SVC_CONFIG_DIR: path.join(dir, 'etc'), SVC_STATE_DIR: dir, SVC_LISTEN: '127.0.0.1:0' };
    const { code, check } = await doctor(env);
    expect(code).toBe(0);
    for (const name of ['node', 'settings', 'configuration', 'slots', 'models', 'catalogue', 'address'])
      expect(check(name)?.result).toBe('ok');
  });

  test('reads the settings of the service, and warns where a local program can be an administrator', async () => {
    await write('etc3/slots/primary.toml', '[model]\ndefault = "a"\n');
    await write('etc3/api.env', 'SVC_AUTH_ENABLED=1\nSVC_LISTEN=127.0.0.1:0\n');
    const env = { SVC_CONFIG_DIR: path.join(dir, 'etc3'), SVC_STATE_DIR: dir };
    expect((await doctor(env)).check('authentication')).toMatchObject({
      result: 'warn',
      found: expect.stringContaining('Every program at 127.0.0.1 or ::1 can be an administrator'),
      hint: expect.stringContaining('Set SVC_PROXY_SECRET'),
    });
    for (const fixed of [{ SVC_PROXY_SECRET: 'x'.repeat(16) }, { SVC_TRUSTED_PROXIES: '' }, { SVC_AUTH_ENABLED: '0' }])
      expect((await doctor({ ...env, ...fixed })).check('authentication')).toBeUndefined();
  });

  test('fails on an invalid slot file and a missing directory, and says what to do', async () => {
    await write('etc2/slots/primary.toml', '[model]\ndefault = 5\n');
    const bad = await doctor({ SVC_CONFIG_DIR: path.join(dir, 'etc2'), SVC_LISTEN: '127.0.0.1:0' });
    expect(bad.code).toBe(1);
    expect(bad.check('slots')).toMatchObject({ result: 'fail', found: expect.stringContaining('primary.toml:2:') });
    await write('etc2/models.toml', '[[models]]\nid = "a/b"\n');
    await write('etc2/toolboxes.toml', '[gguf.cpi]\nimage = "x"\n');
    const mistaken = await doctor({ SVC_CONFIG_DIR: path.join(dir, 'etc2'), SVC_LISTEN: '127.0.0.1:0' });
    expect(bad.check('catalogue')).toMatchObject({ result: 'ok', found: 'Catalogue of 2026-11-26' });
    expect(mistaken.check('catalogue')).toMatchObject({ result: 'fail', found: expect.stringContaining('models.toml:2:1: models.0.id') });
    expect([bad, mistaken].map(({ check }) => check('toolboxes'))).toMatchObject([
      { result: 'ok' },
      { result: 'fail', found: expect.stringMatching(/toolboxes\.toml:1:7: gguf\.cpi: Unknown key "cpi"; did you mean "cpu"\?/) },
    ]);
    const none = await doctor({ SVC_CONFIG_DIR: path.join(dir, 'nowhere') });
    expect(none.check('configuration')).toMatchObject({ result: 'fail', hint: expect.stringContaining('SVC_CONFIG_DIR') });
    const unknown = await doctor({ SVC_LISTN: 'x' });
    expect(unknown.check('settings')).toMatchObject({ result: 'fail', found: expect.stringContaining('SVC_LISTN') });
  });
});

describe('svcctl doctor, while a service answers', () => {
  const status = { version: '0.3.0', runtime: 'process', auth_enabled: false };
  const service = createServer((_request, response) => response.end(JSON.stringify(status)));
  beforeAll(() => once(service.listen(0, '127.0.0.1'), 'listening'));
  afterAll(() => void service.close().closeAllConnections());

  const doctor = async (holder?: object) => {
    const stateDir = path.join(dir, holder === undefined ? 'unused' : 'used');
    if (holder !== undefined) await write('used/service.json', JSON.stringify({ since: '2026-01-01T00:00:00.000Z', ...holder }));
    const address = service.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const env = { SVC_CONFIG_DIR: path.join(dir, 'etc'), SVC_STATE_DIR: stateDir, SVC_LISTEN: `0.0.0.0:${port}` };
    const { out } = await svcctl(['doctor', '-o', 'json'], { env });
    const checks: { name: string; result: string; found: string; hint: string }[] = JSON.parse(out).checks;
    return { stateDir, check: (name: string) => checks.find((entry) => entry.name === name) };
  };
  const ended = spawnSync('true').pid;

  test.each([
    ['nothing uses its state directory', undefined],
    ['the service that used its state directory has ended', { pid: ended, host: hostname() }],
  ])('does not take it for the service of these settings when %s', async (_when, holder) => {
    const { stateDir, check } = await doctor(holder);
    expect(check('address')).toMatchObject({
      result: 'warn',
      found: expect.stringMatching(/^svc 0\.3\.0 answers at 0\.0\.0\.0:\d+ with other settings: it does not use ".*"$/),
      hint: expect.stringContaining('svcctl doctor --checkout'),
    });
    expect(check('address')?.found).toContain(`"${stateDir}"`);
    // These settings do not say where the other service listens, nor who may use it.
    expect([check('access'), check('chat')]).toEqual([undefined, undefined]);
  });

  test.each([
    ['it uses the state directory', { pid: process.pid, host: hostname() }],
    ['the user of the state directory cannot be known, as in another container', { pid: ended, host: 'elsewhere' }],
  ])('says where it listens when %s', async (_when, holder) => {
    const { check } = await doctor(holder);
    expect(check('address')).toMatchObject({ result: 'ok', found: expect.stringContaining('svc 0.3.0 answers at 0.0.0.0:') });
    expect(check('access')).toBeDefined();
  });

  test('warns while requests are captured', async () => {
    Object.assign(status, { captures: 2 });
    const { check } = await doctor({ pid: process.pid, host: hostname() });
    Object.assign(status, { captures: 0 });
    expect(check('address')).toMatchObject({
      result: 'warn',
      found: expect.stringContaining('recorded by 2 captures'),
      hint: expect.stringContaining('svcctl capture stop'),
    });
  });
});

describe('svcctl completion', () => {
  /** Stands in for the program, as the shell would call it. */
  const LISTER = `#!/bin/sh
case "$*" in
  "get slots -o name") echo slot/mine ;;
  "get models -o name") echo model/demo-fox ;;
  "get slots -o name --server http://other") echo slot/other ;;
esac
`;
  const complete = async (line: string, PATH = process.env['PATH']): Promise<string[]> => {
    const { out } = await svcctl(['completion', 'bash']);
    const words = line.split(' ');
    const script = `${out}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})\nCOMP_CWORD=${words.length - 1}\n_svcctl\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', script], {
      encoding: 'utf8',
      cwd: dir,
      env: { ...process.env, PATH },
    });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    return stdout.split('\n').filter((word) => word !== '');
  };

  test('bash completes verbs, subcommands, options, values and files', async () => {
    expect(await complete('svcctl sl')).toEqual(['slot']);
    expect(await complete('svcctl slot ')).toEqual(expect.arrayContaining(['load', 'unload', 'restart', 'logs', 'create', 'delete']));
    expect(await complete('svcctl --server http://x slot lo')).toEqual(['load', 'logs']);
    expect(await complete('svcctl slot load --mo')).toEqual(['--model']);
    expect(await complete('svcctl get mo')).toEqual(['models']);
    expect(await complete('svcctl get slots -o ')).toEqual(['table', 'wide', 'json', 'yaml', 'name', 'csv']);
    expect(await complete('svcctl slot logs -f pri')).toEqual(['primary']);
    await write('slots.yaml', '');
    expect(await complete('svcctl apply -f slots.y')).toEqual(['slots.yaml']);
  });

  test('bash completes conditions and states, also after the sign at which it splits words', async () => {
    expect(await complete('svcctl wait slot/a --for condition')).toContain('condition=UpToDate');
    expect(await complete('svcctl wait slot/a --for condition = Up')).toEqual(['UpToDate']);
    expect(await complete('svcctl wait slot/a --for state = ')).toContain('ready');
    expect(await complete('svcctl slot create x --backend cu')).toEqual(['cuda']);
  });

  test('bash completes the slots and models that the service has, asked for with the options on the line', async () => {
    await write('bin/svcctl', LISTER);
    await chmod(path.join(dir, 'bin/svcctl'), 0o755);
    const PATH = `${path.join(dir, 'bin')}:${process.env['PATH'] ?? ''}`;
    expect(await complete('svcctl explain mi', PATH)).toEqual(['mine']);
    expect(await complete('svcctl wait slot/m', PATH)).toEqual(['slot/mine']);
    expect(await complete('svcctl slot load mine --model demo', PATH)).toEqual(['demo-fox']);
    expect(await complete('svcctl --server http://other explain ot', PATH)).toEqual(['other']);
  });

  test('the scripts for zsh and fish contain every verb', async () => {
    for (const shell of ['zsh', 'fish']) {
      const { code, out } = await svcctl(['completion', shell]);
      expect(code).toBe(0);
      for (const verb of ['serve', 'get', 'apply', 'timeline', 'restart']) expect(out).toContain(verb);
    }
  });
});
