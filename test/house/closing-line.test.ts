/** `npm test` ends with one line of counts, and with an exit code that matches it. */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from './lint-fixtures.ts';

const REPORTER = 'test/support/jest/closing-line-reporter.cjs';
/** Each test starts jest twice: to list the suites, and to run them. */
const WITHIN_MS = 60_000;
const imports = "import { test } from '@jest/globals';\n";

async function runTests(
  files: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly lastLine: string | undefined }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-closing-'));
  try {
    for (const path of [
      'package.json',
      'jest.config.mjs',
      'scripts/test.sh',
      'scripts/run-jest.sh',
      'scripts/list-requirements.mjs',
      'test/support/jest/long-suites-first.cjs',
      'test/support/jest/strip-types.cjs',
      REPORTER,
    ]) {
      await cp(join(ROOT, path), join(folder, path));
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'test', name), imports + text);
    const child = spawn('bash', ['scripts/test.sh', '--maxWorkers=1', 'test/'], {
      cwd: folder,
      env: { ...process.env, CI: 'true', SVC_TEST_REQUIRE: '' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, lastLine: output.trimEnd().split('\n').at(-1) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test(
  'all passed: exit code 0',
  async () => {
    const ended = await runTests({ 'one.test.ts': "test('one', () => {});\ntest.skip('two', () => {});\n" });
    expect(ended).toEqual({ code: 0, lastLine: '1 passed, 0 failed, 1 skipped' });
  },
  WITHIN_MS,
);

test(
  'a test that fails and a suite that does not load both count as failed',
  async () => {
    const ended = await runTests({
      'one.test.ts': "test('one', () => { throw new Error('no'); });\n",
      'two.test.ts': "import './not-there.ts';\n",
      'three.test.ts': "test('three', () => {});\n",
    });
    expect(ended).toEqual({ code: 1, lastLine: '1 passed, 2 failed, 0 skipped' });
  },
  WITHIN_MS,
);

test(
  'no test found counts as failed',
  async () => {
    const ended = await runTests({});
    expect(ended).toEqual({ code: 1, lastLine: '0 passed, 1 failed, 0 skipped' });
  },
  WITHIN_MS,
);
