import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { EditResult, SlotEditor } from '../../../src/schema/slot/slot-editor.ts';
import { readTextFile } from '../../../src/files/read-text-file.ts';
import { createTomlEditor } from '../../../src/host/slots/toml-editor.ts';

const img = SlotName.parse('img');
const TEXT = '# mine\nenabled = true # yes\n\n[model]\ndefault = "sdxl-turbo"\n';

describe('createTomlEditor()', () => {
  let root: string;
  let directory: string;
  let path: string;
  let editor: SlotEditor;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-edit-'));
    directory = join(root, 'slots');
    path = join(directory, 'img.toml');
    editor = createTomlEditor({ directory });
  });
  afterEach(async () => await rm(root, { recursive: true, force: true }));
  const existing = async (text = TEXT) => {
    await mkdir(directory, { recursive: true });
    await writeFile(path, text);
  };
  const text = async () => await readFile(path, 'utf8');
  const versionOf = (result: EditResult) => (result.kind === 'done' ? result.slot.resourceVersion : '');

  test('creates a slot and the directory, readable only by owner and group', async () => {
    const result = await editor.put(img, { model: { default: 'flux' } });
    expect(result).toMatchObject({ kind: 'done', created: true, slot: { name: 'img', document: { model: { default: 'flux' } } } });
    expect(await text()).toBe('[model]\ndefault = "flux"\n');
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect(await readdir(directory)).toEqual(['img.toml']);
  });

  test('keeps comments and file mode in a patch, and returns a new version', async () => {
    await existing();
    await chmod(path, 0o604);
    const before = await editor.read(img);
    const result = await editor.patch(img, { enabled: false });
    expect(await text()).toBe(TEXT.replace('true', 'false'));
    expect((await stat(path)).mode & 0o777).toBe(0o604);
    expect(result).toMatchObject({ kind: 'done', created: false });
    expect(versionOf(result)).not.toBe(before?.resourceVersion);
    expect(await editor.read(img)).toEqual(result.kind === 'done' ? result.slot : undefined);
  });

  test('keeps the text of a slot that is put if it means the same, and not otherwise', async () => {
    await existing('# mine\n[model\n');
    expect(await editor.read(img)).toMatchObject({ document: undefined, text: '# mine\n[model\n' });
    const document = { enabled: true, model: { default: 'sdxl-turbo' } };
    expect(await editor.put(img, document, { text: TEXT })).toMatchObject({ kind: 'done', created: false });
    expect(await text()).toBe(TEXT);
    await editor.put(img, document, { text: '# other\nenabled = false\n[model]\ndefault = "sdxl-turbo"\n' });
    expect(await text()).toBe(TEXT);
    await editor.put(img, document, { text: 'not = = toml' });
    expect(await text()).toBe(TEXT);
  });

  test('never writes a text that is not a valid slot', async () => {
    await existing();
    for (const patch of [{ enabled: 'no' }, { model: null }, { backend: 'cpu' }, { unknown: 1 }, { env: { 'a b': 'x' } }]) {
      const result = await editor.patch(img, patch);
      expect(result).toMatchObject({ kind: 'invalid', problems: [{ message: expect.any(String) }] });
      expect(result.kind === 'invalid' && result.problems.some((problem) => 'line' in problem)).toBe(false);
    }
    expect(await editor.put(SlotName.parse('mine'), { model: { default: 'a' } })).toMatchObject({ kind: 'invalid' });
    expect(await text()).toBe(TEXT);
    expect(await readdir(directory)).toEqual(['img.toml']);
  });

  test('refuses an edit of an older version and accepts one of the current version', async () => {
    await existing();
    const first = await editor.read(img);
    const ifMatch = first?.resourceVersion ?? '';
    const second = await editor.patch(img, { priority: 1 }, { ifMatch });
    expect(second.kind).toBe('done');
    expect(await editor.patch(img, { priority: 2 }, { ifMatch })).toEqual({ kind: 'conflict', resourceVersion: versionOf(second) });
    expect(await editor.remove(img, { ifMatch })).toMatchObject({ kind: 'conflict' });
    expect((await editor.patch(img, { priority: 2 }, { ifMatch: '*' })).kind).toBe('done');
    expect(await text()).toContain('priority = 2\n');
  });

  test('reports a slot that does not exist', async () => {
    expect(await editor.read(img)).toBeUndefined();
    expect(await editor.list()).toEqual([]);
    expect(await editor.patch(img, {})).toEqual({ kind: 'not-found' });
    expect(await editor.remove(img)).toEqual({ kind: 'not-found' });
    expect(await editor.put(img, { model: { default: 'a' } }, { ifMatch: '*' })).toEqual({ kind: 'not-found' });
    await mkdir(directory);
    expect(await readdir(directory)).toEqual([]);
  });

  test('checks everything and writes nothing in a dry run', async () => {
    await existing();
    const result = await editor.patch(img, { enabled: false }, { dryRun: true });
    expect(result).toMatchObject({ kind: 'done', slot: { document: { enabled: false } } });
    expect((await editor.patch(img, { enabled: 'no' }, { dryRun: true })).kind).toBe('invalid');
    expect((await editor.remove(img, { dryRun: true })).kind).toBe('done');
    expect(await text()).toBe(TEXT);
  });

  test('applies all of fifty concurrent edits', async () => {
    await existing();
    const edits = Array.from({ length: 50 }, async (_, index) => await editor.patch(img, { env: { [`V${index}`]: 'x' } }));
    for (const result of await Promise.all(edits)) expect(result.kind).toBe('done');
    expect(Object.keys((await editor.read(img))?.document?.['env'] ?? {})).toHaveLength(50);
  });

  test('edits the file behind a symbolic link, and removes only the link', async () => {
    await existing();
    const target = join(root, 'embed.toml');
    const link = join(directory, 'embed.toml');
    const embed = SlotName.parse('embed');
    await writeFile(target, '[model]\ndefault = "a"\n');
    await symlink('../embed.toml', link);
    expect((await editor.patch(embed, { enabled: false })).kind).toBe('done');
    expect(await readFile(target, 'utf8')).toContain('enabled = false');
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    expect((await editor.remove(embed)).kind).toBe('done');
    expect(await readFile(target, 'utf8')).toContain('enabled = false');
    expect(await editor.read(embed)).toBeUndefined();
  });

  test('does not write through a link to a file that is not a slot file', async () => {
    await mkdir(directory);
    const secret = join(root, 'shadow');
    await writeFile(secret, 'root:x');
    await symlink(secret, path);
    expect(await editor.put(img, { model: { default: 'a' } })).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('is a link to "'),
    });
    expect(await readFile(secret, 'utf8')).toBe('root:x');
  });

  test('refuses to edit files that Kubernetes mounted', async () => {
    await mkdir(join(directory, '..v1'), { recursive: true });
    await writeFile(join(directory, '..v1', 'img.toml'), TEXT);
    await symlink('..v1', join(directory, '..data'));
    await symlink('..data/img.toml', path);
    expect(await editor.patch(img, { enabled: false })).toMatchObject({ kind: 'failed', message: expect.stringContaining('ConfigMap') });
    expect(await editor.remove(img)).toMatchObject({ kind: 'failed' });
    expect(await text()).toBe(TEXT);
  });

  test('lists slots including an unparsable text; a patch of that text reports the position, a put replaces it', async () => {
    await existing('[model\n');
    await writeFile(join(directory, 'embed.toml'), '[model]\ndefault = "a"\n');
    await writeFile(join(directory, 'No Slot.toml'), '');
    await writeFile(join(directory, '.img.toml.1.tmp'), '');
    expect((await editor.list()).map((slot) => [slot.name, slot.document?.['model']])).toEqual([
      ['embed', { default: 'a' }],
      ['img', undefined],
    ]);
    expect(await editor.patch(img, { enabled: false })).toMatchObject({ kind: 'invalid', problems: [{ line: 1, column: 7 }] });
    expect(await editor.put(img, { model: { default: 'b' } })).toMatchObject({ kind: 'done', created: false });
    expect(await text()).toBe('[model]\ndefault = "b"\n');
  });

  test('fifty lists of a slow disk open a few files at a time, and read each file once for all', async () => {
    await mkdir(directory, { recursive: true });
    for (let slot = 0; slot < 200; slot += 1) await writeFile(join(directory, `slot-${slot}.toml`), '[model]\ndefault = "a"\n');
    let [open, mostOpen, reads] = [0, 0, 0];
    const readFile = async (file: string) => {
      reads += 1;
      open += 1;
      mostOpen = Math.max(mostOpen, open);
      await nextTurn();
      const read = await readTextFile(file);
      open -= 1;
      return read;
    };
    const slow = createTomlEditor({ directory, reading: { readFile } });
    const lists = await Promise.all(Array.from({ length: 50 }, async () => await slow.list()));
    expect(lists.map(({ length }) => length)).toEqual(Array.from({ length: 50 }, () => 200));
    expect(mostOpen).toBeLessThanOrEqual(32);
    expect(reads).toBeLessThanOrEqual(2 * 200);
    const [written, listed] = [slow.put(img, { model: { default: 'b' } }), slow.list()];
    await written;
    expect((await slow.list()).map(({ name }) => name)).toContain(img);
    await listed;
  });

  test('reports why a text could not be written', async () => {
    await writeFile(directory, 'a file where the directory should be');
    expect(await editor.put(img, { model: { default: 'a' } })).toMatchObject({ kind: 'failed', message: expect.stringContaining('"img"') });
  });
});
