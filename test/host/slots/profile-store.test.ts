/** Profiles in real directories, with the real editor of slot files. */
import { chmod, mkdir, mkdtemp, open as openFile, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createProfileStore } from '../../../src/host/slots/profile-directory.ts';
import { createTomlEditor } from '../../../src/host/slots/toml-editor.ts';
import { ProfileName, SlotName } from '../../../src/schema/words/names.ts';
import { isActive, type ProfileStore } from '../../../src/schema/slot/profile-store.ts';
import { formatProblem, type SpecProblem } from '../../../src/schema/slot/spec-problem.ts';

const CODING = ProfileName.parse('coding');
const RAG = ProfileName.parse('rag');
const A = '# mine\nbackend = "cpu"\n[model]\ndefault = "a"\n';
const B = A.replace('"a"', '"b"');

let root: string;
let store: ProfileStore;
const inSlots = (file: string) => path.join(root, 'slots', file);
const inProfiles = (...parts: readonly string[]) => path.join(root, 'profiles', ...parts);
const open = (quietPeriodMs = 1) =>
  createProfileStore({
    directory: inProfiles(),
    slotsDirectory: path.join(root, 'slots'),
    quietPeriodMs,
    editor: createTomlEditor({ directory: path.join(root, 'slots') }),
  });
const texts = (problems: readonly SpecProblem[]) => problems.map((problem) => formatProblem(problem).replaceAll(root, ''));

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-profiles-'));
  await mkdir(path.join(root, 'slots'));
  await writeFile(inSlots('primary.toml'), A);
  store = open();
});
afterEach(async () => {
  await chmod(inProfiles('coding'), 0o700).catch(() => undefined);
  await rm(root, { recursive: true, force: true });
});

