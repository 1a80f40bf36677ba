/** Every entry of the shipped catalogue, checked for what a reader of it relies on. What the pages in "sources" say today is checked by scripts/check-catalogue.ts. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { DEMO_CATALOGUE } from '../../src/models/catalogue/catalogue.ts';
import { needsAcceptance } from '../../src/models/decide/explain-refusal.ts';
import { entryOf, parseCatalogue } from '../../src/models/catalogue/decide/parse-catalogue.ts';
import { imageModelNamed, missingCompanions } from '../../src/providers/image/decide/image-model.ts';
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
      expect(from.sizeBytes).toBeGreaterThan(10e6);
      expect(ModelId.safeParse(path).success).toBe(true);
    }
  });

  test('needs at least as much memory as its files have bytes, in one unit for GPUs', () => {
    expect(entry.minMemoryBytes).toBeGreaterThanOrEqual(sizeOf(entry.files));
    expect(records.get(id)?.minVram ?? '1G').toMatch(/^[0-9]+G$/);
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
  // Image models share encoders and decoders; the store links a file that it has.
  const first = entries.map((entry) => entry.files[0].from);
  expect(new Set(first.map((from) => (from.kind === 'url' ? from.sha256 : ''))).size).toBe(first.length);
});

test('every kind is there; models for text are there from 1 to 70 GB', () => {
  expect(MODEL_KINDS.filter((kind) => !entries.some((entry) => entry.kind === kind))).toEqual([]);
  const sizes = entries.filter(({ kind }) => kind === 'chat').map(({ files }) => sizeOf(files));
  expect(Math.min(...sizes)).toBeLessThan(GIB);
  expect(sizes.filter((size) => size > 30 * GIB && size < 40 * GIB)).not.toEqual([]);
  expect(sizes.filter((size) => size > 50 * GIB && size < 60 * GIB)).not.toEqual([]);
  expect(Math.max(...sizes)).toBeGreaterThan(70 * GIB);
  expect(entries.filter(({ kind, files }) => kind === 'coder' && sizeOf(files) > 40 * GIB)).not.toEqual([]);
  expect(sizes.filter((size) => size > 10 * GIB && size < 20 * GIB).length).toBeGreaterThan(3);
});

test('the image models of the specification are there, and others', () => {
  const images = entries.filter(({ kind }) => kind === 'image');
  const named = images.filter(({ minVramBytes }) => minVramBytes > 0);
  expect(named.map(({ id, minVramBytes }) => [id, minVramBytes])).toEqual([
    ['sdxl-turbo', 8e9],
    ['sd-1.5-pruned-emaonly', 4e9],
    ['flux-schnell', 24e9],
  ]);
  for (const { id, files } of images) expect(files[0].path).toMatch(new RegExp(`^image/models/checkpoints/${id}/[^/]+$`));
  expect(records.get('flux-schnell')?.notSelectable).toBeUndefined();
  expect(entries.filter(({ isGated }) => isGated).map(({ id }) => id)).toEqual(['flux-schnell']);
  // The same model without terms.
  expect(records.get('flux-schnell-fp8')).toMatchObject({
    gated: false,
    files: [{ repo: 'Comfy-Org/flux1-schnell', size: 17_236_328_572 }],
  });
});

test.each([
  ['flux-2-klein-4b', 'flux-2-klein-4b'],
  ['flux-kontext-dev', 'flux-kontext'],
  ['qwen-image-edit-2511', 'qwen-image-edit'],
  ['z-image-turbo', 'z-image-turbo'],
  ['qwen-image', 'qwen-image'],
])('the image model "%s" is of the family "%s", with all of its encoders and decoders', (id, family) => {
  const files = entries.find((entry) => entry.id === id)?.files.map(({ path }) => path) ?? [];
  const model = imageModelNamed(files);
  if (model === undefined) throw new Error('It must be known');
  expect(model.family).toBe(family);
  expect(missingCompanions(model)).toEqual([]);
});

test('licences that restrict the use have to be accepted', () => {
  const asked = entries.filter((entry) => needsAcceptance(entry, new Set())).map(({ id }) => id);
  const speech = ['moonshine-tiny-ja', 'moonshine-tiny-ko', 'moonshine-base-ar', 'moonshine-base-zh'];
  const images = ['sdxl-turbo', 'sd-1.5-pruned-emaonly', 'sd-3.5-medium', 'flux-kontext-dev'];
  expect(asked).toEqual(['llama-3.2-1b', 'llama-3.2-3b', 'embeddinggemma-300m', ...speech, ...images]);
});

test('a model in parts has them all in order, and one with heads for several tokens at once is a model of its own', () => {
  const [first, ...parts] = entries.find(({ id }) => id === 'gpt-oss-120b')?.files ?? [];
  expect(first?.path).toMatch(/-00001-of-00003\.gguf$/);
  expect(parts.map(({ path }) => path.slice(-19, -5))).toEqual(['00002-of-00003', '00003-of-00003']);
  expect(records.get('qwen3.6-35b-a3b-mtp')?.files[0]).toMatchObject({ repo: 'unsloth/Qwen3.6-35B-A3B-MTP-GGUF', size: 22_853_663_008 });
});
