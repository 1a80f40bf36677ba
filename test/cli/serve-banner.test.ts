/** What `svcctl serve` says about who can reach it. */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { withCheckoutSettings } from '../../src/cli/installation.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { recordingFile } from '../support/hardware/recorded-machines.ts';
import { ownEnvironment } from '../support/service.ts';

const WARNING = 'Anyone who can reach these addresses can use the models, read logs and change slots, because authentication is off';

describe('svcctl serve', () => {
  let dir = '';
  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'svc-banner-'));
    await mkdir(path.join(dir, 'config/slots'), { recursive: true });
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  /** Starts the service, stops it after `meanwhile`, or as soon as it listens, and returns everything that it has written. */
  async function outputOf(
    listen: string,
    args: readonly string[],
    settings: Readonly<Record<string, string>> = {},
    meanwhile: (output: string) => Promise<void> = async () => undefined,
  ): Promise<string> {
    let output = '';
    const directories = { SVC_CONFIG_DIR: path.join(dir, 'config'), SVC_STATE_DIR: path.join(dir, 'state') };
    const child = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve', ...args], {
      env: { ...ownEnvironment(), SVC_RUNTIME: 'process', SVC_LISTEN: listen, ...directories, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const closed = new Promise((resolve) => child.once('close', resolve));
    try {
      await eventually('the service listens', () => /listening/i.test(output), 30_000);
      await meanwhile(output);
    } finally {
      child.kill('SIGTERM');
      await closed;
    }
    return output;
  }

  const addresses = (): readonly string[] =>
    Object.values(networkInterfaces()).flatMap((all = []) => all.filter(({ family }) => family === 'IPv4').map(({ address }) => address));

  test.each([
    ['as a service', []],
    ['in a checkout', ['--checkout']],
  ])('%s names every address on which it listens, and says that anyone may use it', async (_how, args) => {
    const port = await freePort();
    const before = addresses();
    const output = await outputOf(`0.0.0.0:${port}`, args);
    // Bridges of containers come and go.
    const lasting = addresses().filter((address) => before.includes(address));
    expect(lasting).toContain('127.0.0.1');
    for (const address of lasting) expect(output).toContain(`http://${address}:${port}`);
    expect(output).toContain(WARNING);
  });

  test.each([
    ['as a service', []],
    ['in a checkout', ['--checkout']],
  ])('%s warns of nobody if only this machine can reach it', async (_how, args) => {
    const port = await freePort();
    const output = await outputOf(`127.0.0.1:${port}`, args);
    expect(output).toContain(`http://127.0.0.1:${port}`);
    expect(output).not.toContain('Anyone');
  });

  test.each([
    ['as a service', []],
    ['in a checkout', ['--checkout']],
  ])('%s says that its hardware is that of a recording', async (_how, args) => {
    const file = recordingFile('strix-halo-128gb');
    const listen = `127.0.0.1:${await freePort()}`;
    const warning = 'not the hardware of this machine';
    expect(await outputOf(listen, args, { SVC_HARDWARE_FILE: file })).toContain(warning);
    expect(await outputOf(listen, args)).not.toContain('SVC_HARDWARE_FILE');
  });

  test.each(['0', '1'])(
    'prints commands that work with SVC_AUTH_ENABLED=%s, one after the other in a shell, and names the page',
    async (auth) => {
      const port = await freePort();
      const settings = { SVC_AUTH_ENABLED: auth };
      const output = await outputOf(`127.0.0.1:${port}`, ['--checkout'], settings, async (banner) => {
        const commands = [...banner.matchAll(/^ {2}(?:Create a token|Send a prompt|List the slots) +(.*)$/gm)].map(
          ([, command]) => command,
        );
        expect(commands).toHaveLength(auth === '1' ? 3 : 2);
        const { stdout } = await promisify(execFile)('bash', ['-ec', commands.join('\necho\n')], { env: ownEnvironment() });
        // Without slots, the request is refused, and not its sender.
        expect(stdout).toContain('"code":"model.not_found"');
      });
      const page = path.resolve('dashboard/dist');
      if (existsSync(page)) expect(output).toContain(`Open the page     http://127.0.0.1:${port}/\n`);
      else expect(output).not.toContain('Open the page');
    },
  );
  test('as a service with authentication says that local programs can forge the name of an administrator, unless a proxy must prove itself', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const warning = 'Every program at 127.0.0.1 or ::1 can be an administrator';
    expect(await outputOf(listen, [], { SVC_AUTH_ENABLED: '1' })).toContain(warning);
    const secret = 'secret-of-the-proxy-0123456789';
    expect(await outputOf(listen, [], { SVC_AUTH_ENABLED: '1', SVC_PROXY_SECRET: secret })).not.toContain('administrator');
    expect(await outputOf(listen, [])).not.toContain('administrator');
  });

  test('listens on loopback in a checkout unless told otherwise', () => {
    expect(withCheckoutSettings({})['SVC_LISTEN']).toBe('127.0.0.1:8080');
    expect(withCheckoutSettings({ SVC_LISTEN: '0.0.0.0:80' })['SVC_LISTEN']).toBe('0.0.0.0:80');
  });
});
