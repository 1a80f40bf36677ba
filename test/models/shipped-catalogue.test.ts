/** Every entry of the shipped catalogue, checked for what a reader of it relies on. What the pages in "sources" say today is checked by scripts/check-catalogue.ts. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { DEMO_CATALOGUE } from '../../src/models/catalogue/catalogue.ts';
import { needsAcceptance } from '../../src/models/decide/explain-refusal.ts';
import { entryOf, parseCatalogue } from '../../src/models/catalogue/decide/parse-catalogue.ts';
import { projectorFor } from '../../src/providers/gguf/decide/gguf-model.ts';
import { fileUrl } from '../../src/models/hub/hub-access.ts';
import { MODEL_KINDS } from '../../src/schema/slot/provider-kinds.ts';
import { ModelId } from '../../src/schema/words/names.ts';

const { records, problems } = parseCatalogue(await readFile('src/models/catalogue/catalogue.toml', 'utf8'), 'catalogue.toml');
const context = {
  hubUrl: (repo: string, commit: string, file: string) => fileUrl('https://huggingface.co', repo, commit, file),
  providers: new Set(['gguf'] as const),
  isOwn: false,
};
const entries = [...records.values()].map((record) => entryOf(record, context));
const GIB = 2 ** 30;
const sizeOf = (files: (typeof entries)[number]['files']): number =>
  files.reduce((sum, { from }) => sum + (from.kind === 'url' ? from.sizeBytes : 0), 0);

test('the shipped catalogue has no mistakes, and does not take the ids of the demo models', () => {
  expect(problems).toEqual([]);
  expect(entries.filter(({ id }) => DEMO_CATALOGUE.has(id))).toEqual([]);
  expect(records.size).toBeGreaterThanOrEqual(40);
});

describe.each(entries.map((entry) => [entry.id, entry] as const))('%s', (id, entry) => {
  test('states its licence, where to read it, and its sources', () => {
    expect(entry.license).not.toBe('');
    for (const address of [entry.licenseUrl, ...(entry.sources ?? [])]) expect(address).toMatch(/^https:\/\/[a-z]/);
    expect(entry.sources?.length).toBeGreaterThan(0);
    expect(entry.family).not.toBe('');
  });

  test('has files with an https address, a hash and a size, each at a place of its own', () => {
    const paths = entry.files.map((file) => file.path);
    expect(new Set(paths).size).toBe(paths.length);
    for (const { path, from } of entry.files) {
      if (from.kind !== 'url') throw new Error('Only demo models are generated');
      expect(from.url).toMatch(/^https:\/\/(?:huggingface\.co|github\.com)\//);
      expect(from.sha256).toMatch(/^[0-9a-f]{64}$/);
      expect(from.sizeBytes).toBeGreaterThan(50e6);
      expect(ModelId.safeParse(path).success).toBe(true);
    }
  });

  test('needs at least as much memory as its files have bytes, or says how much of a GPU', () => {
    expect(entry.minMemoryBytes).toBeGreaterThanOrEqual(sizeOf(entry.files));
    if (entry.kind === 'image') expect(entry.minVramBytes).toBeGreaterThan(0);
  });

  test('has the right files for its kind', () => {
    const names = entry.files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
    const [first = ''] = names;
    expect(projectorFor(first, names) !== undefined).toBe(entry.kind === 'vision');
    expect(entry.selectable).toBe(entry.provider === 'gguf');
    expect(entry.stated !== undefined).toBe(entry.provider === 'gguf');
    expect(id).toBe(id.toLowerCase());
  });

  test('is not called checked, since its files were not downloaded', () => expect(entry.verified).toBe(false));
});

test('no two files have the same place, and no two entries the same content', () => {
  const files = entries.flatMap((entry) => entry.files);
  expect(new Set(files.map(({ path }) => path)).size).toBe(files.length);
  expect(new Set(files.map(({ from }) => (from.kind === 'url' ? from.sha256 : ''))).size).toBe(files.length);
});

test('every kind is there; chat models are there from 1 to 40 GB', () => {
  expect(MODEL_KINDS.filter((kind) => !entries.some((entry) => entry.kind === kind))).toEqual([]);
  const sizes = entries.filter(({ kind }) => kind === 'chat').map(({ files }) => sizeOf(files));
  expect(Math.min(...sizes)).toBeLessThan(GIB);
  expect(sizes.filter((size) => size > 30 * GIB && size < 40 * GIB)).not.toEqual([]);
  expect(sizes.filter((size) => size > 10 * GIB && size < 20 * GIB).length).toBeGreaterThan(3);
});

test('the image models are those of the specification', () => {
  const images = entries.filter(({ kind }) => kind === 'image');
  expect(images.map(({ id, minVramBytes }) => [id, minVramBytes / GIB])).toEqual([
    ['sdxl-turbo', 8],
    ['sd-1.5-pruned-emaonly', 4],
    ['flux-schnell', 24],
  ]);
  for (const { id, files } of images) expect(files[0].path).toMatch(new RegExp(`^image/models/checkpoints/${id}/[^/]+$`));
  expect(records.get('flux-schnell')?.notSelectable).toBeUndefined();
});

test('licences that restrict the use have to be accepted', () => {
  const asked = entries.filter((entry) => needsAcceptance(entry, new Set())).map(({ id }) => id);
  expect(asked).toEqual(['llama-3.2-1b', 'llama-3.2-3b', 'embeddinggemma-300m', 'sdxl-turbo', 'sd-1.5-pruned-emaonly']);
});
