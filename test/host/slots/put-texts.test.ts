/** Several slot files that are written together, by the real editor and beside the real source. */
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { stageFile } from '../../../src/files/write-file.ts';
import { createTomlEditor } from '../../../src/host/slots/toml-editor.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { SlotEditor, SlotTextEditor } from '../../../src/schema/slot/slot-editor.ts';
import { createSlotDirectory, modelOf, slotText } from './slot-directory.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => SlotName.parse(name));
const [A, B] = [SlotName.parse('a'), SlotName.parse('b')];
const textOf = (model: string) => slotText(model, '').replace('[model]', 'provider = "gguf"\n[model]');

describe('putTexts()', () => {
  let slots: Awaited<ReturnType<typeof createSlotDirectory>>;
  let editor: SlotEditor & SlotTextEditor;
  beforeEach(async () => {
    slots = await createSlotDirectory();
    editor = createTomlEditor({ directory: slots.directory });
    for (const name of NAMES) await slots.write(`${name}.toml`, textOf('one'));
  });
  afterEach(async () => await slots.close());
  const read = async (name: string) => await readFile(path.join(slots.directory, `${name}.toml`), 'utf8');

  test('shows all new texts to a pass that reads at the same time, or none', async () => {
    let present = 'one';
    let isDone = false;
    const mixed: string[] = [];
    const reading = (async () => {
      while (!isDone) {
        const state = await slots.read();
        const models = new Set(NAMES.map((name) => modelOf(state, name)));
        if (models.size > 1) mixed.push([...models].join());
      }
    })();
    for (let round = 0; round < 40; round += 1) {
      const next = present === 'one' ? 'two' : 'one';
      const edits = NAMES.map((name) => ({ name, before: textOf(present), text: textOf(next) }));
      expect(await editor.putTexts(edits)).toEqual({ kind: 'done' });
      present = next;
    }
    isDone = true;
    await reading;
    expect(mixed).toEqual([]);
    expect((await readdir(slots.directory)).length).toBe(NAMES.length);
  });

  test('begins the quiet period when the text is put in its place, and not when it was written', async () => {
    const place = path.join(slots.directory, 'a.toml');
    const staged = await stageFile(place, textOf('two'), { mode: 0o640 });
    const [hidden = ''] = (await readdir(slots.directory)).filter((file) => file.startsWith('.'));
    const writtenAt = (await stat(path.join(slots.directory, hidden))).mtimeMs;
    while (Date.now() < writtenAt + 20) await pause(5);
    staged.commit();
    expect((await stat(place)).mtimeMs).toBeGreaterThanOrEqual(Math.floor(writtenAt + 20));
    await staged.discard();
    expect(await read('a')).toBe(textOf('two'));
  });

  test.each([
    ['changed', async () => slots.write('b.toml', textOf('mine'))],
    ['deleted', async () => rm(path.join(slots.directory, 'b.toml'))],
  ])('writes nothing if a file was %s since', async (_what, edit) => {
    await edit();
    const edits = [A, B].map((name) => ({ name, before: textOf('one'), text: textOf('two') }));
    expect(await editor.putTexts(edits)).toEqual({ kind: 'conflict', name: 'b' });
    expect(await read('a')).toBe(textOf('one'));
    expect((await readdir(slots.directory)).filter((file) => file.startsWith('.'))).toEqual([]);
  });

  test('writes nothing if a file was created since', async () => {
    const edits = [
      { name: A, before: textOf('one'), text: textOf('two') },
      { name: B, before: undefined, text: textOf('two') },
    ];
    expect(await editor.putTexts(edits)).toEqual({ kind: 'conflict', name: 'b' });
    expect(await read('a')).toBe(textOf('one'));
  });

  test('writes nothing if one file cannot be written', async () => {
    await mkdir(path.join(slots.root, 'elsewhere'));
    await writeFile(path.join(slots.root, 'elsewhere', 'b.conf'), textOf('one'));
    await rm(path.join(slots.directory, 'b.toml'));
    await symlink(path.join(slots.root, 'elsewhere', 'b.conf'), path.join(slots.directory, 'b.toml'));
    const edits = [A, B].map((name) => ({ name, before: textOf('one'), text: textOf('two') }));
    expect(await editor.putTexts(edits)).toMatchObject({ kind: 'failed', message: expect.stringContaining('is not a ".toml" file') });
    expect(await read('a')).toBe(textOf('one'));
    expect((await readdir(slots.directory)).filter((file) => file.startsWith('.'))).toEqual([]);
  });

  test('keeps a link, and waits for an edit of one of the slots', async () => {
    await mkdir(path.join(slots.root, 'elsewhere'));
    await writeFile(path.join(slots.root, 'elsewhere', 'b.toml'), textOf('one'));
    await rm(path.join(slots.directory, 'b.toml'));
    await symlink(path.join(slots.root, 'elsewhere', 'b.toml'), path.join(slots.directory, 'b.toml'));
    const edits = [B, A].map((name) => ({ name, before: textOf('one'), text: textOf('two') }));
    const [edited, put] = await Promise.all([editor.patch(A, { priority: 1 }), editor.putTexts(edits)]);
    expect([edited.kind, put]).toEqual(['done', { kind: 'conflict', name: 'a' }]);
    expect(await editor.putTexts(edits.slice(0, 1))).toEqual({ kind: 'done' });
    expect(await readFile(path.join(slots.root, 'elsewhere', 'b.toml'), 'utf8')).toBe(textOf('two'));
  });
});
