/** Who has signed a commit, as git checks it with keys of SSH and OpenPGP; and machines without git. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createGitRepository, type GitSettings } from '../../../src/host/source/git-repository.ts';
import { makeKey } from '../../support/git/git-servers.ts';
import { createTestRepository, type TestRepository } from '../../support/git/repository.ts';
import { never, openRepository, problemOf, valueOf } from './source-world.ts';

let repository: TestRepository;
let state: string;
beforeEach(async () => {
  repository = await createTestRepository();
  state = await mkdtemp(path.join(tmpdir(), 'svc-source-'));
});
afterEach(async () => {
  await repository.remove();
  await rm(state, { recursive: true, force: true });
});

const open = (settings: Partial<GitSettings> = {}, fetchTimeoutMs?: number) =>
  openRepository({ repository, state, settings, fetchTimeoutMs });

test('without git, the problem says so', async () => {
  const settings = { SVC_GIT_URL: repository.url, SVC_GIT_REF: 'main', SVC_GIT_PATH: '.' };
  const none = { SVC_GIT_KEY: undefined, SVC_GIT_KNOWN_HOSTS: undefined, SVC_GIT_ALLOWED_SIGNERS: undefined };
  const tree = createGitRepository({ settings: { ...settings, ...none }, directory: path.join(state, 'source'), env: { PATH: state } });
  expect(problemOf(await tree.fetch(never))).toContain('GitMissing: The program "git" is not installed');
});

describe('Signatures', () => {
  let keys: string;
  beforeAll(async () => {
    keys = await mkdtemp(path.join(tmpdir(), 'svc-keys-'));
    for (const name of ['anna', 'stranger']) makeKey(path.join(keys, name));
    await writeFile(path.join(keys, 'allowed'), `anna@example.com ${await readFile(path.join(keys, 'anna.pub'), 'utf8')}`);
  });
  afterAll(async () => await rm(keys, { recursive: true, force: true }));

  const signedBySsh = (name: string): readonly string[] => ['-c', 'gpg.format=ssh', '-c', `user.signingkey=${path.join(keys, name)}`];
  async function verdict(signers: string, how: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    await writeFile(path.join(repository.work, 'file'), String(Math.random()));
    await repository.git(['add', '--all']);
    const sign = how.length === 0 ? '--no-gpg-sign' : '--gpg-sign';
    await repository.git([...how, 'commit', '--quiet', '-m', 'signed or not', sign], env);
    await repository.push();
    const tree = open({ SVC_GIT_ALLOWED_SIGNERS: signers });
    const { commit } = valueOf(await tree.fetch(never));
    return problemOf(await tree.verify(commit, never));
  }

  test('of SSH: only those of allowed signers count', async () => {
    const allowed = path.join(keys, 'allowed');
    expect(await verdict(allowed, signedBySsh('anna'))).toBe('none');
    expect(await verdict(allowed, signedBySsh('stranger'))).toContain(`SignatureRefused: No key in "${allowed}" has signed the commit`);
    expect(await verdict(allowed, [])).toContain('SignatureRefused: No key in');
    expect(await verdict(path.join(keys, 'missing'), signedBySsh('anna'))).toContain(
      'SignatureRefused: "SVC_GIT_ALLOWED_SIGNERS" cannot be used',
    );
  }, 60_000);

  test('of OpenPGP: only those of keys in the file count, and neither kind stands for the other', async () => {
    const gpg = (home: string, args: readonly string[]): string =>
      execFileSync(
        'gpg',
        ['--homedir', path.join(keys, home), '--batch', '--quiet', '--pinentry-mode', 'loopback', '--passphrase', '', ...args],
        {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        },
      );
    for (const [home, user] of [
      ['gpg-a', 'anna@example.com'],
      ['gpg-b', 'stranger@example.com'],
    ] as const) {
      execFileSync('mkdir', ['-m', '700', path.join(keys, home)]);
      gpg(home, ['--quick-generate-key', user, 'ed25519', 'sign', 'never']);
    }
    const ring = path.join(keys, 'keys.asc');
    await writeFile(ring, gpg('gpg-a', ['--armor', '--export', 'anna@example.com']));
    const signedBy = (user: string): readonly string[] => ['-c', `user.signingkey=${user}`];
    const homeOf = (home: string) => ({ GNUPGHOME: path.join(keys, home) });
    expect(await verdict(ring, signedBy('anna@example.com'), homeOf('gpg-a'))).toBe('none');
    expect(await verdict(ring, signedBy('stranger@example.com'), homeOf('gpg-b'))).toContain('SignatureRefused');
    expect(await verdict(ring, signedBySsh('anna'))).toContain('SignatureRefused');
    expect(await verdict(path.join(keys, 'allowed'), signedBy('anna@example.com'), homeOf('gpg-a'))).toContain('SignatureRefused');
    for (const home of ['gpg-a', 'gpg-b']) execFileSync('gpgconf', ['--homedir', path.join(keys, home), '--kill', 'all']);
  }, 120_000);
});
