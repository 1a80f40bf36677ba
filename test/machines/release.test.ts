import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { describeWithMachine } from '../support/require/require-machine.ts';

/** Here only because the archive is built for the suites of this folder anyway. */
describeWithMachine('The release archive and the package', () => {
  test('are the same, byte for byte, when they are built again', () => {
    const again = mkdtempSync(path.join(tmpdir(), 'svc-release-again-'));
    try {
      execFileSync(process.execPath, ['scripts/build-release.mjs', '--out', again], { stdio: 'ignore' });
      expect(checksumIn(again)).toBe(checksumIn(process.env['SVC_TEST_RELEASE'] ?? ''));
    } finally {
      rmSync(again, { recursive: true });
    }
  }, 300_000);

  test('contain the documentation and the manual page', () => {
    const folder = process.env['SVC_TEST_RELEASE'] ?? '';
    const [archive = ''] = globSync(path.join(folder, '*.tar.gz'));
    const listed = execFileSync('tar', ['--list', '--file', archive], { encoding: 'utf8' });
    for (const file of ['docs/installing.md', 'docs/reference/svcctl.md', 'share/man/man1/svcctl.1'])
      expect(listed).toContain(`/${file}\n`);
    expect(listed).not.toContain('/docs/decisions/');
  });
});

function checksumIn(folder: string): string {
  const files = globSync(path.join(folder, '*.sha256')).toSorted();
  expect(files.map((file) => path.extname(path.basename(file, '.sha256')))).toEqual(['.gz', '.deb']);
  return files.map((file) => readFileSync(file, 'utf8')).join('');
}
