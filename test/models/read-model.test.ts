import { mkdir, mkdtemp, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DEMO_CATALOGUE, type Catalogue } from '../../src/models/catalogue/catalogue.ts';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { removeModel, filesOf } from '../../src/models/model-files.ts';
import { createModelReader } from '../../src/models/read-model.ts';
import { createModelStore } from '../../src/models/store.ts';
import type { ModelFiles, ModelFormat } from '../../src/providers/provider.ts';
import { encodeSpeaker } from '../../toolboxes/demo/demo-speaker.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { toyFormat } from '../support/toy-provider/toy-format.ts';

const signal = new AbortController().signal;
const fox = encodeDemoModel('demo-fox');
let above = '';
let root = '';

beforeEach(async () => {
  above = await mkdtemp(path.join(tmpdir(), 'svc-reader-'));
  root = path.join(above, 'models');
  await mkdir(root);
});
afterEach(() => rm(above, { recursive: true, force: true }));

const write = async (file: string, content: Uint8Array | string): Promise<void> => {
  await mkdir(path.dirname(path.join(root, file)), { recursive: true });
  await writeFile(path.join(root, file), content);
};
const writeParrot = async (): Promise<void> => {
  await write('birds/parrot/toy.json', '{"phrase":"Hello","weightsBytes":4}');
  await write('birds/parrot/weights.bin', 'abcd');
};

/** A format that does something with the files of each `.odd` file. */
const odd = (read: (files: ModelFiles) => Promise<unknown>): ModelFormat => ({
  ...toyFormat,
  recognize: ({ name }) => (name.endsWith('.odd') ? 'model' : undefined),
  async read(_model, files) {
    const found = await read(files);
    return { kind: 'model', sizeBytes: 1, contents: { found } };
  },
});

describe('a model that is a directory', () => {
  const formats = [...MODEL_FORMATS, toyFormat];

  test('is present as a whole, under the path of the directory', async () => {
    await writeParrot();
    const id = ModelId.parse('birds/parrot');
    const hostPath = path.join(root, id);
    expect(await createModelReader(root, formats).read(id, id)).toEqual({
      kind: 'present',
      facts: {
        id,
        hostPath,
        sizeBytes: 39,
        provider: 'npu',
        contents: { phrase: 'Hello', weightsBytes: 4 },
        version: expect.any(String),
        family: 'toy',
      },
    });
    expect(await createModelReader(root, MODEL_FORMATS).read(id, id)).toEqual({
      kind: 'unusable',
      message: '"birds/parrot" is a directory; use the name of a model file in it',
    });
  });

  test('is listed once, and all its files are hashed and removed with it', async () => {
    await writeParrot();
    await write('birds/m.gguf', fox);
    await write('birds/parrot/m.gguf', fox);
    const store = createModelStore({ root, formats });
    const listed = (await store.list(signal)).flatMap(({ id, entry }) => (entry === undefined ? [id] : []));
    expect(listed).toEqual(['birds/m.gguf', 'birds/parrot']);
    const id = ModelId.parse('birds/parrot');
    expect((await filesOf(store, id)).map((file) => file.path)).toEqual([
      'birds/parrot/m.gguf',
      'birds/parrot/toy.json',
      'birds/parrot/weights.bin',
    ]);
    expect(await filesOf(store, ModelId.parse('birds'))).toEqual([]);
    expect(await removeModel(store, id)).toBe(39 + fox.length);
    expect((await store.observe([id], signal)).get(id)).toMatchObject({ kind: 'missing' });
    expect((await stat(path.join(root, 'birds/m.gguf'))).size).toBe(fox.length);
  });
});

