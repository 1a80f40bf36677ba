/** The real service and the real command line where something else stands in the place of each file that they read. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseSettings, SettingsSchema } from '../../src/schema/settings/settings.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { ODD_ENTRIES, plant, problemOf } from '../support/odd-entries.ts';
import { freePort } from '../support/free-port.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

const SECRET = 'a-secret-of-the-proxy';
const ADMIN = { 'x-forwarded-email': 'anna', 'x-svc-proxy-secret': SECRET };
/** Files of users. */
const NAMED = ['slots/odd.toml', 'tokens.toml', 'toolboxes.toml', 'models.toml'];
/** Files that the service wrote. */
const RECORDS = ['service.json', 'status/primary.json', 'slots/primary.json', 'timelines/primary.jsonl', 'token-use.json', 'models.json'];

describe.each(ODD_ENTRIES)('%s in the place of every file', (kind) => {
  let service: Service;
  let hub: string;
  beforeAll(async () => {
    hub = await mkdtemp(join(tmpdir(), 'svc-hub-'));
    const environment = { SVC_AUTH_ENABLED: '1', SVC_PROXY_SECRET: SECRET, HF_TOKEN_PATH: join(hub, 'token') };
    service = await startService({ runtime: 'process', environment });
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-owl"\n');
    await service.kill('SIGTERM');
    for (const name of NAMED) await plant(kind, join(service.configDir, name));
    for (const name of RECORDS) await plant(kind, join(service.dir, 'state', name));
    await plant(kind, join(service.configDir, 'profiles', 'evening', 'odd.toml'));
    await plant(kind, join(service.modelsDir, 'odd.gguf'));
    await plant(kind, join(hub, 'token'));
    await service.save('embed', 'enabled = false\nprovider = "gguf"\n[model]\ndefault = "odd.gguf"\n');
    await service.start();
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await rm(hub, { recursive: true, force: true });
  }, 60_000);
  const get = async (path: string): Promise<string> => await (await fetch(`${service.url}${path}`, { headers: ADMIN })).text();

  test('the service starts, names each file and what it is, and its slots answer', async () => {
    for (const name of NAMED) {
      const place = join(service.configDir, name);
      await eventually(`the log says what "${name}" is`, () =>
        service
          .output()
          .split('\n')
          .some((line) => line.includes(place) && line.includes(problemOf(kind))),
      );
    }
    expect(await get('/api/profiles/evening')).toContain(problemOf(kind));
    await eventually(
      'the model answers',
      async () => {
        const answer = await fetch(`${service.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { ...ADMIN, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'primary', max_tokens: 3, messages: [{ role: 'user', content: 'Hello' }] }),
        });
        return answer.status === 200;
      },
      60_000,
    );
    await get('/api/slots/embed/explain');
    await get('/api/models');
  }, 90_000);

  test('it ends on SIGTERM', async () => {
    await service.kill('SIGTERM');
    expect(service.pid()).toBe(0);
  }, 30_000);
});

describe('the command line', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-odd-'));
  });
  afterAll(async () => await rm(dir, { recursive: true, force: true }));

  test.each(ODD_ENTRIES)(
    'refuses %s with its name',
    async (kind) => {
      const config = join(dir, 'config');
      for (const name of ['slots/odd.toml', 'toolboxes.toml', 'models.toml', 'tokens.toml']) await plant(kind, join(config, name));
      await plant(kind, join(dir, 'home/svc/token'));
      await mkdir(join(dir, 'state'), { recursive: true });
      const env = { SVC_CONFIG_DIR: config, SVC_STATE_DIR: join(dir, 'state'), XDG_CONFIG_HOME: join(dir, 'home'), HOME: dir };
      const odd = join(config, 'slots/odd.toml');
      const doctor = await svcctl(['doctor'], { env });
      for (const name of ['odd.toml', 'toolboxes.toml', 'models.toml'])
        expect(doctor.out.split('\n').find((line) => line.includes(name))).toContain(problemOf(kind));
      for (const args of [
        ['validate', '-f', odd],
        ['get', 'slots', '--token-file', odd],
        ['hardware', '-f', odd],
        ['toolbox', 'list'],
        ['token', 'list'],
      ]) {
        if (kind === 'a directory' && args[0] === 'validate') continue;
        const { code, out, err } = await svcctl(args, { env });
        expect({ args, text: out + err, failed: code !== 0 || args[0] === 'toolbox' || args[0] === 'token' }).toEqual({
          args,
          text: expect.stringContaining(problemOf(kind)),
          failed: true,
        });
      }
      const home = await svcctl(['get', 'slots'], { env });
      expect([home.code, home.err]).toEqual([1, expect.stringContaining(`"${join(dir, 'home/svc/token')}" ${problemOf(kind)}`)]);
      const listen = await new Promise<string>((resolve) =>
        execFile(process.execPath, ['src/cli/install.ts', 'listen', odd], { timeout: 30_000 }, (_error, out, err) => resolve(out + err)),
      );
      expect(listen).toContain(`"${odd}" ${problemOf(kind)}`);
    },
    120_000,
  );

  test.each(ODD_ENTRIES)('refuses %s as a kubeconfig, given in any way, and so does the service', async (kind) => {
    const odd = join(dir, 'kubeconfig');
    await plant(kind, odd);
    const env = { SVC_CONFIG_DIR: dir, SVC_STATE_DIR: join(dir, 'state') };
    for (const [args, more] of [
      [['-n', 'svc', 'get', 'slots'], { KUBECONFIG: odd }],
      [['--kubeconfig', odd, 'get', 'slots'], {}],
      [['--kubeconfig', odd, 'doctor'], {}],
      [['serve'], { KUBECONFIG: odd, SVC_RUNTIME: 'kube', SVC_LISTEN: '127.0.0.1:0' }],
    ] as const) {
      const { code, out, err } = await svcctl(args, { env: { ...env, ...more } });
      expect({ args, text: out + err }).toEqual({ args, text: expect.stringContaining(`"${odd}" ${problemOf(kind)}`) });
      expect(code).not.toBe(0);
    }
  });

  test('still reads a token from the pipe that a shell passes', async () => {
    const ran = await svcctl(['get', 'slots', '--token-file', '/dev/stdin', '--server', 'http://127.0.0.1:1'], { input: 'svc_x\n' });
    expect(ran.err).not.toContain('named pipe');
  });
});

describe('a setting that names a file or a directory', () => {
  /** Settings that have no meaning alone. */
  const SOURCE = { SVC_GIT_URL: 'file:///no/repository.git' };
  const COMPANIONS: Readonly<Record<string, object>> = {
    SVC_LIMITS_PASSWORD_FILE: { SVC_LIMITS_URL: 'redis://127.0.0.1:1' },
    SVC_GIT_KEY: SOURCE,
    SVC_GIT_KNOWN_HOSTS: SOURCE,
    SVC_GIT_ALLOWED_SIGNERS: SOURCE,
    SVC_GIT_WEBHOOK_SECRET_FILE: SOURCE,
  };
  /** Every setting that wants an absolute path, or names a socket. */
  const paths = Object.keys(SettingsSchema.shape).filter((name) => {
    const parsed = parseSettings({ [name]: 'relative/path' });
    return name.endsWith('_SOCKET') || (!parsed.ok && parsed.problems.join().includes('absolute'));
  });
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-odd-'));
  });
  afterAll(async () => await rm(dir, { recursive: true, force: true }));

  /**
   * Where a directory belongs, every other kind is the same to the system: not a directory. Each file meets two kinds, and each kind several
   * files: a start takes a second, and the first part puts every kind in the place of the files that each service reads.
   */
  const kindsOf = (name: string, index: number): readonly string[] =>
    name.endsWith('_DIR')
      ? ['a named pipe', 'a socket']
      : [0, 1].map((more) => String(ODD_ENTRIES[(2 * index + more) % ODD_ENTRIES.length]));

  test.each(paths.flatMap((name, index) => kindsOf(name, index).map((kind) => [name, kind] as const)))(
    '%s as %s: the service names it and ends, or answers',
    async (name, kind) => {
      const odd = join(dir, 'odd');
      await plant(kind, odd);
      await mkdir(join(dir, 'config'), { recursive: true });
      const port = await freePort();
      const places = { SVC_CONFIG_DIR: join(dir, 'config'), SVC_STATE_DIR: join(dir, 'state'), SVC_MODELS_DIR: join(dir, 'models') };
      const env = {
        ...ownEnvironment(),
        SVC_RUNTIME: 'process',
        SVC_LISTEN: `127.0.0.1:${port}`,
        ...places,
        ...COMPANIONS[name],
        [name]: odd,
      };
      const service = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
      let text = '';
      for (const stream of [service.stdout, service.stderr]) stream.on('data', (bytes: Buffer) => (text += bytes.toString()));
      const ended = once(service, 'exit');
      const answers = () =>
        fetch(`http://127.0.0.1:${port}/api/health/system`).then(
          ({ ok }) => ok,
          () => false,
        );
      await eventually('it has ended or answers', async () => service.exitCode !== null || (await answers()), 30_000);
      if (service.exitCode !== null) expect(text).toContain(odd);
      service.kill('SIGTERM');
      await ended;
      expect(service.signalCode).toBeNull();
    },
    60_000,
  );
});
