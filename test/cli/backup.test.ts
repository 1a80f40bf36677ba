/** `svcctl backup` and `svcctl restore`: what is in the archive, what is refused, and what is kept. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { packTar, unpackTar, type TarEntry } from 'modern-tar';
import { BACKUP_FILE_BYTES, BACKUP_LIMITS, judgeBackupMember } from '../../src/cli/decide/backup-members.ts';
import { ACCEPTED_FILES } from '../../src/models/catalogue/accepted-files.ts';
import { UPDATED_CATALOGUE } from '../../src/models/catalogue/catalogue-source.ts';
import { writeDemoModels } from '../../toolboxes/demo/demo-models.ts';
import { svcctl, type Ran } from './run-svcctl.ts';

const SLOT = 'enabled = true\n\n[model]\ndefault = "demo-fox"\n';
const MANIFEST = { format: 1, version: '0.3.0', created_at: '2026-11-24T12:00:00.000Z', models: [] };
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-backup-'));
  await put('one/config/slots/primary.toml', SLOT);
  await put('one/config/profiles/coding/primary.toml', SLOT);
  await put('one/config/tokens.toml', '[ab]\nhash = "x"\n', 0o600);
  await put('one/config/api.env', 'SVC_AUTH_ENABLED=1\n', 0o640);
  await put('one/config/.service.lock', '');
  await put('one/state/timelines/primary.jsonl', '{"at":1}\n');
  await put('one/state/slots/primary.json', '{"generation":8}\n');
  await put('one/state/voices/ann/recording', 'RIFF', 0o600);
  await put('one/state/learned/primary.json', '{"days":[],"outcomes":[]}', 0o600);
  await put(`one/state/${ACCEPTED_FILES}`, '[]');
  await put(`one/state/${UPDATED_CATALOGUE}`, 'published = "2026-11-24"\n');
  await put(`one/state/${UPDATED_CATALOGUE}.previous`, 'published = "2026-11-01"\n');
  await put('one/state/prompts/primary/ab-1-256-0.prompt', 'what users wrote', 0o600);
  await put('one/state/engine/node_modules/a/index.js', '0;\n');
  await put('one/state/runtime.json', '{}');
  await put('one/state/logs/primary.log', 'log\n');
  await writeDemoModels(path.join(dir, 'one/state/models'));
  for (const place of ['config', 'state']) await mkdir(path.join(dir, 'two', place), { recursive: true });
});
afterEach(async () => await rm(dir, { recursive: true }));

async function put(name: string, text: string, mode = 0o644): Promise<void> {
  const file = path.join(dir, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, mode);
}

async function filesBelow(name: string): Promise<string[]> {
  const entries = await readdir(path.join(dir, name), { withFileTypes: true, recursive: true });
  return entries
    .flatMap((entry) => (entry.isFile() ? [path.relative(path.join(dir, name), path.join(entry.parentPath, entry.name))] : []))
    .toSorted();
}

const read = async (name: string): Promise<string> => await readFile(path.join(dir, name), 'utf8');
const on = async (machine: 'one' | 'two' | 'none', verb: 'backup' | 'restore', file = path.join(dir, 'b.tar.gz')): Promise<Ran> =>
  await svcctl([verb, file], {
    env: { SVC_CONFIG_DIR: path.join(dir, machine, 'config'), SVC_STATE_DIR: path.join(dir, machine, 'state') },
  });

/** Writes an archive of these members after a manifest, and restores it on the second machine. */
async function restoring(members: readonly TarEntry[], manifest: unknown = MANIFEST): Promise<Ran> {
  const text = JSON.stringify(manifest);
  const tar = await packTar([{ header: { name: 'svc-backup.json', size: text.length }, body: text }, ...members]);
  const file = path.join(dir, 'made.tar.gz');
  await writeFile(file, gzipSync(tar));
  return await on('two', 'restore', file);
}

const member = (name: string, more: Partial<TarEntry['header']> = {}): TarEntry => ({
  header: { name, size: 2, ...more },
  ...(more.size === 0 ? {} : { body: 'a\n' }),
});

describe('svcctl backup', () => {
  test('saves what the service keeps, without models, programs, locks and what belongs to the machine', async () => {
    expect(await on('one', 'backup')).toMatchObject({ code: 0, out: expect.stringContaining('Saved 11 files, and the names of') });
    expect((await stat(path.join(dir, 'b.tar.gz'))).mode & 0o777).toBe(0o600);
    const members = await unpackTar(gunzipSync(await readFile(path.join(dir, 'b.tar.gz'))));
    const [first, ...others] = members;
    expect(JSON.parse(new TextDecoder().decode(first?.data))).toMatchObject({
      format: 1,
      models: expect.arrayContaining(['demo-fox', 'demo-owl']),
    });
    expect(others.map(({ header }) => header.name).toSorted()).toEqual([
      'config/api.env',
      'config/profiles/coding/primary.toml',
      'config/slots/primary.toml',
      'config/tokens.toml',
      'state/accepted-files.json',
      'state/catalogue.toml',
      'state/catalogue.toml.previous',
      'state/learned/primary.json',
      'state/slots/primary.json',
      'state/timelines/primary.jsonl',
      'state/voices/ann/recording',
    ]);
    expect(await readdir(dir)).toEqual(['b.tar.gz', 'one', 'two']);
  });

  test('restores everything on another machine, names the models to pull, and says that a restart is needed', async () => {
    await on('one', 'backup');
    const { code, out, err } = await on('two', 'restore');
    expect({ code, out, err }).toMatchObject({
      code: 0,
      out: expect.stringContaining('Restored 11 files'),
      err: expect.stringContaining('Restart the service'),
    });
    expect(out).toContain('svcctl model pull demo-fox');
    for (const name of await filesBelow('two')) expect(await read(`two/${name}`)).toBe(await read(`one/${name}`));
    const mode = async (name: string): Promise<number> => (await stat(path.join(dir, 'two', name))).mode & 0o777;
    expect([await mode('config/tokens.toml'), await mode('config/api.env'), await mode('config/slots/primary.toml')]).toEqual([
      0o600, 0o640, 0o644,
    ]);
    expect(await mode('state/learned/primary.json')).toBe(0o600);
    expect(await on('two', 'restore')).toMatchObject({ code: 0, out: expect.stringContaining('Restored 0 files') });
  });

  test('keeps the files that it replaces, and their modes', async () => {
    await on('one', 'backup');
    await put('two/config/slots/primary.toml', 'mine\n', 0o600);
    const { out } = await on('two', 'restore');
    expect(out).toMatch(/Kept the 1 files that were replaced in ".*\/two\/state\/replaced\/[^"]+"/);
    expect(await read('two/config/slots/primary.toml')).toBe(SLOT);
    expect((await stat(path.join(dir, 'two/config/slots/primary.toml'))).mode & 0o777).toBe(0o600);
    const [kept = ''] = await filesBelow('two/state/replaced');
    expect(await read(`two/state/replaced/${kept}`)).toBe('mine\n');
  });
});

