/** The settings that the package for Debian writes: its scripts run here on a directory in the place of the machine, and programs that change the machine do nothing. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const NOTHING = ['chown', 'deb-systemd-helper', 'deb-systemd-invoke', 'getent', 'install', 'systemctl', 'useradd', 'userdel', 'usermod'];
const SECRET = /^SVC_PROXY_SECRET=([0-9a-f]{64})$/m;

let root = '';
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'svc-package-'));
  mkdirSync(path.join(root, 'bin'));
  for (const name of NOTHING) writeFileSync(path.join(root, 'bin', name), '#!/bin/sh\n', { mode: 0o755 });
  for (const part of ['lib', 'templates', 'deb'])
    cpSync(path.join('installer', part), path.join(root, 'opt/svc/1.2.3/installer', part), { recursive: true });
  mkdirSync(path.join(root, 'etc/svc/slots'), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

/** Runs a script of the package as dpkg does, with each path of the machine in the directory. */
function run(name: string, ...args: readonly string[]): void {
  const moved = ['/etc/', '/opt/', '/var/', '/run/'].map((prefix) => `s#\\(^\\|[ "=]\\)${prefix}#\\1${root}${prefix}#g`).join('; ');
  const render = `for file in $(find ${root}/opt -type f); do sed -i '${moved}; s/@RELEASE@/1.2.3/' "$file"; done`;
  const scripts = path.join(root, 'opt/svc/1.2.3/installer/deb');
  if (!existsSync(path.join(root, 'rendered'))) spawnSync('bash', ['-c', `${render}; touch ${root}/rendered`]);
  // Nothing of the machine itself may be named in what runs.
  expect(readFileSync(path.join(scripts, name), 'utf8')).not.toMatch(/(?:^|[\s"'=])\/(?:etc|opt|var|run)\//m);
  const { status, stderr } = spawnSync('bash', [path.join(scripts, name), ...args], {
    env: { PATH: `${root}/bin:${process.env['PATH'] ?? ''}` },
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
}
const settings = (): string => readFileSync(path.join(root, 'etc/svc/api.env'), 'utf8');

test('the first configuration writes the settings with a secret, and later ones keep both', () => {
  run('postinst', 'configure', '');
  const written = settings();
  expect(written).toContain(readFileSync('installer/templates/api.env', 'utf8'));
  expect(written).toMatch(SECRET);
  run('postinst', 'configure', '1.2.2');
  expect(settings()).toBe(written);
});

test('settings from before get a secret of their own, and stay as they are otherwise', () => {
  writeFileSync(path.join(root, 'etc/svc/api.env'), 'SVC_LOG_LEVEL=warn\n');
  run('postinst', 'configure', '1.2.2');
  expect(settings().replace(SECRET, 'SECRET')).toBe('SVC_LOG_LEVEL=warn\nSECRET\n');
});

test('two machines get two secrets', () => {
  run('postinst', 'configure', '');
  const first = SECRET.exec(settings())?.[1];
  rmSync(path.join(root, 'etc/svc/api.env'));
  run('postinst', 'configure', '');
  expect(SECRET.exec(settings())?.[1]).not.toBe(first);
});

test('removing the package keeps the secret, and purging removes it', () => {
  run('postinst', 'configure', '');
  run('postrm', 'remove');
  expect(settings()).toMatch(SECRET);
  run('postrm', 'purge');
  expect(existsSync(path.join(root, 'etc/svc'))).toBe(false);
});
