/** The scripts of the installer, as `shellcheck` sees them. It must be on the PATH; without it, the test is skipped loudly, or fails where it is required. */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const found = spawnSync('shellcheck', ['--version']).status === 0;
const isRequired = process.env['SVC_TEST_REQUIRE']?.includes('shellcheck') === true;
if (!found && !isRequired) process.stderr.write('SKIPPED "shellcheck": it is not on the PATH\n');

(found || isRequired ? test : test.skip)('shellcheck has nothing to say about the scripts of the installer', () => {
  const scripts = globSync('installer/**/*.sh');
  expect(scripts).toContain('installer/install.sh');
  const { status, stdout, error } = spawnSync('shellcheck', scripts, { encoding: 'utf8' });
  expect({ status, stdout, error }).toEqual({ status: 0, stdout: '', error: undefined });
});