test.each(['backup', 'restore'] as const)('svcctl %s says that there is no service whose files it could use', async (verb) => {
  const { code, err } = await on('none', verb);
  expect(code).toBe(1);
  expect(err).toContain('none/state" does not exist');
  expect(err).toContain('give --checkout for one that "npm start" runs');
  expect(await readdir(dir)).toEqual(['one', 'two']);
});

describe('svcctl restore refuses', () => {
  test.each<[string, TarEntry, string]>([
    ['a path out of its directory', member('config/../../etc/passwd'), 'leads out of its directory'],
    ['an absolute path', member('/etc/passwd'), 'leads out of its directory'],
    ['a symbolic link', member('config/slots', { type: 'symlink', linkname: '/etc', size: 0 }), 'leads out of its directory'],
    ['a symbolic link to another member', member('config/a.toml', { type: 'symlink', linkname: 'b.toml', size: 0 }), 'not a regular file'],
    ['a hard link', member('config/a.toml', { type: 'link', linkname: 'svc-backup.json', size: 0 }), 'not a regular file'],
    ['a device', member('config/null', { type: 'character-device', size: 0 }), 'neither a file nor a directory'],
    ['a directory', member('config/slots/', { type: 'directory', size: 0 }), 'not a regular file'],
    ['a file of another program', member('etc/cron.d/job'), 'which no backup contains'],
    ['a file of the state that belongs to a machine', member('state/runtime.json'), 'which no backup contains'],
    ['a prompt', member('state/prompts/primary/ab-1-256-0.prompt'), 'which no backup contains'],
    ['a file beside the catalogue', member('state/catalogue.toml.d'), 'which no backup contains'],
    ['a program', member('state/engine/node_modules/a/index.js'), 'which no backup contains'],
    ['a lock', member('config/.service.lock'), 'which no backup contains'],
    ['a second manifest', member('svc-backup.json'), 'twice'],
  ])('%s, and writes nothing', async (_what, entry, message) => {
    const { code, err } = await restoring([member('config/slots/primary.toml'), entry]);
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining(message) });
    expect(await filesBelow('two')).toEqual([]);
  });

  test('a newer format, an archive without a manifest, and files that are no archive or cut off', async () => {
    expect((await restoring([member('config/a.toml')], { ...MANIFEST, format: 2 })).err).toContain(
      'the format 2, and this version reads up to 1',
    );
    expect((await restoring([member('config/a.toml')], {})).err).toContain('no valid "svc-backup.json"');
    const tar = await packTar([member('config/a.toml')]);
    await writeFile(path.join(dir, 'bare.tar.gz'), gzipSync(tar));
    expect((await on('two', 'restore', path.join(dir, 'bare.tar.gz'))).err).toContain('no "svc-backup.json" at its beginning');
    await on('one', 'backup');
    const whole = await readFile(path.join(dir, 'b.tar.gz'));
    await writeFile(path.join(dir, 'cut.tar.gz'), whole.subarray(0, whole.length - 100));
    expect((await on('two', 'restore', path.join(dir, 'cut.tar.gz'))).err).toContain('Nothing was restored');
    await put('text.tar.gz', 'text');
    expect((await on('two', 'restore', path.join(dir, 'text.tar.gz'))).err).toContain('damaged contents');
    expect(await filesBelow('two')).toEqual([]);
  });

  test('to write through a link in the directories of the service', async () => {
    await mkdir(path.join(dir, 'outside'));
    await symlink(path.join(dir, 'outside'), path.join(dir, 'two/config/slots'));
    await on('one', 'backup');
    expect(await on('two', 'restore')).toMatchObject({ code: 1, err: expect.stringContaining('/two/config/slots" is not a directory') });
    expect(await filesBelow('outside')).toEqual([]);
  });

  test('more members and bytes than any backup has', () => {
    const judged = (sizeBytes: number, soFar: { bytes: number; members: number }) =>
      judgeBackupMember({ name: 'config/a.toml', type: 'file', sizeBytes }, soFar).kind;
    expect(judged(1, { bytes: 0, members: 0 })).toBe('file');
    expect(judged(BACKUP_FILE_BYTES + 1, { bytes: 0, members: 0 })).toBe('refuse');
    expect(judged(1, { bytes: 0, members: BACKUP_LIMITS.members })).toBe('refuse');
    expect(judged(2, { bytes: BACKUP_LIMITS.bytes - 1, members: 0 })).toBe('refuse');
  });
});
