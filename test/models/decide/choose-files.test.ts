import { describe, expect, test } from '@jest/globals';
import { chooseFiles, quantisationOf, type RepoFile } from '../../../src/models/decide/choose-files.ts';

const GIB = 2 ** 30;
const file = (path: string, gib = 1): RepoFile => ({ path, sizeBytes: gib * GIB, sha256: 'a'.repeat(64) });

/** As repositories of conversions are: several quantisations, one of them split, two projectors, and files that are no models. */
const REPO = [
  file('.gitattributes', 0),
  file('BF16/m-BF16-00001-of-00002.gguf', 30),
  file('BF16/m-BF16-00002-of-00002.gguf', 30),
  file('README.md', 0),
  file('imatrix_unsloth.gguf', 0.1),
  file('m-IQ2_XXS.gguf', 5),
  file('m-Q2_K.gguf', 7),
  file('m-Q4_K_M.gguf', 12),
  file('m-Q4_K_S.gguf', 11),
  file('m-Q8_0.gguf', 22),
  file('m-UD-Q4_K_XL.gguf', 13),
  file('mmproj-BF16.gguf', 1),
  file('mmproj-F32.gguf', 2),
  file('mtp-m-Q8_0.gguf', 1),
];

function choose(name: { readonly quantisation?: string; readonly file?: string }, fitsGib?: number, files = REPO) {
  const choice = chooseFiles(files, { repo: 'o/r', ...name }, fitsGib === undefined ? undefined : fitsGib * GIB);
  return choice.kind === 'chosen'
    ? [...choice.files.model.map(({ path }) => path), choice.files.projector?.path ?? 'no projector']
    : `${choice.kind}: ${choice.message}`;
}

describe('chooseFiles() with a name that says which', () => {
  test('the directory of a file need not name it', () => {
    expect(choose({ quantisation: 'Q8_0' }, undefined, [file('gguf/m-Q8_0.gguf'), file('gguf/m-Q4_0.gguf')])).toEqual([
      'gguf/m-Q8_0.gguf',
      'no projector',
    ]);
  });

  test('models with heads for several tokens are complete, and a file of such heads alone is none', () => {
    const files = ['Qwen3.6-27B-MTP-Q4_K_M.gguf', 'Qwen3.6-35B-A3B-MTP-UD-Q4_K_XL.gguf', 'mtp-Qwen3.6-27B-Q8_0.gguf'].map((name) =>
      file(name),
    );
    expect(choose({ quantisation: 'Q4_K_M' }, undefined, files)[0]).toBe('Qwen3.6-27B-MTP-Q4_K_M.gguf');
    expect(choose({ quantisation: 'UD-Q4_K_XL' }, undefined, files)[0]).toBe('Qwen3.6-35B-A3B-MTP-UD-Q4_K_XL.gguf');
    expect(choose({ quantisation: 'Q8_0' }, undefined, files)).toContain('has no quantisation "Q8_0"');
    expect(choose({}, undefined, files)[0]).toBe('Qwen3.6-27B-MTP-Q4_K_M.gguf');
  });

  test.each([
    [{ quantisation: 'Q8_0' }, ['m-Q8_0.gguf', 'mmproj-BF16.gguf']],
    [{ quantisation: 'q4_k_m' }, ['m-Q4_K_M.gguf', 'mmproj-BF16.gguf']],
    [{ quantisation: 'UD-Q4_K_XL' }, ['m-UD-Q4_K_XL.gguf', 'mmproj-BF16.gguf']],
    [{ quantisation: 'BF16' }, ['BF16/m-BF16-00001-of-00002.gguf', 'BF16/m-BF16-00002-of-00002.gguf', 'mmproj-BF16.gguf']],
    [{ file: 'm-Q2_K.gguf' }, ['m-Q2_K.gguf', 'mmproj-BF16.gguf']],
    [
      { file: 'BF16/m-BF16-00002-of-00002.gguf' },
      ['BF16/m-BF16-00001-of-00002.gguf', 'BF16/m-BF16-00002-of-00002.gguf', 'mmproj-BF16.gguf'],
    ],
    [{ file: 'mmproj-F32.gguf' }, ['mmproj-F32.gguf', 'no projector']],
  ])('%j', (name, expected) => {
    expect(choose(name)).toEqual(expected);
    // What is named is fetched even if it is too large.
    expect(choose(name, 1)).toEqual(expected);
  });

  test.each([
    [{ quantisation: 'Q3_K_M' }, '"o/r" has no quantisation "Q3_K_M"; choose one of "BF16", "IQ2_XXS", "Q2_K", "Q4_K_M"'],
    [{ quantisation: 'Q4' }, 'has no quantisation "Q4"'],
    [{ file: 'n.gguf' }, '"o/r" has no file "n.gguf"; choose one of "BF16/m-BF16-00001-of-00002.gguf"'],
  ])('%j does not exist', (name, message) => {
    expect(choose(name)).toMatch(/^none: "o\/r" has no (file|quantisation) ".*"; choose one of/);
    expect(choose(name)).toContain(message);
  });
});

describe('chooseFiles() with a repository only', () => {
  test.each([
    [undefined, 'm-Q4_K_M.gguf'],
    [100, 'm-Q4_K_M.gguf'],
    [13.5, 'm-Q4_K_M.gguf'],
    // The projector counts.
    [12.5, 'm-Q4_K_S.gguf'],
    [10, 'm-Q2_K.gguf'],
    [6, 'm-IQ2_XXS.gguf'],
  ])('takes what fits into %p GiB', (fits, expected) => {
    expect(choose({}, fits)[0]).toBe(expected);
  });

  test('says what is the smallest if nothing fits', () => {
    expect(choose({}, 2)).toBe(
      'too-large: The smallest model of "o/r", "IQ2_XXS", has 6.0 GiB, and 2.0 GiB fit here; choose a smaller model, or name a quantisation to try it',
    );
  });

  test.each([
    ['without GGUF files', [file('model.safetensors')], 'none: "o/r" has no GGUF files; name another repository'],
    ['with an incomplete split model', [file('m-00001-of-00003.gguf'), file('m-00003-of-00003.gguf')], 'none: "o/r" has no GGUF files'],
    ['with a projector only', [file('mmproj.gguf')], 'none: "o/r" has no GGUF files'],
  ])('refuses one %s', (_, files, message) => {
    expect(choose({}, undefined, files)).toContain(message);
  });

  test('takes what there is if nothing is preferred', () => {
    expect(choose({}, undefined, [file('weird.gguf')])).toEqual(['weird.gguf', 'no projector']);
    expect(choose({}, undefined, [file('gpt-oss-20b-mxfp4.gguf')])).toEqual(['gpt-oss-20b-mxfp4.gguf', 'no projector']);
  });
});

test.each([
  ['m-Q4_K_M.gguf', 'Q4_K_M'],
  ['nomic-embed-text-v1.5.Q4_K_M.gguf', 'Q4_K_M'],
  ['d/m-UD-IQ2_XXS-00001-of-00003.gguf', 'UD-IQ2_XXS'],
  ['bge-m3-q8_0.gguf', 'q8_0'],
  ['gpt-oss-20b-mxfp4.gguf', 'mxfp4'],
  ['embeddinggemma-300m-qat-Q8_0.gguf', 'Q8_0'],
  ['m-TQ1_0.gguf', 'TQ1_0'],
  ['m-f16.gguf', 'f16'],
  ['plain.gguf', undefined],
])('quantisationOf(%s)', (path, expected) => {
  expect(quantisationOf(path)).toBe(expected);
});
