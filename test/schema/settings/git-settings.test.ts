import { describe, expect, test } from '@jest/globals';
import { parseSettings } from '../../../src/schema/settings/settings.ts';

const URL = 'ssh://git@git.example.com/a.git';
function problemsOf(settings: Readonly<Record<string, string>>): string {
  const parsed = parseSettings(settings);
  return parsed.ok ? '' : parsed.problems.join('\n');
}

describe('SVC_GIT_URL', () => {
  test.each([
    URL,
    'ssh://git.example.com:2222/team/a.git',
    'git@git.example.com:team/a.git',
    'git.example.com:~anna/a.git',
    'https://git.example.com/team/a.git',
    'file:///srv/git/a.git',
    'http://127.0.0.1:3000/a.git',
    'git://localhost/a.git',
  ])('accepts %s', (url) => {
    expect(problemsOf({ SVC_GIT_URL: url })).toBe('');
  });

  test.each([
    'https://anna:secret@git.example.com/a.git',
    'https://token@git.example.com/a.git',
    'ext::sh -c "touch /tmp/x"',
    'ssh://-oProxyCommand=touch/a.git',
    '-u/path:x',
    '--upload-pack=touch:x',
    'ssh://git@-host/a.git',
    '/srv/git/a.git',
    'https://git.example.com/a b.git',
    'file:///srv/$(touch x)/a.git',
    'fd::17/foo',
  ])('refuses %s without repeating it', (url) => {
    const problems = problemsOf({ SVC_GIT_URL: url });
    expect(problems).toContain('SVC_GIT_URL: Use a URL such as "ssh://');
    expect(problems).not.toContain('secret');
  });

  test.each(['http://git.example.com/a.git', 'git://git.example.com/a.git', 'http://localhost.example.com/a.git'])(
    '%s needs signatures, and never gets a credential',
    (url) => {
      expect(problemsOf({ SVC_GIT_URL: url })).toContain('anyone on the way could replace commits');
      expect(problemsOf({ SVC_GIT_URL: url, SVC_GIT_ALLOWED_SIGNERS: '/a' })).toBe('');
      expect(problemsOf({ SVC_GIT_URL: url, SVC_GIT_ALLOWED_SIGNERS: '/a', SVC_GIT_KEY: '/k' })).toContain('would be sent unencrypted');
    },
  );
});

test.each([
  ['SVC_GIT_REF', 'main', true],
  ['SVC_GIT_REF', 'release/1.2', true],
  ['SVC_GIT_REF', '--upload-pack=x', false],
  ['SVC_GIT_REF', 'a..b', false],
  ['SVC_GIT_REF', 'a:b', false],
  ['SVC_GIT_REF', 'a.lock', false],
  ['SVC_GIT_PATH', 'hosts/gpu-box', true],
  ['SVC_GIT_PATH', '.', true],
  ['SVC_GIT_PATH', '../other', false],
  ['SVC_GIT_PATH', 'a/../b', false],
  ['SVC_GIT_PATH', '/etc', false],
  ['SVC_GIT_PATH', 'a:b', false],
  ['SVC_GIT_INTERVAL', '30s', true],
  ['SVC_GIT_INTERVAL', '100ms', false],
  ['SVC_GIT_SELF_HEAL', 'yes', false],
  ['SVC_CHANGE_WINDOWS', 'Mon-Fri 09:00-16:00; Sat,Sun 10:00-12:00', true],
  ['SVC_CHANGE_WINDOWS', '22:00-04:00', true],
  ['SVC_CHANGE_WINDOWS', 'sometimes', false],
  ['SVC_CHANGE_WINDOWS', 'Mon 09:00-16:00;', false],
])('%s=%s is valid: %j', (name, value, isValid) => {
  const problems = problemsOf({ SVC_GIT_URL: URL, [name]: value });
  expect(problems === '').toBe(isValid);
  if (!isValid) expect(problems).toContain(name);
});

test.each(['SVC_GIT_KEY', 'SVC_GIT_KNOWN_HOSTS', 'SVC_GIT_ALLOWED_SIGNERS', 'SVC_GIT_WEBHOOK_SECRET_FILE'])(
  '%s has no effect alone',
  (name) => {
    expect(problemsOf({ [name]: '/a' })).toBe(`"${name}" has no effect without "SVC_GIT_URL": set both, or leave it out`);
  },
);
