import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createVoiceFiles } from '../../src/files/voice-files.ts';
import { VoiceName } from '../../src/schema/words/names.ts';
import type { VoiceStore } from '../../src/schema/slot/voice-store.ts';

const AT = Date.parse('2026-01-02T03:04:05Z');
const RECORDING = Buffer.from('fLaC and more');

let root: string;
let directory: string;
let problems: string[];
let store: VoiceStore;

const open = (limit = 3): VoiceStore =>
  createVoiceFiles({ directory, limit, wallNow: () => AT, onProblem: (message) => void problems.push(message) });
const add = async (name: string, text = '') => store.add({ name: VoiceName.parse(name), text, consent: undefined, recording: RECORDING });
const names = async (from = store): Promise<readonly string[]> => (await from.list()).map(({ name }) => name);

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-voices-'));
  directory = path.join(root, 'voices');
  problems = [];
  store = open();
});
afterEach(async () => {
  expect(problems).toEqual([]);
  await rm(root, { recursive: true });
});

describe('stored voices', () => {
  test('are found under their names, in any case, with the recording as it was sent', async () => {
    expect(await names()).toEqual([]);
    expect(await store.read('Anna')).toBeUndefined();
    const consent = 'anna.pdf';
    const added = await store.add({ name: VoiceName.parse('Anna'), text: 'Good morning', consent, recording: RECORDING });
    const voice = { name: 'Anna', text: 'Good morning', consent, createdAt: AT };
    expect(added).toEqual({ kind: 'added', voice });
    expect(await store.find('aNNA')).toEqual(voice);
    expect(await store.read('anna')).toEqual({ ...voice, recording: RECORDING });
  });

  test('are there after a restart, in the order of their names', async () => {
    for (const name of ['carl', 'Anna', 'bert']) await add(name, 'Hello');
    expect(await names(open())).toEqual(['Anna', 'bert', 'carl']);
    expect(await open().read('BERT')).toEqual({ name: 'bert', text: 'Hello', consent: undefined, createdAt: AT, recording: RECORDING });
  });

  test('have one owner of each name, also if two are added at once, and are limited in number', async () => {
    const kinds = (await Promise.all([add('anna'), add('ANNA'), add('Anna')])).map(({ kind }) => kind);
    expect(kinds).toEqual(['added', 'exists', 'exists']);
    await add('bert');
    expect((await Promise.all([add('carl'), add('dora')])).map(({ kind }) => kind)).toEqual(['added', 'full']);
    expect(await open(1).add({ name: VoiceName.parse('dora'), text: '', consent: undefined, recording: RECORDING })).toEqual({
      kind: 'full',
      limit: 1,
    });
    expect(await names(open(1))).toEqual(['anna', 'bert', 'carl']);
  });

  test('are gone with their recording once removed; whoever has read one keeps it', async () => {
    await add('anna');
    const read = await store.read('anna');
    expect(await store.remove('ANNA')).toBe(true);
    expect(await store.remove('anna')).toBe(false);
    expect(read?.recording).toEqual(RECORDING);
    expect(await store.read('anna')).toBeUndefined();
    expect(await readdir(directory)).toEqual([]);
    expect((await add('anna')).kind).toBe('added');
  });

  test('can be read by the service only', async () => {
    await add('anna');
    const mode = async (...parts: readonly string[]): Promise<string> =>
      ((await stat(path.join(directory, ...parts))).mode & 0o777).toString(8);
    expect([await mode(), await mode('anna'), await mode('anna', 'recording'), await mode('anna', 'voice.json')]).toEqual([
      '700',
      '700',
      '600',
      '600',
    ]);
  });

  test.each(['..', '.', '', '../secret', '..%2Fsecret', 'a/../../secret', '/etc/passwd', 'a\0', '.new-x', 'é', 'x'.repeat(65)])(
    'have no path that a request chooses: %j is no name',
    async (name) => {
      await add('anna');
      await mkdir(path.join(root, 'secret'));
      await writeFile(path.join(root, 'secret', 'recording'), 'secret');
      expect(await store.find(name)).toBeUndefined();
      expect(await store.read(name)).toBeUndefined();
      expect(await store.remove(name)).toBe(false);
      expect(VoiceName.safeParse(name).success).toBe(false);
      expect(await readdir(path.join(root, 'secret'))).toEqual(['recording']);
      expect(await names()).toEqual(['anna']);
    },
  );
});

describe('a service that starts', () => {
  const unfinished = (kind: string): string => path.join(directory, `.${kind}-11111111-2222-4333-8444-555555555555`);

  test('removes what an earlier one has left half written or half removed, and nothing else', async () => {
    await add('anna');
    for (const kind of ['new', 'old', 'mine']) {
      await mkdir(unfinished(kind));
      await writeFile(path.join(unfinished(kind), 'recording'), 'half');
    }
    await writeFile(path.join(directory, 'notes.txt'), 'of an administrator');
    expect(await names(open())).toEqual(['anna']);
    expect((await readdir(directory)).toSorted()).toEqual([path.basename(unfinished('mine')), 'anna', 'notes.txt']);
  });

  test('says what it cannot use, leaves it, and works with the rest', async () => {
    await add('anna');
    await add('bert');
    await writeFile(path.join(directory, 'bert', 'voice.json'), '{"name":"bert"}');
    await mkdir(path.join(directory, 'empty'));
    await mkdir(path.join(directory, 'other'));
    await writeFile(path.join(directory, 'other', 'voice.json'), await readFile(path.join(directory, 'anna', 'voice.json')));
    await symlink(path.join(directory, 'anna'), path.join(directory, 'linked'));
    expect(await names(open())).toEqual(['anna']);
    expect(problems.splice(0).toSorted()).toEqual([
      expect.stringContaining(`"${directory}/other" contains the voice "anna"; rename the directory`),
      expect.stringContaining('; store "bert" again'),
      expect.stringContaining('; store "empty" again'),
    ]);
    expect(await readdir(path.join(directory, 'bert'))).toHaveLength(2);
  });

  test('follows no link to a recording', async () => {
    await add('anna');
    await writeFile(path.join(root, 'secret'), 'secret');
    await rm(path.join(directory, 'anna', 'recording'));
    await symlink(path.join(root, 'secret'), path.join(directory, 'anna', 'recording'));
    await expect(open().read('anna')).rejects.toMatchObject({ code: 'ELOOP' });
  });
});

describe('a disk that fails', () => {
  test('is reported, and nothing is left of the voice', async () => {
    directory = path.join(root, 'gone', 'voices');
    store = open();
    await expect(add('anna')).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await names()).toEqual([]);
    await mkdir(path.join(root, 'gone'));
    expect((await add('anna')).kind).toBe('added');
  });

  test('is asked again after the voices could not be listed', async () => {
    const file = path.join(root, 'file');
    await writeFile(file, '');
    directory = file;
    store = open();
    await expect(store.list()).rejects.toMatchObject({ code: 'ENOTDIR' });
    await rm(file);
    expect(await store.list()).toEqual([]);
  });

  test('forgets a voice that somebody has removed by hand, when it is deleted', async () => {
    await add('anna');
    await rm(path.join(directory, 'anna'), { recursive: true });
    await expect(store.read('anna')).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await store.remove('anna')).toBe(true);
    expect(await names()).toEqual([]);
  });
});
