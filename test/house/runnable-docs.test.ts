/** Commands in blocks of the documentation whose fence says "sh runnable" work, in their order, against a service with demo models in a temporary directory. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { blocksIn } from '../support/doc-blocks.ts';
import { freePort } from '../support/free-port.ts';
import { ownEnvironment, pause, shareEngine, shareSpeechEngine } from '../support/service.ts';
import { ROOT } from './lint-fixtures.ts';

/** The address in the documentation, which becomes the one of the service here. */
const WRITTEN = 'localhost:8080';
const STARTED_WITHIN_MS = 120_000;

const BLOCKS = ['README.md', ...globSync('docs/{*,cluster/*}.md', { cwd: ROOT }).toSorted()].flatMap((page) =>
  blocksIn(page, readFileSync(join(ROOT, page), 'utf8')).filter(({ marks }) => marks.includes('runnable')),
);

describe('blocks that are marked as runnable', () => {
  let dir = '';
  let port = 0;
  let service: ChildProcess;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-docs-'));
    port = await freePort();
    await Promise.all([shareEngine(join(dir, '.svc/state')), shareSpeechEngine(join(dir, '.svc/state'))]);
    await mkdir(join(dir, 'bin'));
    await writeFile(join(dir, 'bin/svcctl'), `#!/bin/sh\nexec node "${ENTRY}" "$@"\n`, { mode: 0o755 });
    // curl ends with 0 after an error of the server otherwise.
    await writeFile(join(dir, '.curlrc'), 'fail-with-body\nsilent\nshow-error\n');
    service = spawn(process.execPath, [ENTRY, 'serve', '--checkout'], { cwd: dir, env: environment(), stdio: 'ignore' });
    const begin = Date.now();
    while ((await run('svcctl wait slot/primary slot/embed --for condition=Ready --timeout 60s')).code !== 0) {
      if (Date.now() - begin > STARTED_WITHIN_MS) throw new Error('The service did not become ready');
      await pause(200);
    }
  }, STARTED_WITHIN_MS + 60_000);

  afterAll(async () => {
    const ended = new Promise((resolve) => service.once('exit', resolve));
    service.kill('SIGINT');
    await ended;
    await rm(dir, { recursive: true, force: true });
  }, 60_000);

  const ENTRY = join(ROOT, 'src/cli/svcctl.mjs');

  function environment(): Record<string, string | undefined> {
    return {
      ...ownEnvironment(),
      // A llama-server on the PATH would take precedence over the embedded engine.
      PATH: [join(dir, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter),
      HOME: dir,
      CURL_HOME: dir,
      SVC_LISTEN: `127.0.0.1:${port}`,
      SVC_CONFIG_DIR: join(dir, '.svc/config'),
      SVC_STATE_DIR: join(dir, '.svc/state'),
      SVC_PORT_RANGE: '30300-30399',
    };
  }

  function run(commands: string): Promise<{ readonly code: number | string; readonly output: string }> {
    const script = commands.replaceAll(WRITTEN, `localhost:${port}`);
    return new Promise((resolve) => {
      execFile('bash', ['-euo', 'pipefail', '-c', script], { cwd: dir, env: environment() }, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? (error === null ? 0 : 'killed'), output: stdout + stderr }),
      );
    });
  }

  test.each(BLOCKS.map(({ place, commands }) => [place, commands] as const))(
    '%s',
    async (_place, commands) => {
      const { code, output } = await run(commands);
      expect([code, code === 0 ? '' : output]).toEqual([0, '']);
    },
    120_000,
  );

  test.each(['svcctl get nothing', `curl http://${WRITTEN}/v1/nothing`, 'svcctl explain nobody\ntrue', 'svcctl explain nobody | cat'])(
    'a block with the mistake "%s" would fail',
    async (commands) => {
      expect((await run(commands)).code).not.toBe(0);
    },
    60_000,
  );
});

test('blocks are marked in the README and on pages of tasks, and reach nothing but the service', () => {
  const pages = new Set(BLOCKS.map(({ place }) => place.replace(/:\d+$/, '')));
  expect([...pages]).toEqual(expect.arrayContaining(['README.md', 'docs/api.md', 'docs/first-model.md', 'docs/change-a-model.md']));
  const addresses = BLOCKS.flatMap(({ commands }) => [...commands.matchAll(/https?:\/\/([^/\s'"]+)/g)].map(([, address]) => address));
  expect(new Set(addresses)).toEqual(new Set([WRITTEN]));
});

test('blocks are found with their lines and marks, without their indentation', () => {
  expect(blocksIn('a.md', 'x\n\n   ```sh runnable machine=x\n   a\n     b\n   ```\n\n```sh\nc\n```\n')).toEqual([
    { place: 'a.md:3', marks: ['runnable', 'machine=x'], commands: 'a\n  b\n' },
    { place: 'a.md:8', marks: [], commands: 'c\n' },
  ]);
});
