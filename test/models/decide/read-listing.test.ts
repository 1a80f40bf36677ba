import { describe, expect, test } from '@jest/globals';
import { readFound, readModels } from '../../../src/models/decide/read-listing.ts';

const HUB = 'https://hub.test';
const entry = (more: object = {}): object => ({
  id: 'o/r-GGUF',
  downloads: 1200,
  likes: 7,
  gated: false,
  private: false,
  pipeline_tag: 'text-generation',
  tags: ['gguf', 'license:mit'],
  cardData: { license: 'mit' },
  ...more,
});
const FOUND = {
  repo: 'o/r-GGUF',
  url: `${HUB}/o/r-GGUF`,
  downloads: 1200,
  likes: 7,
  task: 'text-generation',
  license: 'mit',
  licenseUrl: `${HUB}/o/r-GGUF`,
  isGated: false,
};

describe('readFound()', () => {
  test.each<[string, object, Partial<typeof FOUND> | { readonly [Key in keyof typeof FOUND]?: undefined }]>([
    ['as it is', {}, {}],
    ['whose licence is in its tags', { cardData: { base_model: 'o/m' } }, {}],
    ['without a card', { cardData: null, tags: ['gguf'] }, { license: undefined, licenseUrl: undefined }],
    [
      'with a licence of its own',
      { cardData: { license: 'other', license_name: 'exaone', license_link: 'https://l.test/a' } },
      { license: 'exaone', licenseUrl: 'https://l.test/a' },
    ],
    ['whose licence is a file', { cardData: { license: 'other', license_name: 'exaone', license_link: 'LICENSE' } }, { license: 'exaone' }],
    ['with a link that is a program', { cardData: { license: 'mit', license_link: 'javascript:alert(1)' } }, {}],
    ['with a broken link', { cardData: { license: 'mit', license_link: 'https://[' } }, {}],
    ['with control characters in its licence', { cardData: { license: 'm\u001b[31m\u202Et\n' } }, { license: 'm [31m t' }],
    ['with an endless licence', { cardData: { license: 'x'.repeat(5000) } }, { license: 'x'.repeat(100) }],
    ['that is gated', { gated: 'manual' }, { isGated: true }],
    ['with counts that are none', { downloads: -1, likes: 'many' }, { downloads: 0, likes: 0 }],
    ['with a task that is none', { pipeline_tag: '<b>' }, { task: undefined }],
  ])('reads a repository %s', (_what, more, expected) => {
    expect(readFound([entry(more)], HUB, 10)).toEqual([{ ...FOUND, ...expected }]);
  });

  test.each<[string, unknown]>([
    ['is private', entry({ private: true })],
    ['has no owner', entry({ id: 'gpt2' })],
    ['leads elsewhere', entry({ id: '../../etc' })],
    ['has a quantisation in its name', entry({ id: 'o/r:Q4_0' })],
    ['is a file', entry({ id: 'o/r/m.gguf' })],
    ['has control characters in its name', entry({ id: 'o/r\u001b[2J' })],
    ['has an endless name', entry({ id: `o/${'r'.repeat(300)}` })],
    ['has tags that are none', entry({ tags: 5 })],
    ['is no object', 'o/r'],
    ['is null', null],
  ])('leaves out what %s', (_what, hostile) => {
    expect(readFound([hostile, entry()], HUB, 10)).toEqual([FOUND]);
  });

  test('lists each repository once, and no more than were asked for', () => {
    const entries = ['o/a', 'o/a', 'o/b', 'o/c'].map((id) => entry({ id }));
    expect(readFound(entries, HUB, 3).map(({ repo }) => repo)).toEqual(['o/a', 'o/b']);
  });
});

const file = (path: string, size: number) => ({ type: 'file', path, size: 130, lfs: { oid: 'a'.repeat(64), size } });
const namesIn = (tree: Parameters<typeof readModels>[1]) => readModels('o/r', tree).models.map(({ uri }) => uri);

describe('readModels()', () => {
  test('puts the files of split models together, with the nearest projector, and names them as slots do', () => {
    const read = readModels('o/r', [
      { type: 'directory', path: 'BF16', size: 0 },
      { type: 'file', path: 'README.md', size: 10 },
      file('BF16/m-BF16-00001-of-00002.gguf', 30),
      file('BF16/m-BF16-00002-of-00002.gguf', 20),
      file('m-Q4_K_M.gguf', 12),
      file('m-Q8_0.gguf', 22),
      file('mmproj-F16.gguf', 2),
      file('imatrix.gguf', 1),
      file('mtp-m-Q8_0.gguf', 1),
    ]);
    expect(read.draft).toBe('hf:o/r/mtp-m-Q8_0.gguf');
    expect(
      read.models.map(({ uri, model, sizeBytes, projector }) => [uri, model.map(({ path }) => path), sizeBytes, projector?.path]),
    ).toEqual([
      ['hf:o/r:BF16', ['BF16/m-BF16-00001-of-00002.gguf', 'BF16/m-BF16-00002-of-00002.gguf'], 52, 'mmproj-F16.gguf'],
      ['hf:o/r:Q8_0', ['m-Q8_0.gguf'], 24, 'mmproj-F16.gguf'],
      ['hf:o/r:Q4_K_M', ['m-Q4_K_M.gguf'], 14, 'mmproj-F16.gguf'],
    ]);
  });

  test('names a file by its path where its quantisation is missing, or means another file', () => {
    const tree = [file('a/m-Q4_0.gguf', 3), file('b/other-Q4_0.gguf', 2), file('plain.gguf', 1)];
    expect(namesIn(tree)).toEqual(['hf:o/r:Q4_0', 'hf:o/r/b/other-Q4_0.gguf', 'hf:o/r/plain.gguf']);
  });

  test.each([
    ['a split model with a missing part', file('m-Q4_0-00001-of-00002.gguf', 1)],
    ['a file without a checksum', { type: 'file', path: 'm-Q4_0.gguf', size: 1 }],
    ['a directory with the name of a model', { ...file('m-Q4_0.gguf', 1), type: 'directory' }],
    ['control characters', file('m\u001b[2J-Q4_0.gguf', 1)],
    ['a path that leads elsewhere', file('../m-Q4_0.gguf', 1)],
    ['an endless path', file(`${'m'.repeat(250)}.gguf`, 1)],
  ])('leaves out %s', (_what, hostile) => {
    expect(namesIn([hostile, file('good.gguf', 1)])).toEqual(['hf:o/r/good.gguf']);
  });

  test('reads a list of 20,000 models at once, and names 40', () => {
    const tree = Array.from({ length: 20_000 }, (_, index) => file(`m${index}-Q4_0.gguf`, index));
    const began = performance.now();
    expect(namesIn(tree)).toHaveLength(40);
    expect(performance.now() - began).toBeLessThan(2000);
  });
});
