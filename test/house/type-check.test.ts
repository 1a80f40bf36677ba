/** `npm run check` finds errors of types with oxlint, in one pass with the rules that need types. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from './lint-fixtures.ts';

const FILES = {
  'src/wrong.ts': "export const wrong: number = 'text';\n",
  'src/right.ts': "export const right: string = 'text';\n",
  'test/unused.test.ts': '// @ts-expect-error: nothing is wrong here\nexport const unused = 1;\n',
  'scripts/missing.ts': "import { missing } from './nowhere.ts';\nexport const copy = missing;\n",
  'dashboard/src/page.tsx': 'export const page: number = document.title;\n',
};

test('errors of types are found in the sources, the tests, the scripts and the dashboard', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'svc-types-'));
  try {
    for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json', 'scripts/lint', 'dashboard/tsconfig.json']) {
      await cp(path.join(ROOT, name), path.join(folder, name), { recursive: true });
    }
    await symlink(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
    for (const [name, text] of Object.entries(FILES)) {
      await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
      await writeFile(path.join(folder, name), text);
    }
    const args = [path.join(ROOT, 'node_modules/oxlint/bin/oxlint'), '--type-aware', '--type-check', '--format=unix'];
    const output = await new Promise<string>((resolve) =>
      execFile(process.execPath, args, { cwd: folder }, (_error, stdout) => resolve(stdout)),
    );
    const found = [...output.matchAll(/^([^:]+):.*\[Error\/typescript\((TS\d+)\)\]$/gm)].map(([, file, code]) => `${file} ${code}`);
    expect(found.sort()).toEqual([
      'dashboard/src/page.tsx TS2322',
      'scripts/missing.ts TS2307',
      'src/wrong.ts TS2322',
      'test/unused.test.ts TS2578',
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 60_000);