describe('createProfileStore()', () => {
  test('saves the texts as they are, in files that nobody else may read than before', async () => {
    await writeFile(inSlots('embed.toml'), B);
    await chmod(inSlots('embed.toml'), 0o600);
    await chmod(inSlots('primary.toml'), 0o640);
    expect(await store.save(CODING)).toEqual({ kind: 'saved', created: true });
    expect(await readdir(inProfiles())).toEqual(['coding']);
    expect(await readFile(inProfiles('coding', 'primary.toml'), 'utf8')).toBe(A);
    const mode = async (...parts: readonly string[]) => (await stat(inProfiles(...parts))).mode & 0o777;
    expect([await mode('coding', 'embed.toml'), await mode('coding', 'primary.toml')]).toEqual([0o600, 0o640]);
    expect((await mode('coding')) & 0o007).toBe(0);
    const [profile] = (await store.list()).profiles;
    expect(profile && isActive(profile)).toBe(true);
  });

  test('switches to a set that was made by hand and back, and is active only while nothing differs', async () => {
    await mkdir(inProfiles('rag'), { recursive: true });
    await writeFile(inProfiles('rag', 'primary.toml'), B);
    await writeFile(inProfiles('rag', 'embed.toml'), A);
    await writeFile(inProfiles('rag', 'notes.txt'), 'not a slot');
    await store.save(CODING);
    const active = async () => (await store.list()).profiles.filter(isActive).map(({ name }) => name);
    expect(await active()).toEqual(['coding']);
    expect(await store.apply(RAG)).toMatchObject({ kind: 'applied', profile: { name: 'rag' } });
    expect(await readFile(inSlots('primary.toml'), 'utf8')).toBe(B);
    expect(await readFile(inSlots('embed.toml'), 'utf8')).toBe(A);
    expect(await active()).toEqual(['rag']);
    await store.apply(CODING);
    expect(await readFile(inSlots('primary.toml'), 'utf8')).toBe(A);
    expect(await readFile(inSlots('embed.toml'), 'utf8')).toBe(A.replace('[model]', 'enabled = false\n[model]'));
    expect(await active()).toEqual(['coding']);
    await writeFile(inSlots('primary.toml'), B);
    expect(await active()).toEqual([]);
    expect((await readdir(path.join(root, 'slots'))).toSorted()).toEqual(['embed.toml', 'primary.toml']);
  });

  test('saves no half of a file that is being written', async () => {
    const file = await openFile(inSlots('primary.toml'), 'w');
    await file.write(A.slice(0, A.indexOf('default')).replace('[model]', '[model]\ndefault = "half"'));
    // Long enough for the rest of the file, however busy the machine is.
    const saving = open(500).save(CODING);
    await pause(1);
    await file.truncate(0);
    await file.write(B, 0);
    await file.close();
    expect(await saving).toEqual({ kind: 'saved', created: true });
    expect(await readFile(inProfiles('coding', 'primary.toml'), 'utf8')).toBe(B);
  });

  test('does not touch the file of a slot that is alike', async () => {
    await writeFile(inSlots('embed.toml'), B);
    await store.save(CODING);
    await writeFile(inSlots('embed.toml'), A);
    const before = await stat(inSlots('primary.toml'), { bigint: true });
    expect(await store.apply(CODING)).toMatchObject({ kind: 'applied' });
    const after = await stat(inSlots('primary.toml'), { bigint: true });
    expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
    expect(await readFile(inSlots('embed.toml'), 'utf8')).toBe(B);
  });

  test('replaces a profile as a whole, keeps the notes beside it, and refuses where only a new one is wanted', async () => {
    await store.save(CODING);
    await writeFile(inProfiles('coding', 'old.toml'), A);
    await writeFile(inProfiles('coding', 'README'), 'for the night shift');
    expect(await store.save(CODING, { onlyNew: true })).toEqual({ kind: 'exists' });
    expect(await store.save(CODING)).toEqual({ kind: 'saved', created: false });
    expect((await readdir(inProfiles('coding'))).toSorted()).toEqual(['README', 'primary.toml']);
    expect(await readdir(inProfiles())).toEqual(['coding']);
  });

  test('saves documents that are given', async () => {
    const documents = new Map([[SlotName.parse('embed'), { model: { default: 'e' } }]]);
    expect(await store.save(CODING, { documents })).toEqual({ kind: 'saved', created: true });
    expect(await readFile(inProfiles('coding', 'embed.toml'), 'utf8')).toBe('[model]\ndefault = "e"\n');
    const wrong = await store.save(CODING, { documents: new Map([[SlotName.parse('embed'), { model: {} }]]) });
    expect(wrong).toMatchObject({ kind: 'invalid', problems: [{ file: 'embed.toml' }] });
  });

  test('deletes a profile, and says if there is none', async () => {
    await store.save(CODING);
    expect([await store.remove(CODING), await store.remove(CODING)]).toEqual(['removed', 'not-found']);
    expect([await readdir(inProfiles()), await store.read(CODING)]).toEqual([[], undefined]);
    expect(await store.apply(CODING)).toEqual({ kind: 'not-found' });
    expect(await readFile(inSlots('primary.toml'), 'utf8')).toBe(A);
  });

  test('changes nothing if a text has a mistake, and says where', async () => {
    await store.save(CODING);
    await writeFile(inProfiles('coding', 'embed.toml'), 'backend = "cpu"\n[model]\ndefault = 5\n');
    await writeFile(inSlots('primary.toml'), B);
    const applied = await store.apply(CODING);
    expect(texts(applied.kind === 'invalid' ? applied.problems : [])).toEqual([
      '/profiles/coding/embed.toml:3:1: model.default: Write a string in quotes, not 5',
    ]);
    expect(await readFile(inSlots('primary.toml'), 'utf8')).toBe(B);
    await writeFile(inSlots('primary.toml'), 'enabled =');
    expect(await store.save(RAG)).toMatchObject({ kind: 'invalid', problems: [{ file: inSlots('primary.toml'), line: 1 }] });
  });

  test('refuses a switch that was planned before an edit', async () => {
    await store.save(CODING);
    await writeFile(inSlots('primary.toml'), B);
    const seen = await store.read(CODING);
    await writeFile(inSlots('primary.toml'), `priority = 1\n${B}`);
    expect(await store.apply(CODING, { ifMatch: seen?.resourceVersion ?? '' })).toEqual({ kind: 'conflict' });
    expect(await readFile(inSlots('primary.toml'), 'utf8')).toContain('priority');
  });

  test('puts right what a service that was ended has left', async () => {
    await store.save(CODING);
    await mkdir(inProfiles('.coding.01234567.new'));
    await mkdir(inProfiles('.rag.89abcdef.old'));
    await writeFile(inProfiles('.rag.89abcdef.old', 'primary.toml'), B);
    const { profiles, problems } = await open().list();
    expect([profiles.map(({ name }) => name), problems]).toEqual([['coding', 'rag'], []]);
    expect((await readdir(inProfiles())).toSorted()).toEqual(['coding', 'rag']);
  });

  test('reports what is wrong in the directory, and hurts nothing else', async () => {
    await store.save(CODING);
    await symlink(inProfiles('coding'), inProfiles('link'));
    await writeFile(inProfiles('file'), '');
    await mkdir(inProfiles('Bad Name'));
    await mkdir(inProfiles('empty'));
    for (const name of ['linked', 'huge', 'named', 'folder', 'gone']) await mkdir(inProfiles(name));
    await symlink('/etc/passwd', inProfiles('linked', 'primary.toml'));
    await writeFile(inProfiles('huge', 'primary.toml'), '#'.repeat(2 ** 20 + 1));
    await writeFile(inProfiles('named', 'UPPER.toml'), A);
    await mkdir(inProfiles('folder', 'primary.toml'));
    await symlink('/nowhere', inProfiles('gone', 'primary.toml'));
    const { profiles, problems } = await store.list();
    expect(texts(problems)).toEqual([
      expect.stringContaining('/profiles/Bad Name: This is not the name of a profile; rename it. A profile name consists of'),
    ]);
    expect(Object.fromEntries(profiles.map((profile) => [profile.name, texts(profile.problems)]))).toEqual({
      coding: [],
      empty: [expect.stringContaining('would disable every slot')],
      file: [expect.stringContaining('A profile is a directory')],
      folder: [expect.stringContaining('/profiles/folder/primary.toml:1:1: This is a directory, not a file; move it elsewhere')],
      gone: [expect.stringContaining('Links in profiles are not followed')],
      huge: [expect.stringContaining('more than 1 MiB; make it smaller')],
      link: [expect.stringContaining('Links to profiles are not followed')],
      linked: [expect.stringContaining('Links in profiles are not followed')],
      named: [expect.stringContaining('/profiles/named/UPPER.toml: The file name is not the name of a slot; rename it.')],
    });
    expect(profiles.filter(isActive).map(({ name }) => name)).toEqual(['coding']);
    for (const { name, problems: own } of profiles)
      if (own.length > 0) expect(await store.apply(name)).toEqual({ kind: 'invalid', problems: own });
    expect(await readFile(inSlots('primary.toml'), 'utf8')).toBe(A);
    expect(await store.save(ProfileName.parse('file'))).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('is a file, but a profile is a directory'),
    });
    expect(await store.save(ProfileName.parse('link'))).toEqual({ kind: 'saved', created: false });
    expect(await readdir(inProfiles('coding'))).toEqual(['primary.toml']);
  });

  test('does not read more files than it may', async () => {
    await mkdir(inProfiles('many'), { recursive: true });
    for (let count = 0; count <= 1000; count += 1) await writeFile(inProfiles('many', `s${count}.toml`), '');
    const many = await store.read(ProfileName.parse('many'));
    expect(texts(many?.problems ?? [])).toEqual(['/profiles/many: This directory has 1001 slot files, more than 1000; remove some']);
    await mkdir(inProfiles('large'));
    for (let count = 0; count < 5; count += 1) await writeFile(inProfiles('large', `s${count}.toml`), '#'.repeat(2 ** 20));
    const large = await store.read(ProfileName.parse('large'));
    expect(texts(large?.problems ?? [])).toEqual(['/profiles/large: These files have more than 4 MiB together; make them smaller']);
    for (let count = 0; count < 100; count += 1) await mkdir(inProfiles(`p${count}`));
    expect(await store.save(CODING)).toEqual({ kind: 'full', limit: 100 });
    const { profiles, problems } = await store.list();
    expect([profiles.length, problems.length]).toEqual([100, 2]);
  });

  test('says that a directory cannot be read or written, if the system refuses it', async () => {
    if (process.getuid?.() === 0) {
      // Root may read everything: a name that the system refuses takes the place of missing rights.
      await writeFile(inProfiles().replace(/profiles$/, 'blocked'), '');
      const blocked = createProfileStore({
        directory: path.join(root, 'blocked', 'profiles'),
        slotsDirectory: path.join(root, 'slots'),
        quietPeriodMs: 1,
        editor: createTomlEditor({ directory: path.join(root, 'slots') }),
      });
      expect((await blocked.list()).problems).toMatchObject([{ message: expect.stringContaining('This directory cannot be read') }]);
      expect(await blocked.save(CODING)).toMatchObject({ kind: 'failed' });
      return;
    }
    await store.save(CODING);
    await chmod(inProfiles('coding'), 0);
    expect(texts((await store.read(CODING))?.problems ?? [])).toEqual([expect.stringContaining('This directory cannot be read')]);
  });
});
