/** The adapter on real servers of git: its own protocol, HTTP and SSH; signatures; and what servers and repositories do wrong. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createGitRepository, type GitSettings } from '../../../src/host/source/git-repository.ts';
import { describeWithSshd, startGitDaemon, startGitHttp, startGitSsh, type GitSshServer } from '../../support/git/git-servers.ts';
import { createTestRepository, slotText, type TestRepository } from '../../support/git/repository.ts';
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

/** What the newest commit has in "slots". */
async function textsOf(tree: ReturnType<typeof open>): Promise<Readonly<Record<string, string>>> {
  const { commit } = valueOf(await tree.fetch(never));
  const entries = valueOf(await tree.list(commit, ['slots'], never));
  const contents = valueOf(
    await tree.read(
      entries.map(({ id }) => id),
      never,
    ),
  );
  return Object.fromEntries(entries.map(({ path: name }, index) => [name, String(contents[index])]));
}

describe('A repository', () => {
  test('yields commits with their authors, and texts byte for byte', async () => {
    const text = `${slotText(1)}# ä\u0000\r\nend without a newline`;
    const commit = await repository.commit('first "one"', { 'slots/primary.toml': text, 'slots/empty.toml': '', 'README.md': 'x' });
    const tree = open();
    expect(valueOf(await tree.fetch(never))).toEqual({
      commit,
      subject: 'first "one"',
      author: 'Anna <anna@example.com>',
      at: expect.any(Number),
    });
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': text, 'slots/empty.toml': '' });
  });

  test('is read below a directory, and without one says what to do', async () => {
    await repository.commit('first', { 'hosts/a/slots/primary.toml': slotText(1), 'hosts/b/slots/primary.toml': slotText(2) });
    expect(await textsOf(open({ SVC_GIT_PATH: 'hosts/b' }))).toEqual({ 'slots/primary.toml': slotText(2) });
    const tree = open({ SVC_GIT_PATH: 'hosts/c' });
    const { commit } = valueOf(await tree.fetch(never));
    expect(problemOf(await tree.list(commit, ['slots'], never))).toContain('CommitInvalid: The commit has no directory "hosts/c"');
  });

  test('shows links, submodules and modes as what they are, and follows none', async () => {
    await repository.commit('first', {
      'slots/real.toml': slotText(1),
      'slots/link.toml': { link: '/etc/passwd' },
      engines: { link: '/etc' },
    });
    await repository.git(['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},profiles`]);
    await repository.git(['commit', '--quiet', '-m', 'submodule']);
    await repository.push();
    const tree = open();
    const { commit } = valueOf(await tree.fetch(never));
    const entries = valueOf(await tree.list(commit, ['slots', 'engines', 'profiles'], never));
    expect(Object.fromEntries(entries.map(({ path: name, kind }) => [name, kind]))).toEqual({
      engines: 'link',
      profiles: 'submodule',
      'slots/link.toml': 'link',
      'slots/real.toml': 'file',
    });
    expect(await readdir(path.join(state, 'source'))).toEqual(['repository.git']);
  });

  test('is fetched again after a forced push, a rewritten history and a damaged or locked copy', async () => {
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    const tree = open();
    await textsOf(tree);
    await repository.git(['checkout', '--quiet', '--orphan', 'other']);
    await repository.git(['commit', '--quiet', '--amend', '--allow-empty', '-m', 'rewritten']).catch(() => undefined);
    await writeFile(path.join(repository.work, 'slots/primary.toml'), slotText(2));
    await repository.git(['add', '--all']);
    await repository.git(['commit', '--quiet', '-m', 'rewritten']);
    await repository.push('--force');
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(2) });
    const copy = path.join(state, 'source', 'repository.git');
    await repository.commit('third', { 'slots/primary.toml': slotText(3) });
    await writeFile(path.join(copy, 'shallow.lock'), '');
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(3) });
    await repository.commit('fourth', { 'slots/primary.toml': slotText(4) });
    for (const each of await readdir(path.join(copy, 'objects')))
      if (/^[0-9a-f]{2}$/.test(each))
        for (const object of await readdir(path.join(copy, 'objects', each))) {
          const file = path.join(copy, 'objects', each, object);
          await chmod(file, 0o600);
          await writeFile(file, '');
        }
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(4) });
  }, 60_000);

  test('of 50 MB is fetched, and its later commits cost little', async () => {
    for (const repo of [repository.work, repository.bare]) await repository.git(['-C', repo, 'config', 'core.compression', '0']);
    const data = Object.fromEntries(Array.from({ length: 50 }, (_, part) => [`data/${part}.bin`, randomBytes(2 ** 20)]));
    await repository.commit('data', { ...data, 'slots/primary.toml': slotText(1) });
    const tree = open({ SVC_GIT_URL: repository.url }, 120_000);
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(1) });
    await repository.commit('edit', { 'slots/primary.toml': slotText(2) });
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(2) });
    const copy = path.join(state, 'source', 'repository.git');
    const kib = Number(execFileSync('du', ['-sk', copy], { encoding: 'utf8' }).split('\t')[0]);
    // The data is there once.
    expect([kib > 50 * 1024, kib < 60 * 1024]).toEqual([true, true]);
  }, 180_000);

  test('runs no hook, filter or helper of the repository or the user', async () => {
    const proof = path.join(state, 'proof');
    await repository.commit('first', {
      'slots/primary.toml': slotText(1),
      '.gitattributes': '* filter=evil\n',
      '.gitmodules': `[submodule "x"]\n path = x\n url = ext::sh -c "touch ${proof}"\n`,
    });
    const home = path.join(state, 'home');
    await createHome(home, proof);
    const tree = createGitRepository({
      settings: { ...EMPTY, SVC_GIT_URL: repository.url },
      directory: path.join(state, 'source'),
      env: {
        ...process.env,
        HOME: home,
        GIT_SSH_COMMAND: `touch ${proof}`,
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'core.fsmonitor',
        GIT_CONFIG_VALUE_0: `touch ${proof}`,
      },
    });
    await textsOf(tree);
    expect(existsSync(proof)).toBe(false);
  });
});