test('a model of the catalogue may be a directory, too: it is complete with all its files, and listed once', async () => {
  const demo = DEMO_CATALOGUE.get('demo-fox');
  if (demo === undefined) throw new Error('No demo model');
  const from = (sizeBytes: number) => ({ kind: 'url', url: 'http://127.0.0.1:1/x', sha256: 'a'.repeat(64), sizeBytes }) as const;
  const id = ModelId.parse('polly');
  const files = [
    { path: 'birds/parrot/toy.json', from: from(35) },
    { path: 'birds/parrot/weights.bin', from: from(4) },
  ] as const;
  const catalogue: Catalogue = new Map([['polly', { ...demo, id, provider: 'npu', directory: 'birds/parrot', files }]]);
  const store = createModelStore({ root, formats: [...MODEL_FORMATS, toyFormat], catalogue });
  const look = async () => (await store.observe([id], signal)).get(id);
  expect(await look()).toEqual({ kind: 'pullable', sizeBytes: 39 });
  await writeParrot();
  expect(await look()).toMatchObject({
    kind: 'present',
    facts: { hostPath: path.join(root, 'birds/parrot'), sizeBytes: 39, provider: 'npu', contents: { phrase: 'Hello' } },
  });
  expect((await store.list(signal)).map((model) => model.id)).toEqual(['polly']);
});

describe('a voice outside the catalogue, whose files have the names of a model that listens', () => {
  const id = ModelId.parse('voices/own');

  test('is a model that speaks', async () => {
    for (const [name, bytes] of Object.entries(encodeSpeaker())) await write(path.join(id, name), bytes);
    expect(await createModelReader(root, MODEL_FORMATS).read(id, id)).toMatchObject({
      kind: 'present',
      facts: { provider: 'tts', family: 'vits', contents: { voices: [{ id: 'demo_low' }, { id: 'demo_middle' }, { id: 'demo_high' }] } },
    });
  });

  test('is told what is wrong with it, and not that it does not listen', async () => {
    for (const [name, bytes] of Object.entries(encodeSpeaker())) await write(path.join(id, name), bytes);
    await write(path.join(id, 'model.onnx'), (encodeSpeaker()['model.onnx'] ?? new Uint8Array()).subarray(0, 500));
    expect(await createModelReader(root, MODEL_FORMATS).read(id, id)).toMatchObject({
      kind: 'unusable',
      message: expect.stringMatching(/^The file "model\.onnx" of "voices\/own" is cut off/),
    });
  });

  test('cannot listen where the catalogue says that it does: the message names the slots that it belongs to', async () => {
    for (const [name, bytes] of Object.entries(encodeSpeaker())) await write(path.join(id, name), bytes);
    expect(await createModelReader(root, MODEL_FORMATS).read(id, id, 'stt')).toEqual({
      kind: 'unusable',
      message: 'The model "voices/own" speaks, and does not listen: use it in a slot of the provider "tts", and another model here',
    });
  });
});

