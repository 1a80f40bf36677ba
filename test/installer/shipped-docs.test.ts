/** The documentation and the manual page, as the image, the archive and the package contain them. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const TOP = path.resolve(import.meta.dirname, '../..');
let dir = '';

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'svc-docs-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function stage(...directories: readonly string[]): void {
  execFileSync(process.execPath, [path.join(import.meta.dirname, 'stage-docs.mjs'), ...directories], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

test('every page is staged but the records of decisions, and the manual page is where "man" finds it', () => {
  stage(dir);
  const pages = (folder: string): readonly string[] => readdirSync(path.join(folder, 'docs'), { recursive: true, encoding: 'utf8' });
  expect(pages(dir).toSorted()).toEqual(
    pages(TOP)
      .filter((page) => page.split(path.sep)[0] !== 'decisions')
      .toSorted(),
  );
  expect(readFileSync(path.join(dir, 'share/man/man1/svcctl.1'), 'utf8')).toContain('.TH SVCCTL 1');
});

test('the image and the archive stage the service with its documentation', () => {
  for (const script of ['build-release.mjs', 'stage-image.mjs']) {
    expect(readFileSync(path.join(TOP, 'scripts', script), 'utf8')).toMatch(/^ {2,4}await stageService\(/m);
  }
});

const hasDpkg = ['/usr/bin/dpkg-deb', '/usr/local/bin/dpkg-deb'].some((file) => existsSync(file));
(hasDpkg ? test : test.skip)('the package lists the pages and the manual page, with links for "man" and in /usr/share/doc', () => {
  const release = path.join(dir, 'release');
  mkdirSync(path.join(dir, 'out'));
  stage(release, path.join(dir, 'out'));
  const [deb = ''] = readdirSync(path.join(dir, 'out'));
  const listed = execFileSync('dpkg-deb', ['--contents', path.join(dir, 'out', deb)], { encoding: 'utf8' });
  for (const entry of [
    './opt/svc/1.2.3/share/man/man1/svcctl.1\n',
    './opt/svc/1.2.3/docs/installing.md\n',
    './usr/share/man/man1/svcctl.1.gz\n',
    './usr/share/lintian/overrides/svc\n',
    './usr/share/doc/svc/docs -> /opt/svc/current/docs\n',
  ]) {
    expect(listed).toContain(entry);
  }
});
