/** A core file would contain the tokens that a process has received. None is written, whatever the process dies of. */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ownEnvironment } from '../support/service.ts';

const UNITS = ['templates/svc-api.service', 'templates/svc-chat.service', 'templates/svc-proxy.service', 'quadlet/svc.container'];

async function coreLimitOf(unit: string): Promise<string | undefined> {
  const text = await readFile(path.join('installer', unit), 'utf8');
  const section = text.split(/^(?=\[)/m).find((each) => each.startsWith('[Service]'));
  return /^LimitCORE=(.*)$/m.exec(section ?? '')?.[1];
}

test.each(UNITS)('%s lets no core file be written', async (unit) => {
  expect(await coreLimitOf(unit)).toBe('0');
});

/** Runs node in the directory, with this limit for core files. */
function runIn(directory: string, limit: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const script = 'cd "$1" && ulimit -c "$2" && shift 2 && exec "$@"';
  return spawn('/bin/sh', ['-c', script, 'sh', directory, limit, process.execPath, ...args], {
    env: { ...ownEnvironment(), ...environment },
    stdio: 'ignore',
  });
}

test('a service that is killed by a signal that writes core files, after it has seen tokens, leaves none', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-core-'));
  const at = (name: string): string => path.join(directory, name);
  try {
    await mkdir(at('config/slots'), { recursive: true });
    await mkdir(at('work'));
    const url = `http://127.0.0.1:${await freePort()}`;
    const child = runIn(
      at('work'),
      (await coreLimitOf('templates/svc-api.service')) ?? 'unlimited',
      [path.resolve('src/cli/svcctl.mjs'), 'serve'],
      {
        SVC_LISTEN: url.slice('http://'.length),
        SVC_CONFIG_DIR: at('config'),
        SVC_STATE_DIR: at('state'),
        SVC_RUNTIME: 'process',
        SVC_AUTH_ENABLED: '1',
      },
    );
    const ended = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
    const ask = async (): Promise<number | undefined> =>
      fetch(`${url}/api/slots`, { headers: { authorization: `Bearer svc_00000000.${'A'.repeat(43)}` } }).then(
        ({ status }) => status,
        () => undefined,
      );
    await eventually('a wrong token is refused', async () => (await ask()) === 401, 60_000);
    child.kill('SIGABRT');
    expect(await ended).toBe('SIGABRT');
    expect(await readdir(at('work'))).toEqual([]);
  } finally {
    await rm(directory, { recursive: true });
  }
}, 90_000);
