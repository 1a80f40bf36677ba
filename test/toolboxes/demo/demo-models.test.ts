import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { gguf as parseIndependently } from '@huggingface/gguf';
import { DEMO_CATALOGUE } from '../../../src/models/catalogue/catalogue.ts';
import { loadDemoToolbox } from '../../../src/models/model-sources.ts';
import { encodeSentenceModel } from '../../../toolboxes/demo/demo-chat.ts';
import { DEMO_MODEL_IDS, DEMO_SENTENCES, encodeDemoModel, writeDemoModels } from '../../../toolboxes/demo/demo-models.ts';

test('the sentences are those in the documentation', () => {
  expect(DEMO_SENTENCES).toEqual({
    'demo-fox': 'The quick brown fox jumps over the lazy dog.',
    'demo-owl': 'A wise old owl sat in the oak and listened to every word.',
  });
});

test('writeDemoModels() writes small files and does not touch correct ones', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-demo-'));
  try {
    const files = await writeDemoModels(root);
    expect(files.map((file) => path.relative(root, file))).toEqual(['demo/demo-fox.gguf', 'demo/demo-owl.gguf', 'demo/demo-embed.gguf']);
    const before = await Promise.all(files.map((file) => stat(file)));
    for (const facts of before) expect(facts.size).toBeLessThan(700_000);
    await writeDemoModels(root);
    const after = await Promise.all(files.map((file) => stat(file)));
    expect(after.map((facts) => [facts.ino, facts.mtimeMs])).toEqual(before.map((facts) => [facts.ino, facts.mtimeMs]));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

/** Users have these files on their disks: change them only on purpose. */
test.each([
  ['demo-fox', 'e3e34252240850a67501a693b64b9dd6d1657280bbf59d5dc1479dc1f80699a8'],
  ['demo-owl', 'b85f0e3ef474a69bd7b09f040cef1bfbfd67e0a2bb362b03fbb6f39febdf21c8'],
  ['demo-clock', '7e35514468c810304e5e23853996d908a36f892e7bdec91cc2ea5b98d891c522'],
  ['demo-embed', '583ca8ac8127e7f31ce9c3c858919200fae8899c2475339903a49f5b812d82a0'],
] as const)('the bytes of %s are the same on every machine', (id, sha256) => {
  expect(createHash('sha256').update(encodeDemoModel(id)).digest('hex')).toBe(sha256);
});

test.each(DEMO_MODEL_IDS)('an independent parser can read %s', async (id) => {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-demo-'));
  try {
    const [file = ''] = await writeDemoModels(root, [id]);
    const read = await parseIndependently(file, { allowLocalFile: true });
    const metadata = new Map<string, unknown>(Object.entries(read.metadata));
    expect(metadata.get('general.name')).toBe(id);
    expect(metadata.get('tokenizer.ggml.tokens')).toHaveLength(
      Number(read.tensorInfos.find((info) => info.name === 'token_embd.weight')?.shape[1]),
    );
    expect(Buffer.compare(await readFile(file), encodeDemoModel(id))).toBe(0);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

test('encodeSentenceModel() refuses a sentence that the table cannot represent', () => {
  expect(() => encodeSentenceModel({ name: 'twice', words: ['a', 'b', 'a'], then: 'end' })).toThrow('twice');
  const many = Array.from(
    { length: 64 },
    (_, index) => `▁${String.fromCharCode(97 + (index % 26))}${String.fromCharCode(97 + Math.floor(index / 26))}`,
  );
  expect(() => encodeSentenceModel({ name: 'long', words: many, then: 'end' })).toThrow('more than 63 words');
});

test('the catalogue lists exactly the files that are generated, and loads the generators by their path', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-demo-'));
  try {
    const toolbox = await loadDemoToolbox();
    const listed = [...DEMO_CATALOGUE.values()].flatMap(({ files }) => files.map((file) => file.path));
    for (const file of listed) {
      await toolbox.writeDemoFile(file, path.join(root, file));
      expect(Buffer.compare(await readFile(path.join(root, file)), toolbox.encodeDemoFile(file))).toBe(0);
    }
    await writeDemoModels(root, DEMO_MODEL_IDS);
    await toolbox.writeDemoSpeech(root);
    const written = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    expect(written.map((entry) => path.relative(root, path.join(entry.parentPath, entry.name))).toSorted()).toEqual(listed.toSorted());
    expect(() => toolbox.encodeDemoFile('demo/none.gguf')).toThrow('There is no demo model with the file "demo/none.gguf"');
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
