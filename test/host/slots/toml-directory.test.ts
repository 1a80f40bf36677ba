import { chmod, mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readTextFile } from '../../../src/files/read-text-file.ts';
import { parseSlotText } from '../../../src/host/slots/decide/parse-slot-text.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createSlotDirectory, modelOf, slot, slotText } from './slot-directory.ts';

describe('createTomlDirectory().read()', () => {
  let slots: Awaited<ReturnType<typeof createSlotDirectory>>;
  beforeEach(async () => {
    slots = await createSlotDirectory();
  });
  afterEach(async () => await slots.close());

  test('reads every slot file and skips other files', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.write('img.toml', slotText('sdxl-turbo'));
    for (const file of ['.img.toml.swp', 'img.toml~', 'img.toml.bak', '.#img.toml', '#img.toml#', 'notes.md', '4913'])
      await slots.write(file, '???');
    const state = await slots.read();
    expect([...state.slots.keys()].toSorted()).toEqual(['img', 'primary']);
    expect(state.refused.size).toBe(0);
    expect(state.problems).toEqual([]);
  });

  test('keeps the last good spec of a bad file, reports file, line and column, and removes a slot together with its file', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.read();
    await slots.write('primary.toml', slotText('b.gguf', 'contxt = 1\n'));
    const bad = slot(await slots.read(), 'primary');
    expect(bad?.spec.model.default).toBe('a.gguf');
    expect(bad?.generation).toBe(1);
    expect(bad?.problems).toMatchObject(
      [{ file: join(slots.directory, 'primary.toml'), line: 3, column: 1, message: /did you mean "context"/ }].map((problem) => ({
        ...problem,
        message: expect.stringMatching(problem.message),
      })),
    );
    await rm(join(slots.directory, 'primary.toml'));
    expect((await slots.read()).slots.size).toBe(0);
    expect(await readdir(slots.lastGoodDirectory)).toEqual([]);
  });

  test('reports a text that was never valid and creates no slot from it', async () => {
    await slots.write('mine.toml', slotText('unheard-of'));
    const state = await slots.read();
    expect(state.slots.size).toBe(0);
    expect(state.refused.get(SlotName.parse('mine'))).toMatchObject([{ path: ['provider'], line: 1 }]);
  });

  test('increments the generation with each change of meaning, across restarts, but not with a change of style', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    expect(slot(await slots.read(), 'primary')?.generation).toBe(1);
    await slots.write('primary.toml', '# a comment\nenabled = true\nmodel = { default = "a.gguf" }\n');
    expect(slot(await slots.read(), 'primary')?.generation).toBe(1);
    await slots.write('primary.toml', slotText('b.gguf'));
    expect(slot(await slots.read(), 'primary')?.generation).toBe(2);
    slots.restart();
    expect(slot(await slots.read(), 'primary')?.generation).toBe(2);
    await slots.write('primary.toml', slotText('a.gguf'));
    expect(slot(await slots.read(), 'primary')?.generation).toBe(3);
    await rm(join(slots.directory, 'primary.toml'));
    await slots.read();
    await slots.write('primary.toml', slotText('a.gguf'));
    expect(slot(await slots.read(), 'primary')?.generation).toBe(4);
  });

  test('keeps the last good spec across a restart during which the file became invalid', async () => {
    await slots.write('primary.toml', slotText('a.gguf', '[lifecycle]\nidle_timeout = "never"\n'));
    await slots.read();
    await slots.write('primary.toml', '[model\n');
    slots.restart();
    const state = await slots.read();
    expect(modelOf(state, 'primary')).toBe('a.gguf');
    expect(slot(state, 'primary')?.spec.lifecycle.idleTimeoutMs).toBe(Number.POSITIVE_INFINITY);
    expect(slot(state, 'primary')?.problems).toMatchObject([{ line: 1, column: 7 }]);
  });

  test('starts without the stored last good spec if that is damaged', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.read();
    await writeFile(join(slots.lastGoodDirectory, 'primary.json'), '{"generation":');
    await writeFile(join(slots.lastGoodDirectory, 'embed.json'), '{"generation":7,"document":{"model":3}}');
    slots.restart();
    expect(slot(await slots.read(), 'primary')?.generation).toBe(1);
    await slots.write('embed.toml', slotText('e.gguf'));
    expect(slot(await slots.read(), 'embed')?.generation).toBe(8);
  });

  test('reports each file that cannot be read and accepts the others', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.write('Big One.toml', slotText('a.gguf'));
    await slots.write('embed.toml', new Uint8Array([0x23, 0x20, 0xc3, 0xa9, 0x0a, 0x61, 0xff, 0xfe]));
    await slots.write('img.toml', `# ${'x'.repeat(1024 * 1024)}\n`);
    await symlink('/nowhere/tts.toml', join(slots.directory, 'tts.toml'));
    await symlink('stt.toml', join(slots.directory, 'stt.toml'));
    await mkdir(join(slots.directory, 'folder.toml'));
    const state = await slots.read();
    expect([...state.slots.keys()]).toEqual(['primary']);
    const messages = [...state.refused].map(
      ([name, problems]) => `${name}: ${problems[0]?.line}:${problems[0]?.column} ${problems[0]?.message}`,
    );
    expect(messages).toEqual([
      'embed: 2:2 This file is not valid UTF-8; save it as UTF-8',
      'folder: 1:1 This is a directory, not a file; move it elsewhere',
      `img: 1:1 This file has ${1024 * 1024 + 3} bytes, more than 1 MiB; make it smaller`,
      'stt: 1:1 This symbolic link points back to itself; correct it',
      'tts: 1:1 This symbolic link points to a missing file; correct or delete it',
    ]);
    expect(state.problems).toMatchObject([{ file: join(slots.directory, 'Big One.toml') }]);
  });

  test('keeps a slot whose file is unreadable (root can read every file)', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.read();
    await chmod(join(slots.directory, 'primary.toml'), 0o000);
    const state = await slots.read();
    expect(modelOf(state, 'primary')).toBe('a.gguf');
    expect(slot(state, 'primary')?.problems.length).toBe(process.getuid?.() === 0 ? 0 : 1);
  });

  test('waits for a file that is being written instead of accepting its first half', async () => {
    await slots.close();
    // Longer than a busy machine takes between the two halves.
    slots = await createSlotDirectory({ quietPeriodMs: 1000 });
    await slots.write('primary.toml', slotText('a.gguf', 'context = 4096\n'));
    await slots.read();
    await slots.write('primary.toml', slotText('b.gguf'));
    const reading = slots.read();
    await sleep(10);
    await slots.write('primary.toml', slotText('b.gguf', 'context = 8192\n'));
    expect(slot(await reading, 'primary')).toMatchObject({ generation: 2, spec: { model: { default: 'b.gguf', context: 8192 } } });
  });

  test('reads a file again that was written while it was read, whatever its times say', async () => {
    await slots.close();
    const texts = [slotText('a.gguf'), slotText('a.gguf', 'context = 8192\n')];
    let reads = 0;
    slots = await createSlotDirectory({
      reading: {
        readFile: async () => {
          const text = texts[reads] ?? texts[1] ?? '';
          reads += 1;
          return { file: { kind: 'text', text }, writtenAt: 0, changedMeanwhile: reads === 1 };
        },
      },
    });
    await slots.write('primary.toml', '');
    expect(slot(await slots.read(), 'primary')).toMatchObject({ generation: 1, spec: { model: { context: 8192 } } });
  });

  test('a file that is gone when it is read is no file', async () => {
    await slots.close();
    slots = await createSlotDirectory({ reading: { readFile: async () => undefined } });
    await slots.write('primary.toml', slotText('a.gguf'));
    expect(await slots.read()).toMatchObject({ slots: new Map(), problems: [] });
  });

  test('does not wait for a file with a modification time in the future', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    const later = new Date(Date.now() + 86_400_000);
    await utimes(join(slots.directory, 'primary.toml'), later, later);
    expect(modelOf(await slots.read(), 'primary')).toBe('a.gguf');
  });

  test('does not report a slot as deleted while its file is being replaced', async () => {
    const path = join(slots.directory, 'primary.toml');
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.read();
    await rename(path, `${path}~`);
    const reading = slots.read();
    await sleep(5);
    await writeFile(path, slotText('a.gguf'));
    expect(slot(await reading, 'primary')).toMatchObject({ generation: 1, problems: [] });
  });

  test('keeps every slot while the directory is missing, also across a restart, and reports what to do', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.read();
    await rm(slots.directory, { recursive: true });
    for (let start = 0; start < 2; start++) {
      const state = await slots.read();
      expect(modelOf(state, 'primary')).toBe('a.gguf');
      expect(slot(state, 'primary')?.problems[0]?.message).toMatch(/^The directory ".*" is missing/);
      slots.restart();
    }
    await mkdir(slots.directory);
    expect((await slots.read()).slots.size).toBe(0);
  });

  test('returns no slots if the directory never existed, and fails if the path is not a directory', async () => {
    await rm(slots.directory, { recursive: true });
    expect((await slots.read()).slots.size).toBe(0);
    await writeFile(slots.directory, 'a file');
    await expect(slots.read()).rejects.toThrow('cannot be read: ENOTDIR');
  });

  test('concurrent reads agree on the generation', async () => {
    await slots.write('primary.toml', slotText('a.gguf'));
    const states = await Promise.all([slots.read(), slots.read(), slots.read()]);
    expect(states.map((state) => slot(state, 'primary')?.generation)).toEqual([1, 1, 1]);
    expect(JSON.parse(await readFile(join(slots.lastGoodDirectory, 'primary.json'), 'utf8'))).toMatchObject({ generation: 1 });
  });
});