describe('what was read', () => {
  const id = ModelId.parse('v/m.gguf');
  const factsBy = async (reader: ReturnType<typeof createModelReader>) => {
    const read = await reader.read(id, id);
    return read.kind === 'present' ? read.facts : undefined;
  };

  test('is kept as it is for as long as nothing has changed that was looked at', async () => {
    await write(id, fox);
    const reader = createModelReader(root, MODEL_FORMATS);
    const before = await factsBy(reader);
    await write('v/notes/x.txt', 'x');
    await write('other.gguf', fox);
    await factsBy(reader);
    expect(await factsBy(reader)).toBe(await factsBy(reader));
    expect(await factsBy(reader)).toEqual(before);
  });

  test('is kept of every model that is looked at in turn', async () => {
    await write(id, fox);
    await write('other.gguf', fox);
    const reader = createModelReader(root, MODEL_FORMATS);
    const other = ModelId.parse('other.gguf');
    const inTurn = async () => [await reader.read(id, id), await reader.read(other, other)];
    const before = await inTurn();
    for (const [index, read] of (await inTurn()).entries()) expect(read).toBe(before[index]);
  });

  test('has another version once its file is replaced by a rename, and the same one after a restart', async () => {
    await write(id, fox);
    const before = await factsBy(createModelReader(root, MODEL_FORMATS));
    expect((await factsBy(createModelReader(root, MODEL_FORMATS)))?.version).toBe(before?.version);
    await write('v/notes/x.txt', 'x');
    expect((await factsBy(createModelReader(root, MODEL_FORMATS)))?.version).toBe(before?.version);
    // The same length and times, as `cp -p` and `mv` leave them.
    const { atime, mtime } = await stat(path.join(root, id));
    await write('v/m.gguf.new', fox);
    await utimes(path.join(root, 'v/m.gguf.new'), atime, mtime);
    await rename(path.join(root, 'v/m.gguf.new'), path.join(root, id));
    expect((await factsBy(createModelReader(root, MODEL_FORMATS)))?.version).not.toBe(before?.version);
  });

  test.each<readonly [string, () => Promise<void>, object]>([
    ['a projector appears beside it', async () => write('v/mmproj-m.gguf', fox), { contents: { projector: 'mmproj-m.gguf' } }],
    [
      'the file is replaced by another one of the same length',
      async () => {
        await write(
          id,
          fox.map((byte, index) => (index === fox.length - 1 ? byte + 1 : byte)),
        );
        await utimes(path.join(root, id), 1, 1);
      },
      { sizeBytes: fox.length },
    ],
    ['the file grows', async () => write(id, Buffer.concat([fox, Buffer.alloc(32)])), { sizeBytes: fox.length + 32 }],
  ])('is read again if %s', async (_what, change, expected) => {
    await write(id, fox);
    const reader = createModelReader(root, MODEL_FORMATS);
    const before = await factsBy(reader);
    await change();
    const after = await factsBy(reader);
    expect(after).not.toBe(before);
    expect(after).toMatchObject(expected);
  });

  test('is not kept if a file could not be read', async () => {
    await write('m-00001-of-00002.gguf', fox);
    const shards = ModelId.parse('m-00001-of-00002.gguf');
    const reader = createModelReader(root, MODEL_FORMATS);
    expect(await reader.read(shards, shards)).toMatchObject({ kind: 'unusable', message: expect.stringContaining('it does not exist') });
    await write('m-00002-of-00002.gguf', fox);
    expect(await reader.read(shards, shards)).toMatchObject({ kind: 'present', facts: { sizeBytes: 2 * fox.length } });
  });
});

describe('a provider reads', () => {
  const read = async (what: (files: ModelFiles) => Promise<unknown>) => {
    await write('x.odd', 'abc');
    return createModelReader(root, [odd(what)]).read(ModelId.parse('x.odd'), 'x.odd');
  };

  test('only as many bytes as there are', async () => {
    const found = await read(async (files) => [...(await files.read('x.odd', 1, 100))]);
    expect(found).toMatchObject({ facts: { contents: { found: [98, 99] } } });
  });

  test.each([
    ['above the directory of the model', '../../secret'],
    ['through a link', 'link'],
  ])('no file outside the store %s', async (_what, name) => {
    await writeFile(path.join(above, 'secret'), 'secret');
    await symlink(path.join(above, 'secret'), path.join(root, 'link'));
    const message = /^The model file ".*" of "x.odd" cannot be read: /;
    for (const look of [async (files: ModelFiles) => files.read(name, 0, 10), async (files: ModelFiles) => files.sizeOf(name)]) {
      expect(await read(look)).toEqual({ kind: 'unusable', message: expect.stringMatching(message) });
    }
  });

  test('not without end', async () => {
    const forever = async (files: ModelFiles): Promise<never> => {
      for (;;) await files.sizeOf('x.odd');
    };
    const far = async (files: ModelFiles) => files.read('x.odd', 0, 2 ** 40);
    const message = 'The model file "x.odd" of "x.odd" cannot be read: reading it takes more than any known model needs';
    expect(await read(forever)).toEqual({ kind: 'unusable', message });
    expect(await read(far)).toEqual({ kind: 'unusable', message });
  });
});

test('another shard of a model may not be a link that leaves the store', async () => {
  await write('m-00001-of-00002.gguf', fox);
  await writeFile(path.join(above, 'away.gguf'), fox);
  await symlink(path.join(above, 'away.gguf'), path.join(root, 'm-00002-of-00002.gguf'));
  const id = ModelId.parse('m-00001-of-00002.gguf');
  expect(await createModelReader(root, MODEL_FORMATS).read(id, id)).toEqual({
    kind: 'unusable',
    message: 'The model file "m-00002-of-00002.gguf" of "m-00001-of-00002.gguf" cannot be read: it is outside the model store',
  });
});
