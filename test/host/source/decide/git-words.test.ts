import { describe, expect, test } from '@jest/globals';
import { explainFetch, isDamaged, lastLine, schemeOf, sshCommand } from '../../../../src/host/source/decide/git-words.ts';

describe('explainFetch', () => {
  const words = { url: 'ssh://git@git.example.com/a.git', ref: 'main' };
  // As git 2.39 and OpenSSH 9.2 print them.
  test.each([
    ["fatal: couldn't find remote ref main", 'RefMissing', 'has no branch or tag "main"'],
    ['error: file write error: No space left on device\nfatal: unable to write', 'FetchFailed', 'the disk of the state directory is full'],
    [
      'Host key verification failed.\nfatal: Could not read from remote repository.',
      'FetchFailed',
      'check the host, and "SVC_GIT_KNOWN_HOSTS"',
    ],
    ['@ WARNING: UNPROTECTED PRIVATE KEY FILE! @\ngit@host: Permission denied (publickey).', 'FetchFailed', '"chmod 600" it'],
    ['Load key "/key": error in libcrypto\nPermission denied (publickey).', 'FetchFailed', 'is no private key'],
    ['git@host: Permission denied (publickey).', 'FetchFailed', 'it refuses the credential'],
    ["fatal: could not read Username for 'https://x': terminal prompts disabled", 'FetchFailed', 'it refuses the credential'],
    ["fatal: unable to access 'https://x/': The requested URL returned error: 403", 'FetchFailed', 'it refuses the credential'],
    ["fatal: unable to access 'https://x/': Could not resolve host: x", 'FetchFailed', 'its host name is not known'],
    [
      "fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate",
      'FetchFailed',
      'its certificate is not trusted',
    ],
    ["fatal: repository 'https://x/' not found", 'FetchFailed', 'there is no repository at this address'],
    ["fatal: unable to access 'https://x/': The requested URL returned error: 301", 'FetchFailed', 'it has moved'],
    ['ssh: connect to host x port 22: Connection refused', 'FetchFailed', 'its server does not answer'],
    ['fatal: something "new"\u0007', 'FetchFailed', 'git says "fatal: something  new  "'],
  ])('%j is %s: %s', (stderr, reason, message) => {
    expect(explainFetch(stderr, words)).toEqual({ reason, message: expect.stringContaining(message) });
  });

  test('a time limit counts more than what git has printed', () => {
    expect(explainFetch('Permission denied', words, 90_000).message).toContain('its server took more than 90 s');
  });
});

test.each([
  ["fatal: Unable to create '/x/shallow.lock': File exists.", true],
  ['error: object file /x is empty', true],
  ['fatal: loose object 1 (stored in x) is corrupt', true],
  ['fatal: not a git repository: /x', true],
  ['Permission denied', false],
])('%j is damage: %j', (stderr, expected) => {
  expect(isDamaged(stderr)).toBe(expected);
});

test.each([
  ['git@git.example.com:a/b.git', 'ssh'],
  ['https://git.example.com/a.git', 'https'],
  ['file:///srv/a.git', 'file'],
])('the protocol of %s is %s', (url, scheme) => {
  expect(schemeOf(url)).toBe(scheme);
});

test('paths in the command of ssh are one word of the shell each', () => {
  const command = sshCommand({ keyFile: "/etc/it's $(touch x) key", knownHosts: undefined, learnedFile: '/state/known hosts' });
  expect(command).toContain(String.raw`-o 'IdentityFile="/etc/it'\''s $(touch x) key"'`);
  expect(command).toContain(`-o 'UserKnownHostsFile="/state/known hosts"' -o 'StrictHostKeyChecking=accept-new'`);
  expect(sshCommand({ keyFile: undefined, knownHosts: '/known', learnedFile: '/x' })).toContain(`"/known"' -o 'StrictHostKeyChecking=yes'`);
});

test('the last line is short', () => {
  expect(lastLine(`a\n${'b'.repeat(500)}\n`)).toBe('b'.repeat(300));
});
