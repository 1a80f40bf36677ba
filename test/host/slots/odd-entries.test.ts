/** Entries in `slots/` that are no slot files: each is named, and the watch goes on. */
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ODD_ENTRIES, plant } from '../../support/odd-entries.ts';
import { createSlotDirectory, modelOf, slotText } from './slot-directory.ts';

const nameOf = (...bytes: number[]) => Buffer.from(bytes);
const text = (value: string) => Buffer.from(value);

const LINKS = {
  'a link to nothing': '/nowhere/x.toml',
  'a link to itself': 'odd.toml',
  'a link to its directory': '.',
  'a link to "/"': '/',
};
const NAMES = {
  'a name with a line break': Buffer.concat([text('a'), nameOf(0x0a), text('b.toml')]),
  'a name that is not UTF-8': Buffer.concat([text('od'), nameOf(0xff, 0xfe), text('d.toml')]),
  'a name with a pattern': text('[a-z]*.toml'),
};

describe('a directory of slots with odd entries', () => {
  let slots: Awaited<ReturnType<typeof createSlotDirectory>>;
  beforeEach(async () => {
    slots = await createSlotDirectory();
  });
  afterEach(async () => await slots.close());

  const addOdd = async (kind: string): Promise<void> => {
    const place = join(slots.directory, 'odd.toml');
    const name = Object.entries(NAMES).find(([each]) => each === kind)?.[1];
    const link = Object.entries(LINKS).find(([each]) => each === kind)?.[1];
    if (name !== undefined) await writeFile(Buffer.concat([text(`${slots.directory}/`), name]), slotText('x.gguf'));
    else if (link !== undefined) await symlink(link, place);
    else await plant(kind, place);
  };
  const kinds = [...ODD_ENTRIES, ...Object.keys(LINKS), ...Object.keys(NAMES)];

  test.each(kinds)('sees edits beside %s, names it, and watches without polling', async (kind) => {
    await addOdd(kind);
    await slots.watch();
    await slots.write('primary.toml', slotText('a.gguf'));
    const state = await slots.reach((each) => modelOf(each, 'primary') === 'a.gguf');
    await slots.write('primary.toml', slotText('b.gguf'));
    await slots.reach((each) => modelOf(each, 'primary') === 'b.gguf');
    const problems = [...(state.problems ?? []), ...[...state.refused.values()].flat()];
    expect(problems).toHaveLength(1);
    expect(problems[0]?.file).toContain(slots.directory);
    expect(problems[0]?.file).toMatch(/odd\.toml$|a\nb\.toml$|od\uFFFD\uFFFDd\.toml$|\[a-z\]\*\.toml$/);
    expect(slots.warnings).toEqual([expect.stringContaining(problems[0]?.file ?? 'no file')]);
  });

  test.each(kinds)('sees edits after %s has come', async (kind) => {
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.watch();
    await slots.reach((each) => modelOf(each, 'primary') === 'a.gguf');
    await addOdd(kind);
    await slots.write('primary.toml', slotText('b.gguf'));
    await slots.reach((each) => modelOf(each, 'primary') === 'b.gguf');
  });

  test.each([
    ['with a mark', Buffer.from(`\uFEFF${slotText('a.gguf')}`, 'utf16le')],
    ['without a mark', Buffer.from(slotText('a.gguf'), 'utf16le')],
    ['with the other byte order', Buffer.from(`\uFEFF${slotText('a.gguf')}`, 'utf16le').swap16()],
  ])('says how to save a file in UTF-16 %s', async (_how, bytes) => {
    await slots.write('primary.toml', bytes);
    expect([...(await slots.read()).refused.values()].flat()).toMatchObject([{ message: 'This file is UTF-16; save it as UTF-8' }]);
  });
});