const EMPTY = {
  SVC_GIT_REF: 'main',
  SVC_GIT_PATH: '.',
  SVC_GIT_KEY: undefined,
  SVC_GIT_KNOWN_HOSTS: undefined,
  SVC_GIT_ALLOWED_SIGNERS: undefined,
} as const;

async function createHome(home: string, proof: string): Promise<void> {
  execFileSync('mkdir', ['-p', home]);
  await writeFile(
    path.join(home, '.gitconfig'),
    `[core]\n\tfsmonitor = touch ${proof}\n[filter "evil"]\n\tsmudge = touch ${proof}\n[protocol "ext"]\n\tallow = always\n`,
  );
}

describe('Over the protocol of git and HTTP', () => {
  test('git daemon serves it, and a server that is gone is named', async () => {
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    const daemon = await startGitDaemon(repository.root);
    const tree = open({ SVC_GIT_URL: daemon.url });
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(1) });
    await daemon.stop();
    expect(problemOf(await tree.fetch(never))).toBe(
      `FetchFailed: "${daemon.url}" cannot be fetched: its server does not answer: check the network`,
    );
  });

  test('git http-backend serves it to whoever has the credential, which no argument shows', async () => {
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    const http = await startGitHttp(repository.root);
    try {
      http.mode = { credential: 'svc:a-secret' };
      expect(problemOf(await open({ SVC_GIT_URL: http.url }).fetch(never))).toContain('it refuses the credential: check "SVC_GIT_KEY"');
      const key = path.join(state, 'key');
      await writeFile(key, 'svc:a-secret\n');
      expect(await textsOf(open({ SVC_GIT_URL: http.url, SVC_GIT_KEY: key }))).toEqual({ 'slots/primary.toml': slotText(1) });
      await writeFile(key, 'svc:another\n');
      const refused = problemOf(await open({ SVC_GIT_URL: http.url, SVC_GIT_KEY: key }).fetch(never));
      expect(refused).toContain('it refuses the credential');
      expect(refused).not.toContain('another');
      const gone = http.url.replace('config.git', 'none.git');
      http.mode = 'serve';
      expect(problemOf(await open({ SVC_GIT_URL: gone }).fetch(never))).toContain('there is no repository at this address');
    } finally {
      await http.stop();
    }
  });

  test('a branch that is deleted is named, and one that comes back is read', async () => {
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    const tree = open();
    await textsOf(tree);
    await repository.git(['push', '--quiet', 'origin', '--delete', 'main']).catch(() => undefined);
    await repository.git(['--git-dir', repository.bare, 'update-ref', '-d', 'refs/heads/main']);
    expect(problemOf(await tree.fetch(never))).toBe(
      `RefMissing: "${repository.url}" has no branch or tag "main": create it again, or set "SVC_GIT_REF" to another one`,
    );
    await repository.push();
    expect(await textsOf(tree)).toEqual({ 'slots/primary.toml': slotText(1) });
  });

  test('a server that hangs is given up after the time limit, with all processes, and served again afterwards', async () => {
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    const http = await startGitHttp(repository.root);
    try {
      http.mode = 'hang';
      const slow = open({ SVC_GIT_URL: http.url }, 1500);
      expect(problemOf(await slow.fetch(never))).toBe(
        `FetchFailed: "${http.url}" cannot be fetched: its server took more than 2 s: check it and the network`,
      );
      expect(processesOf(http.url)).toEqual([]);
      const stopping = new AbortController();
      const fetching = open({ SVC_GIT_URL: http.url }).fetch(stopping.signal);
      setTimeout(() => stopping.abort(), 300);
      expect((await fetching).ok).toBe(false);
      expect(processesOf(http.url)).toEqual([]);
      http.mode = 'serve';
      expect(await textsOf(open({ SVC_GIT_URL: http.url }))).toEqual({ 'slots/primary.toml': slotText(1) });
    } finally {
      await http.stop();
    }
  });

  test('a server that accepts connections and says nothing does not keep git either', async () => {
    const silent: Server = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const address = silent.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const url = `git://127.0.0.1:${port}/config.git`;
    expect(problemOf(await open({ SVC_GIT_URL: url }, 1000).fetch(never))).toContain('its server took more than 1 s');
    expect(processesOf(url)).toEqual([]);
    silent.close();
  });
});

