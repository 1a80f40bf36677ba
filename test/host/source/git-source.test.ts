/** The source on a real repository and real files: bad commits, local edits, windows, kills. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { eventually } from '../../support/eventually.ts';
import { slotText, type TestRepository } from '../../support/git/repository.ts';
import { openSourceWorld, type SourceWorld } from './source-world.ts';

const PRIMARY = SlotName.parse('primary');
let world: SourceWorld;
beforeEach(async () => void (world = await openSourceWorld()));
afterEach(async () => await world.dispose());

test('a commit is in force, with the commit of each file and its author', async () => {
  const authors: string[][] = [];
  const source = await world.open({ attribute: (slot, text, who) => void authors.push([slot, text, who]) });
  const first = await world.repository.commit('first', {
    'slots/primary.toml': slotText(1),
    'engines/mine.toml': await readFile('engines/llama-server.toml', 'utf8'),
    'profiles/day/primary.toml': slotText(9),
    'checks/golden.jsonl': '{"request": {"messages": []}, "expect": {"contains": "a"}}\n',
    'README.md': 'x',
  });
  expect((await source.source.status()).state).toBe('Unknown');
  expect(await source.sync()).toMatchObject({ state: 'Synced', revision: first, problem: null, head: { commit: first, subject: 'first' } });
  const second = await world.repository.commit('second', { 'slots/embed.toml': slotText(2) });
  expect(source.source.isSynced()).toBe(true);
  const { files } = await source.sync();
  expect(Object.fromEntries(files.map(({ path: file, revision }) => [file, revision]))).toEqual({
    'checks/golden.jsonl': first,
    'engines/mine.toml': first,
    'profiles/day/primary.toml': first,
    'slots/embed.toml': second,
    'slots/primary.toml': first,
  });
  expect(await world.present()).toBe(slotText(1));
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
  'a case with a mistake': { 'checks/x.jsonl': '{"request": 1}\n' },
  'a link out of the tree': { 'slots/x.toml': { link: '/etc/passwd' } },
  'a link to a directory': { profiles: { link: '/etc' } },
  'a pointer of LFS': { 'slots/x.toml': 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n' },
  'a file that is not UTF-8': { 'slots/x.toml': Buffer.from([0xff, 0xfe, 0x61, 0]) },
  'a large file': { 'slots/x.toml': `# ${'x'.repeat(2 ** 20)}\n` },
  secrets: { 'tokens.toml': 'x = 1\n' },
  'no slots at all': { 'slots/primary.toml': null, 'README.md': 'empty' },
};

test.each(Object.entries(MISTAKES))('a commit with %s changes nothing, is named, and the next one counts', async (_name, changes) => {
  const source = await world.open();
  const first = await world.repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/other.toml': slotText(1) });
  await world.repository.commit('only one', { 'slots/other.toml': null });
  await source.sync();
  const before = await readdir(world.config, { recursive: true });
  const bad = await world.repository.commit('bad', {
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
  expect(await readdir(world.config, { recursive: true })).toEqual(before);
  expect(await world.present()).toBe(slotText(1));
  // A service that is started anew keeps to it as well.
  expect((await (await world.open()).sync()).problem?.commit).toBe(bad);
  const undone = Object.fromEntries(Object.keys(changes).map((name) => [name, null]));
  const good = await world.repository.commit('good', { ...undone, 'slots/primary.toml': slotText(3), 'slots/good.toml': slotText(2) });
  expect(await source.sync()).toMatchObject({ state: 'Synced', revision: good, problem: null });
  expect([await world.present(), await world.present('good')]).toEqual([slotText(3), slotText(2)]);
  expect(first).not.toBe(good);
});

describe('Local edits', () => {
  test('are shown and kept, and a sync by a person puts them back; what was there is kept aside', async () => {
    const source = await world.open();
    const commit = await world.repository.commit('first', { 'slots/primary.toml': slotText(1) });
    await source.sync();
    await world.edit(slotText(5));
    await world.edit(slotText(6), 'mine');
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
    expect([await world.present(), await world.present('mine')]).toEqual([slotText(1), slotText(6)]);
    expect(await readFile(path.join(world.root, 'source', 'replaced', 'slots', 'primary.toml'), 'utf8')).toBe(slotText(5));
  });

  test('are put back with self-heal, also deletions, and nothing is while the source is suspended', async () => {
    const source = await world.open({ selfHeal: 'on' });
    await world.repository.commit('first', { 'slots/primary.toml': slotText(1) });
    await source.sync();
    await world.edit(slotText(5));
    await source.check();
    expect(await world.present()).toBe(slotText(1));
    await rm(path.join(world.config, 'slots/primary.toml'));
    await source.check();
    expect(await world.present()).toBe(slotText(1));
    expect(await source.source.setSuspended(true)).toMatchObject({ suspended: true });
    expect(source.source.commitOf(PRIMARY)).toBeUndefined();
    await world.edit(slotText(5));
    await world.repository.commit('second', { 'slots/primary.toml': slotText(2) });
    await source.check();
    await source.sync();
    expect(await world.present()).toBe(slotText(5));
    const again = await world.open({ selfHeal: 'on' });
    expect(await again.sync()).toMatchObject({ suspended: true });
    expect(await world.present()).toBe(slotText(5));
    await again.source.setSuspended(false);
    expect(await again.sync()).toMatchObject({ suspended: false, state: 'Synced' });
    expect(await world.present()).toBe(slotText(2));
  });

  test('of files that a commit removes go, and files of nobody stay', async () => {
    const source = await world.open();
    await world.edit(slotText(7), 'mine');
    await world.repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/embed.toml': slotText(1) });
    await source.sync();
    await world.repository.commit('second', { 'slots/embed.toml': null });
    await source.sync();
    expect((await readdir(path.join(world.config, 'slots'))).toSorted()).toEqual(['mine.toml', 'primary.toml']);
  });

  test('in the place of a file that cannot be read block a commit as a whole', async () => {
    const source = await world.open();
    await mkdir(path.join(world.config, 'slots/primary.toml'));
    await world.repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/embed.toml': slotText(1) });
    expect(await source.sync()).toMatchObject({
      state: 'OutOfSync',
      problem: { reason: 'WriteFailed', message: expect.stringContaining('"slots/primary.toml" cannot be read') },
    });
    expect(await world.present('embed')).toBeUndefined();
    await rm(path.join(world.config, 'slots/primary.toml'), { recursive: true });
    expect(await source.sync()).toMatchObject({ state: 'Synced', problem: null });
  });
});

test('a commit waits for its window, repairs do not, and force does not wait', async () => {
  let isOpen = true;
  const until = Date.now() + 3_600_000;
  const source = await world.open({ selfHeal: 'on', window: () => ({ isOpen, until }) });
  const first = await world.repository.commit('first', { 'slots/primary.toml': slotText(1) });
  await source.sync();
  isOpen = false;
  await world.repository.commit('second', { 'slots/primary.toml': slotText(2) });
  await world.edit(slotText(5));
  expect(await source.sync()).toMatchObject({
    state: 'OutOfSync',
    revision: first,
    held_until: new Date(until).toISOString(),
    files: [{ change: 'pending' }],
  });
  expect(await world.present()).toBe(slotText(1));
  expect(await source.sync(true)).toMatchObject({ state: 'Synced', held_until: null });
  expect(await world.present()).toBe(slotText(2));
});

test('a service that is killed between two files finishes the commit when it starts, before anything else', async () => {
  const source = await world.open();
  await world.repository.commit('first', { 'slots/a.toml': slotText(1), 'slots/b.toml': slotText(1), 'slots/c.toml': slotText(1) });
  await source.sync();
  const second = await world.repository.commit('second', {
    'slots/a.toml': slotText(2),
    'slots/b.toml': slotText(2),
    'slots/c.toml': null,
  });
  // As a kill after the first file leaves it.
  const killed = await world.open({
    async onChange() {
      await world.edit(slotText(2), 'a');
      throw new Error('killed');
    },
  });
  expect(await killed.sync()).toMatchObject({ problem: { reason: 'WriteFailed' } });
  expect(existsSync(path.join(world.root, 'source', 'journal.json'))).toBe(true);
  const again = await world.open();
  expect([await world.present('a'), await world.present('b'), await world.present('c')]).toEqual([slotText(2), slotText(2), undefined]);
  expect(await again.source.status()).toMatchObject({ revision: second });
  expect(existsSync(path.join(world.root, 'source', 'journal.json'))).toBe(false);
});

test('a branch that is deleted, and history that is rewritten, leave what serves; then the new history counts', async () => {
  const source = await world.open();
  const first = await world.repository.commit('first', { 'slots/primary.toml': slotText(1) });
  await source.sync();
  await world.repository.git(['--git-dir', world.repository.bare, 'update-ref', '-d', 'refs/heads/main']);
  expect(await source.sync()).toMatchObject({ state: 'Unknown', revision: first, problem: { reason: 'RefMissing', commit: null } });
  expect(await world.present()).toBe(slotText(1));
  await world.repository.git(['commit', '--quiet', '--amend', '-m', 'rewritten']);
  await writeFile(path.join(world.repository.work, 'slots/primary.toml'), slotText(2));
  await world.repository.git(['commit', '--quiet', '--all', '--amend', '-m', 'rewritten']);
  await world.repository.push('--force');
  expect(await source.sync()).toMatchObject({ state: 'Synced', head: { subject: 'rewritten' }, problem: null });
  expect(await world.present()).toBe(slotText(2));
});

test('runs by itself: fetches in intervals and when a webhook comes, and backs off while it fails', async () => {
  await world.repository.commit('first', { 'slots/primary.toml': slotText(1) });
  const source = await world.open({ intervalMs: 3_600_000 });
  const running = source.run();
  await eventually('the first commit is in force', async () => (await world.present()) === slotText(1), 20_000);
  await world.repository.commit('second', { 'slots/primary.toml': slotText(2) });
  source.source.notify();
  await eventually('a webhook leads to the second one', async () => (await world.present()) === slotText(2), 20_000);
  await source.stop();
  await running;
});

test('a record that is damaged stops commits, names the file, and what serves stays', async () => {
  const source = await world.open();
  await world.repository.commit('first', { 'slots/primary.toml': slotText(1), 'profiles/day/primary.toml': slotText(1) });
  await source.sync();
  const record = path.join(world.root, 'source', 'applied.json');
  const right = await readFile(record, 'utf8');
  await writeFile(record, right.slice(0, 20));
  await world.repository.commit('second', { 'slots/primary.toml': slotText(2), 'profiles/day/primary.toml': null });
  const again = await world.open();
  expect(await again.sync()).toMatchObject({
    problem: { reason: 'WriteFailed', message: expect.stringContaining(`"${record}" is damaged`) },
  });
  await expect(again.source.setSuspended(true)).rejects.toThrow('is damaged');
  expect(await world.present()).toBe(slotText(1));
  await writeFile(record, right);
  expect(await again.sync()).toMatchObject({ state: 'Synced', problem: null });
  expect(await world.present()).toBe(slotText(2));
  expect(existsSync(path.join(world.config, 'profiles', 'day'))).toBe(false);
});
