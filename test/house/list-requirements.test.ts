/** `npm test` sets up what the suites import that it runs, and nothing else. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ROOT } from './lint-fixtures.ts';

const FILES = {
  'support/require/require-podman.ts': '',
  'support/world.ts': "import {\n  PODMAN,\n} from './require/require-podman.ts';\n",
  'support/speech.ts': "import { type Server } from './plain.ts';\nimport { SPEECH_IMAGE } from './require/require-podman.ts';\n",
  'support/plain.ts': "import './cycle.ts';\n",
  'support/cycle.ts': "export { x } from './plain.ts';\n",
  'direct.test.ts': "import { describeWithPodman } from './support/require/require-podman.ts';\n",
  'indirect.test.ts': "import { world } from './support/world.ts';\n",
  'speech.test.ts': "import { server } from './support/speech.ts';\n",
  'later.test.ts': "const world = await import('./support/world.ts');\n",
  'plain.test.ts': "// describeWithPodman, SPEECH_IMAGE\nimport { x } from './support/plain.ts';\nimport { y } from '../src/y.ts';\n",
};

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'svc-requirements-'));
  await mkdir(path.join(folder, 'test/support/require'), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) await writeFile(path.join(folder, 'test', name), text);
  await cp(path.join(ROOT, 'scripts/list-requirements.mjs'), path.join(folder, 'scripts/list-requirements.mjs'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function requirementsOf(...suites: readonly string[]): Promise<string> {
  return await new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [path.join(folder, 'scripts/list-requirements.mjs')], (error, stdout) =>
      error === null ? resolve(stdout.trim()) : reject(error),
    );
    child.stdin?.end(suites.map((suite) => `${path.join(folder, 'test', `${suite}.test.ts`)}\n`).join(''));
  });
}

test.each([
  ['direct', 'podman'],
  ['indirect', 'podman'],
  ['later', 'podman'],
  ['speech', 'podman speech'],
  ['plain', ''],
])('the suite "%s" needs "%s"', async (suite, needs) => {
  expect(await requirementsOf(suite)).toBe(needs);
});

test('several suites need what each of them needs, and no suite needs nothing', async () => {
  expect(await requirementsOf('plain', 'indirect', 'speech')).toBe('podman speech');
  expect(await requirementsOf()).toBe('');
});
