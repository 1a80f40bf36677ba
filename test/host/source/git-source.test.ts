/** The source on a real repository and real files: bad commits, local edits, windows, kills and full disks. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createGitRepository } from '../../../src/host/source/git-repository.ts';
import { createGitSource, type GitSourceOptions } from '../../../src/host/source/git-source.ts';
import { createSourceFiles } from '../../../src/host/source/source-files.ts';
import { createClock } from '../../../src/platform/clock.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createTestRepository, slotText, type TestRepository } from '../../support/git/repository.ts';
import { describeWithMounts, mountSmallDisk } from '../../support/require/require-mounts.ts';
import { eventually } from '../../support/eventually.ts';

const PRIMARY = SlotName.parse('primary');
let repository: TestRepository;
let root: string;
let config: string;
let logged: string[];
beforeEach(async () => {
  repository = await createTestRepository();
  root = await mkdtemp(path.join(tmpdir(), 'svc-source-'));
  config = path.join(root, 'config');
  await mkdir(path.join(config, 'slots'), { recursive: true });
  logged = [];
});
afterEach(async () => {
  await repository.remove();
  await rm(root, { recursive: true, force: true });
});

interface Given extends Partial<Pick<GitSourceOptions, 'window' | 'attribute' | 'clock'>> {
  readonly selfHeal?: 'on' | 'off';
  readonly directory?: string;
  readonly configDir?: string;
  readonly intervalMs?: number;
  readonly ref?: string;
  /** Called when the configuration is about to change. */
  readonly onChange?: () => Promise<void>;
}

async function open(given: Given = {}) {
  const { selfHeal = 'off', directory = path.join(root, 'source'), configDir = config, intervalMs = 60_000, ref = 'main' } = given;
  const settings = {
    SVC_GIT_URL: repository.url,
    SVC_GIT_REF: ref,
    SVC_GIT_PATH: '.',
    SVC_GIT_INTERVAL: intervalMs,
    SVC_GIT_SELF_HEAL: selfHeal,
    SVC_GIT_KEY: undefined,
    SVC_GIT_KNOWN_HOSTS: undefined,
    SVC_GIT_ALLOWED_SIGNERS: undefined,
  } as const;
  const note = (_facts: object, message: string): void => void logged.push(message);
  const opened = createGitSource({
    clock: createClock(),
    ...given,
    settings,
    tree: createGitRepository({ settings, directory, env: process.env }),
    files: createSourceFiles({
      configDir,
      directory,
      async exclusive(work) {
        await given.onChange?.();
        return await work();
      },
    }),
    log: { info: note, warn: note },
    isSigned: async () => false,
  });
  await opened.open();
  const sync = async (force = false) => await opened.source.sync({ force });
  return { ...opened, sync };
}

const present = async (name = 'primary', directory = config): Promise<string | undefined> =>
  await readFile(path.join(directory, 'slots', `${name}.toml`), 'utf8').catch(() => undefined);
const edit = async (text: string, name = 'primary'): Promise<void> => await writeFile(path.join(config, 'slots', `${name}.toml`), text);

test('a commit is in force, with the commit of each file and its author', async () => {
  const authors: string[][] = [];
  const source = await open({ attribute: (slot, text, who) => void authors.push([slot, text, who]) });
  const first = await repository.commit('first', {
    'slots/primary.toml': slotText(1),
    'engines/mine.toml': await readFile('engines/llama-server.toml', 'utf8'),
    'profiles/day/primary.toml': slotText(9),
    'README.md': 'x',
  });
  expect((await source.source.status()).state).toBe('Unknown');
  expect(await source.sync()).toMatchObject({ state: 'Synced', revision: first, problem: null, head: { commit: first, subject: 'first' } });
  const second = await repository.commit('second', { 'slots/embed.toml': slotText(2) });
  expect(source.source.isSynced()).toBe(true);
  const { files } = await source.sync();
  expect(Object.fromEntries(files.map(({ path: file, revision }) => [file, revision]))).toEqual({
    'engines/mine.toml': first,
    'profiles/day/primary.toml': first,
    'slots/embed.toml': second,
    'slots/primary.toml': first,
  });
  expect(await present()).toBe(slotText(1));
  expect(authors).toEqual([
    ['primary', slotText(1), `git ${first.slice(0, 12)}, Anna <anna@example.com>`],
    ['embed', slotText(2), `git ${second.slice(0, 12)}, Anna <anna@example.com>`],
  ]);
  expect(source.source.commitOf(PRIMARY)).toBe(first);
});