describe('createTomlDirectory().read() of many slots', () => {
  const COUNT = 100;
  const counts = { reads: 0, parses: 0 };
  const clock = { now: 0 };
  let slots: Awaited<ReturnType<typeof createSlotDirectory>>;
  beforeEach(async () => {
    slots = await createSlotDirectory({
      reading: {
        // Files look older than they are, so that they count as settled.
        wallNow: () => Date.now() + 10_000,
        now: () => clock.now,
        async readFile(path) {
          counts.reads += 1;
          return await readTextFile(path);
        },
      },
      parsing: {
        parse(...args) {
          counts.parses += 1;
          return parseSlotText(...args);
        },
      },
    });
    for (let index = 0; index < COUNT; index += 1) await slots.write(`s${index}.toml`, slotText('a.gguf'));
    await slots.read();
  });
  afterEach(async () => await slots.close());

  const countRead = async () => {
    Object.assign(counts, { reads: 0, parses: 0 });
    const state = await slots.read();
    return { state, counts: { ...counts } };
  };

  test('reads and parses only what has changed, and returns the same objects for all other slots', async () => {
    const { state: before, counts: atRest } = await countRead();
    expect(atRest).toEqual({ reads: 0, parses: 0 });
    await slots.write('s50.toml', slotText('another.gguf'));
    const { state, counts: edited } = await countRead();
    expect(edited).toEqual({ reads: 1, parses: 1 });
    expect(modelOf(state, 's50')).toBe('another.gguf');
    expect([...state.slots].filter(([name, each]) => before.slots.get(name) !== each).map(([name]) => name)).toEqual(['s50']);
    clock.now += 3_600_000;
    const { state: later, counts: fullLook } = await countRead();
    expect(fullLook).toEqual({ reads: COUNT, parses: 0 });
    expect([...later.slots].every(([name, each]) => state.slots.get(name) === each)).toBe(true);
  });

  test('reports the mistake of a file for as long as it is there, and the slot of the same text afterwards as the same slot', async () => {
    const { state: before } = await countRead();
    await slots.write('s7.toml', '[model\n');
    for (let times = 0; times < 2; times += 1) expect(slot((await countRead()).state, 's7')?.problems).toHaveLength(1);
    await slots.write('s7.toml', slotText('a.gguf'));
    expect(slot((await countRead()).state, 's7')).toEqual(slot(before, 's7'));
  });
});