/** Command lines of processes that have this word. */
function processesOf(word: string): readonly string[] {
  const listed = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).split('\n');
  return listed.filter((line) => line.includes(word) && line.includes('git'));
}

describeWithSshd('Over SSH', () => {
  let ssh: GitSshServer;
  beforeEach(async () => {
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    ssh = await startGitSsh(repository.root);
  });
  afterEach(async () => await ssh.stop());

  test('a deploy key reads it, another one does not', async () => {
    const settings = { SVC_GIT_URL: ssh.url, SVC_GIT_KNOWN_HOSTS: ssh.knownHosts };
    expect(await textsOf(open({ ...settings, SVC_GIT_KEY: ssh.keyFile }))).toEqual({ 'slots/primary.toml': slotText(1) });
    expect(problemOf(await open({ ...settings, SVC_GIT_KEY: ssh.strangerFile }).fetch(never))).toContain(
      'it refuses the credential: check "SVC_GIT_KEY"',
    );
    await chmod(ssh.keyFile, 0o644);
    expect(problemOf(await open({ ...settings, SVC_GIT_KEY: ssh.keyFile }).fetch(never))).toContain('others may read the file of the key');
  }, 60_000);

  test('the key of the host is the known one, or the one that was seen first', async () => {
    const settings = { SVC_GIT_URL: ssh.url, SVC_GIT_KEY: ssh.keyFile };
    const known = open({ ...settings, SVC_GIT_KNOWN_HOSTS: ssh.knownHosts });
    const learning = open(settings);
    expect([(await known.fetch(never)).ok, (await learning.fetch(never)).ok]).toEqual([true, true]);
    expect(await readFile(path.join(state, 'source', 'known_hosts'), 'utf8')).toContain('ssh-ed25519');
    await ssh.replaceHostKey();
    for (const tree of [known, learning]) expect(problemOf(await tree.fetch(never))).toContain('the key of its host is not the known one');
  }, 60_000);
});