const MISTAKES: Readonly<Record<string, Parameters<TestRepository['commit']>[1]>> = {
  'a mistake in TOML': { 'slots/x.toml': 'enabled = yes\n' },
  'an unknown key': { 'slots/x.toml': 'nothing = 1\n' },
  'an engine with a mistake': { 'engines/x.toml': 'serves = 1\n' },
  'a profile with a mistake': { 'profiles/day/x.toml': 'nothing = 1\n' },
  'an engine that is missing': { 'slots/x.toml': 'provider = "none"\n[model]\ndefault = "a"\n' },
  'a link out of the tree': { 'slots/x.toml': { link: '/etc/passwd' } },
  'a link to a directory': { profiles: { link: '/etc' } },
  'a pointer of LFS': { 'slots/x.toml': 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n' },
  'a file that is not UTF-8': { 'slots/x.toml': Buffer.from([0xff, 0xfe, 0x61, 0]) },
  'a large file': { 'slots/x.toml': `# ${'x'.repeat(2 ** 20)}\n` },
  secrets: { 'tokens.toml': 'x = 1\n' },
  'no slots at all': { 'slots/primary.toml': null, 'README.md': 'empty' },
};

test.each(Object.entries(MISTAKES))('a commit with %s changes nothing, is named, and the next one counts', async (_name, changes) => {
  const source = await open();
  const first = await repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/other.toml': slotText(1) });
  await repository.commit('only one', { 'slots/other.toml': null });
  await source.sync();
  const before = await readdir(config, { recursive: true });
  const bad = await repository.commit('bad', {
    'slots/good.toml': slotText(2),
    ...changes,
    ...(changes['slots/primary.toml'] === null ? { 'slots/good.toml': null } : {}),
  });
  const status = await source.sync();
  expect(status).toMatchObject({
    state: 'OutOfSync',
    head: { commit: bad, subject: 'bad' },
    problem: { reason: 'CommitInvalid', commit: bad },
  });
  expect(status.revision).not.toBe(bad);
  expect(status.problem?.message).toMatch(/Nothing of the commit was applied: correct it with another commit$/);
  expect(await readdir(config, { recursive: true })).toEqual(before);
  expect(await present()).toBe(slotText(1));
  // A service that is started anew keeps to it as well.
  expect((await (await open()).sync()).problem?.commit).toBe(bad);
  const undone = Object.fromEntries(Object.keys(changes).map((name) => [name, null]));
  const good = await repository.commit('good', { ...undone, 'slots/primary.toml': slotText(3), 'slots/good.toml': slotText(2) });
  expect(await source.sync()).toMatchObject({ state: 'Synced', revision: good, problem: null });
  expect([await present(), await present('good')]).toEqual([slotText(3), slotText(2)]);
  expect(first).not.toBe(good);
});

describe('Local edits', () => {
  test('are shown and kept, and a sync by a person puts them back; what was there is kept aside', async () => {
    const source = await open();
    const commit = await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    await source.sync();
    await edit(slotText(5));
    await edit(slotText(6), 'mine');
    await source.check();
    expect(await source.source.status()).toMatchObject({
      state: 'OutOfSync',
      revision: commit,
      problem: null,
      files: [{ change: 'edited' }],
    });
    expect(source.source.isSynced()).toBe(false);
    expect(await source.source.diff()).toEqual({
      commit,
      files: [{ path: 'slots/primary.toml', before: slotText(5), after: slotText(1) }],
    });
    expect(await source.sync()).toMatchObject({ state: 'Synced' });
    expect([await present(), await present('mine')]).toEqual([slotText(1), slotText(6)]);
    expect(await readFile(path.join(root, 'source', 'replaced', 'slots', 'primary.toml'), 'utf8')).toBe(slotText(5));
  });

  test('are put back with self-heal, also deletions, and nothing is while the source is suspended', async () => {
    const source = await open({ selfHeal: 'on' });
    await repository.commit('first', { 'slots/primary.toml': slotText(1) });
    await source.sync();
    await edit(slotText(5));
    await source.check();
    expect(await present()).toBe(slotText(1));
    await rm(path.join(config, 'slots/primary.toml'));
    await source.check();
    expect(await present()).toBe(slotText(1));
    expect(await source.source.setSuspended(true)).toMatchObject({ suspended: true });
    expect(source.source.commitOf(PRIMARY)).toBeUndefined();
    await edit(slotText(5));
    await repository.commit('second', { 'slots/primary.toml': slotText(2) });
    await source.check();
    await source.sync();
    expect(await present()).toBe(slotText(5));
    const again = await open({ selfHeal: 'on' });
    expect(await again.sync()).toMatchObject({ suspended: true });
    expect(await present()).toBe(slotText(5));
    await again.source.setSuspended(false);
    expect(await again.sync()).toMatchObject({ suspended: false, state: 'Synced' });
    expect(await present()).toBe(slotText(2));
  });

  test('of files that a commit removes go, and files of nobody stay', async () => {
    const source = await open();
    await edit(slotText(7), 'mine');
    await repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/embed.toml': slotText(1) });
    await source.sync();
    await repository.commit('second', { 'slots/embed.toml': null });
    await source.sync();
    expect((await readdir(path.join(config, 'slots'))).toSorted()).toEqual(['mine.toml', 'primary.toml']);
  });

  test('in the place of a file that cannot be read block a commit as a whole', async () => {
    const source = await open();
    await mkdir(path.join(config, 'slots/primary.toml'));
    await repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/embed.toml': slotText(1) });
    expect(await source.sync()).toMatchObject({
      state: 'OutOfSync',
      problem: { reason: 'WriteFailed', message: expect.stringContaining('"slots/primary.toml" cannot be read') },
    });
    expect(await present('embed')).toBeUndefined();
    await rm(path.join(config, 'slots/primary.toml'), { recursive: true });
    expect(await source.sync()).toMatchObject({ state: 'Synced', problem: null });
  });
});

test('a commit waits for its window, repairs do not, and force does not wait', async () => {
  let isOpen = true;
  const until = Date.now() + 3_600_000;
  const source = await open({ selfHeal: 'on', window: () => ({ isOpen, until }) });
  const first = await repository.commit('first', { 'slots/primary.toml': slotText(1) });
  await source.sync();
  isOpen = false;
  await repository.commit('second', { 'slots/primary.toml': slotText(2) });
  await edit(slotText(5));
  expect(await source.sync()).toMatchObject({
    state: 'OutOfSync',
    revision: first,
    held_until: new Date(until).toISOString(),
    files: [{ change: 'pending' }],
  });
  expect(await present()).toBe(slotText(1));
  expect(await source.sync(true)).toMatchObject({ state: 'Synced', held_until: null });
  expect(await present()).toBe(slotText(2));
});

test('a service that is killed between two files finishes the commit when it starts, before anything else', async () => {
  const source = await open();
  await repository.commit('first', { 'slots/a.toml': slotText(1), 'slots/b.toml': slotText(1), 'slots/c.toml': slotText(1) });
  await source.sync();
  const second = await repository.commit('second', { 'slots/a.toml': slotText(2), 'slots/b.toml': slotText(2), 'slots/c.toml': null });
  // As a kill after the first file leaves it.
  const killed = await open({
    async onChange() {
      await edit(slotText(2), 'a');
      throw new Error('killed');
    },
  });
  expect(await killed.sync()).toMatchObject({ problem: { reason: 'WriteFailed' } });
  expect(existsSync(path.join(root, 'source', 'journal.json'))).toBe(true);
  const again = await open();
  expect([await present('a'), await present('b'), await present('c')]).toEqual([slotText(2), slotText(2), undefined]);
  expect(await again.source.status()).toMatchObject({ revision: second });
  expect(existsSync(path.join(root, 'source', 'journal.json'))).toBe(false);
});

test('a branch that is deleted, and history that is rewritten, leave what serves; then the new history counts', async () => {
  const source = await open();
  const first = await repository.commit('first', { 'slots/primary.toml': slotText(1) });
  await source.sync();
  await repository.git(['--git-dir', repository.bare, 'update-ref', '-d', 'refs/heads/main']);
  expect(await source.sync()).toMatchObject({ state: 'Unknown', revision: first, problem: { reason: 'RefMissing', commit: null } });
  expect(await present()).toBe(slotText(1));
  await repository.git(['commit', '--quiet', '--amend', '-m', 'rewritten']);
  await writeFile(path.join(repository.work, 'slots/primary.toml'), slotText(2));
  await repository.git(['commit', '--quiet', '--all', '--amend', '-m', 'rewritten']);
  await repository.push('--force');
  expect(await source.sync()).toMatchObject({ state: 'Synced', head: { subject: 'rewritten' }, problem: null });
  expect(await present()).toBe(slotText(2));
});

test('runs by itself: fetches in intervals and when a webhook comes, and backs off while it fails', async () => {
  await repository.commit('first', { 'slots/primary.toml': slotText(1) });
  const source = await open({ intervalMs: 3_600_000 });
  const running = source.run();
  await eventually('the first commit is in force', async () => (await present()) === slotText(1), 20_000);
  await repository.commit('second', { 'slots/primary.toml': slotText(2) });
  await eventually(
    'a webhook leads to the second one',
    async () => {
      source.source.notify();
      return (await present()) === slotText(2);
    },
    20_000,
  );
  await source.stop();
  await running;
});

describeWithMounts('A full disk', () => {
  test('of the configuration or the state leaves what serves, and the commit counts once there is room', async () => {
    for (const what of ['configDir', 'directory'] as const) {
      const disk = mountSmallDisk(2);
      try {
        const place = path.join(disk.path, what);
        await mkdir(path.join(what === 'configDir' ? place : config, 'slots'), { recursive: true });
        const source = await open({ [what]: place });
        const where = what === 'configDir' ? place : config;
        await repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/large.toml': slotText(1) });
        expect(await source.sync()).toMatchObject({ state: 'Synced' });
        const large = Object.fromEntries(
          Array.from({ length: 6 }, (_, index) => [`slots/large${index}.toml`, slotText(2, `# ${'x'.repeat(500_000)}\n`)]),
        );
        await repository.commit('large', { 'slots/primary.toml': slotText(2), ...large });
        const full = await source.sync();
        expect([full.state === 'Synced', full.problem?.message]).toEqual([false, expect.stringMatching(/full/)]);
        expect([await present('primary', where), await present('large0', where)]).toEqual([slotText(1), undefined]);
        disk.resize(64);
        expect(await source.sync()).toMatchObject({ state: 'Synced', problem: null });
        expect(await present('primary', where)).toBe(slotText(2));
      } finally {
        disk.dispose();
      }
      await repository.remove();
      repository = await createTestRepository();
      await rm(path.join(root, 'source'), { recursive: true, force: true });
    }
  });
});
