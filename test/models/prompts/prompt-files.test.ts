import { describe, expect, test } from '@jest/globals';
import {
  chooseSuperfluous,
  isContinued,
  keyOf,
  nameOf,
  parseName,
  type StoredFile,
} from '../../../src/models/prompts/decide/prompt-files.ts';
import { Revision, SlotName } from '../../../src/schema/words/names.ts';

const SERVER = {
  slot: SlotName.parse('primary'),
  variable: 'LLAMA_ARG_SLOT_SAVE_PATH',
  endpoint: { host: '127.0.0.1', port: 18_080 },
  revision: Revision.parse('0123456789ab'),
  modelFiles: '1-2-3',
};

describe('the key', () => {
  const key = keyOf(SERVER, 'b11669');
  test.each([
    ['the revision, which has the arguments and the image', { ...SERVER, revision: Revision.parse('0123456789ac') }, 'b11669'],
    ['the files of the model', { ...SERVER, modelFiles: '1-2-4' }, 'b11669'],
    ['the build of the server', SERVER, 'b11670'],
  ])('depends on %s', (_, server, build) => expect(keyOf(server, build)).not.toBe(key));

  test('does not depend on the port', () => {
    expect(keyOf({ ...SERVER, endpoint: { host: '127.0.0.1', port: 18_081 } }, 'b11669')).toBe(key);
  });

  test('is in the name of the file, with the rest', () => {
    const file = { key, savedAt: 1_795_000_000_000, tokens: 4011, uses: 2 };
    expect(parseName(nameOf(file))).toEqual({ ...file, name: nameOf(file) });
  });

  test.each(['', 'a.bin', '../0123456789abcdef-0-1-0.prompt', '0123456789abcdef-0-1-0.prompt.part', '0123456789ABCDEF-0-1-0.prompt'])(
    'is not in the foreign name "%s"',
    (name) => expect(parseName(name)).toBeUndefined(),
  );
});

describe('what makes way', () => {
  const HOUR = 3_600_000;
  const file = (name: string, about: Partial<StoredFile>): StoredFile => {
    return { name, key: '0123456789abcdef', savedAt: 0, tokens: 1000, uses: 0, bytes: 100, ageMs: 0, ...about };
  };
  const chosen = (limit: number, ...files: readonly StoredFile[]) => chooseSuperfluous(files, limit).map(({ name }) => name);

  test.each<[string, readonly StoredFile[], number, readonly string[]]>([
    ['nothing where all fit', [file('a', {}), file('b', {})], 200, []],
    ['the shorter conversation', [file('long', { tokens: 9000 }), file('short', { tokens: 500 })], 100, ['short']],
    ['the older one', [file('old', { ageMs: 9 * HOUR }), file('new', {})], 100, ['old']],
    ['the one that was never restored', [file('used', { uses: 3 }), file('unused', { tokens: 2000 })], 100, ['unused']],
    ['all with a limit of zero', [file('a', {}), file('b', {})], 0, ['a', 'b']],
    ['one that is larger than the limit', [file('huge', { bytes: 500, tokens: 9000 }), file('b', { tokens: 10 })], 100, ['b', 'huge']],
    ['no further one once the others fit', [file('a', { tokens: 1 }), file('b', { tokens: 2 }), file('c', { tokens: 3 })], 200, ['a']],
    ['nothing for a clock that was set back', [file('future', { ageMs: -HOUR }), file('now', {})], 200, []],
  ])('is %s', (_, files, limit, expected) => expect(chosen(limit, ...files)).toEqual(expected));
});

describe('a conversation', () => {
  const file = (...tokens: readonly number[]): Buffer => {
    const head = Buffer.from('7173676704000000d80b0000ffffffff01000000d40b0000', 'hex');
    return Buffer.concat([head, Buffer.from(Uint32Array.from(tokens).buffer), Buffer.from('keys and values')]);
  };
  const tokens = Array.from({ length: 100 }, (_, index) => index);
  const later = [...tokens, 7, 7, 7];
  test.each<[string, boolean, readonly number[], readonly number[]]>([
    ['goes on', true, tokens, later],
    ['goes on after another end of the last answer', true, tokens, [...tokens.slice(0, 95), 9, 9, 9, 9, 9, 9]],
    ['is another one', false, tokens, [50, ...later]],
    ['is another one with the same system prompt', false, tokens, [...tokens.slice(0, 60), ...later]],
    ['was cut', false, later, tokens.slice(0, 50)],
  ])('%s: %s', (_, expected, older, newer) =>
    expect(isContinued(file(...older), older.length, file(...newer), newer.length)).toBe(expected),
  );

  test('cannot be told apart in a format that is not known, so the newest one is kept', () => {
    expect(isContinued(Buffer.from('other'), 10, file(1, 2), 2)).toBe(true);
    expect(isContinued(file(1, 2), 2, Buffer.from('other'), 10)).toBe(true);
  });
});
