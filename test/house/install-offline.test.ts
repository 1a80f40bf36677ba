import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** What the project promises for a first installation without a network. */
const WITHIN_MS = 60_000;

describe('the first installation', () => {
  let checkout: string;
  beforeEach(async () => {
    checkout = await mkdtemp(path.join(tmpdir(), 'svc-install-'));
    for (const part of ['package.json', 'package-lock.json', '.npmrc', 'scripts']) {
      await cp(path.join(ROOT, part), path.join(checkout, part), { recursive: true });
    }
  });
  afterEach(() => rm(checkout, { recursive: true, force: true }));

  test(
    'without a network fails within a minute, and says why in its last line',
    async () => {
      // Port 9 is that of the service "discard", which nothing runs: the registry refuses every connection.
      const env = {
        PATH: process.env['PATH'],
        HOME: checkout,
        npm_config_registry: 'http://127.0.0.1:9/',
        npm_config_replace_registry_host: 'always',
        npm_config_cache: path.join(checkout, 'cache'),
      };
      const child = spawn(process.execPath, ['scripts/ensure-installed.mjs'], { cwd: checkout, env });
      let output = '';
      child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
      const code = await new Promise((resolve) => child.once('close', resolve));
      expect({ code, last: output.trim().split('\n').at(-1) }).toEqual({
        code: 1,
        last: 'Could not install the packages. Check the network: npm cannot reach its registry (behind a proxy, set "https_proxy")',
      });
    },
    WITHIN_MS,
  );
});
