import { appendFile, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { encodeDemoModel, writeDemoModels } from '../../toolboxes/demo/demo-models.ts';
import { encodeGguf, text } from '../../toolboxes/demo/encode-gguf.ts';
import { DEMO_CATALOGUE } from '../../src/models/catalogue/catalogue.ts';
import { createModelStore, type DirectoryModelStore } from '../../src/models/store.ts';
import type { ModelPresence } from '../../src/reconciler/ports.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';

const signal = new AbortController().signal;
const fox = encodeDemoModel('demo-fox');
let directory = '';
let root = '';
let store: DirectoryModelStore;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-store-'));
  root = path.join(directory, 'models');
  await mkdir(root);
  store = createModelStore({ root, formats: MODEL_FORMATS });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function look(id: string): Promise<ModelPresence> {
  const parsed = ModelId.parse(id);
  const presence = (await store.observe([parsed], signal)).get(parsed);
  if (presence === undefined) throw new Error('No answer');
  return presence;
}

test('a file in the store is present under its path, with the facts from its header', async () => {
  await mkdir(path.join(root, 'family'));
  await writeFile(path.join(root, 'family', 'm.gguf'), fox);
  const hostPath = path.join(root, 'family', 'm.gguf');
  expect(await look('family/m.gguf')).toMatchObject({
    kind: 'present',
    facts: { hostPath, sizeBytes: fox.length, provider: 'gguf', contents: { architecture: 'llama' } },
  });
});

test('a catalogue model is pullable until a pull has stored it', async () => {
  expect(await look('demo-owl')).toMatchObject({ kind: 'pullable' });
  expect(await store.pull(ModelId.parse('demo-owl'), () => {}, signal)).toEqual({ ok: true, value: undefined });
  expect(await look('demo-owl')).toMatchObject({ kind: 'present', facts: { hostPath: path.join(root, 'demo/demo-owl.gguf') } });
});

test('a catalogue model of two files is pullable while one of them is missing, and has the size of both', async () => {
  const demo = DEMO_CATALOGUE.get('demo-fox');
  if (demo === undefined) throw new Error('No demo model');
  const from = (sizeBytes: number) => ({ kind: 'url', url: 'http://127.0.0.1:1/x', sha256: 'a'.repeat(64), sizeBytes }) as const;
  const files = [
    { path: 'sees.gguf', from: from(fox.length) },
    { path: 'mmproj-sees.gguf', from: from(7) },
  ] as const;
  store = createModelStore({ root, formats: MODEL_FORMATS, catalogue: new Map([['sees', { ...demo, id: ModelId.parse('sees'), files }]]) });
  await writeFile(path.join(root, 'sees.gguf'), fox);
  expect(await look('sees')).toEqual({ kind: 'pullable', sizeBytes: fox.length + 7 });
  await writeFile(path.join(root, 'mmproj-sees.gguf'), 'seventy');
  expect(await look('sees')).toMatchObject({ kind: 'present', facts: { sizeBytes: fox.length + 7 } });
});

test('an unknown model is missing, and pulling it is stalled', async () => {
  expect(await look('nothing.gguf')).toMatchObject({ kind: 'missing', message: expect.stringContaining(`"${root}/nothing.gguf"`) });
  expect(await store.pull(ModelId.parse('nothing.gguf'), () => {}, signal)).toMatchObject({ ok: false, failure: { kind: 'stalled' } });
});

test('a file that is being copied is incomplete at every length, and present once it is complete', async () => {
  const file = path.join(root, 'm.gguf');
  for (const length of [0, 3, 24, 10_000, fox.length - 1]) {
    await writeFile(file, fox.subarray(0, length));
    expect(await look('m.gguf')).toMatchObject({ kind: 'missing', message: expect.stringContaining('incomplete') });
  }
  await writeFile(file, fox.subarray(0, 100_000));
  expect(await look('m.gguf')).toMatchObject({ message: expect.stringContaining(`100000 of ${fox.length} bytes`) });
  await appendFile(file, fox.subarray(100_000));
  expect((await look('m.gguf')).kind).toBe('present');
  await truncate(file, fox.length - 1);
  expect((await look('m.gguf')).kind).toBe('missing');
});

test.each([
  ['a file in another format', Buffer.from('<html>404 Not Found</html>'), 'damaged or not a GGUF file: it does not start with "GGUF"'],
  ['a projector', encodeGguf({ metadata: [['general.architecture', text('clip')]], tensors: [] }), 'vision projector'],
])('%s is missing, with a message that explains it', async (_, bytes, message) => {
  await writeFile(path.join(root, 'm.gguf'), bytes);
  expect(await look('m.gguf')).toMatchObject({ kind: 'missing', message: expect.stringContaining(message) });
});

test('a directory is not a model', async () => {
  await mkdir(path.join(root, 'dir'));
  expect(await look('dir')).toMatchObject({ kind: 'missing', message: expect.stringContaining('is a directory') });
});

test('a link within the store resolves to its target, and a link that leaves the store is refused', async () => {
  await writeFile(path.join(root, 'm.gguf'), fox);
  await symlink(path.join(root, 'm.gguf'), path.join(root, 'link.gguf'));
  await writeFile(path.join(directory, 'secret.gguf'), fox);
  await symlink(path.join(directory, 'secret.gguf'), path.join(root, 'out.gguf'));
  await symlink(directory, path.join(root, 'away'));
  expect(await look('link.gguf')).toMatchObject({ kind: 'present', facts: { hostPath: path.join(root, 'm.gguf') } });
  expect(await look('out.gguf')).toMatchObject({
    kind: 'missing',
    message: expect.stringContaining('links to a file outside the model store'),
  });
  expect(await look('away/secret.gguf')).toMatchObject({
    kind: 'missing',
    message: expect.stringContaining('links to a file outside the model store'),
  });
});

test('a split model is present if all its shards are, with their total size', async () => {
  await writeFile(path.join(root, 'm-00001-of-00002.gguf'), fox);
  expect(await look('m-00001-of-00002.gguf')).toMatchObject({ kind: 'missing', message: expect.stringContaining('m-00002-of-00002.gguf') });
  await writeFile(path.join(root, 'm-00002-of-00002.gguf'), fox);
  expect(await look('m-00001-of-00002.gguf')).toMatchObject({ kind: 'present', facts: { sizeBytes: 2 * fox.length } });
});

test('the facts of a model include a projector in its directory', async () => {
  await mkdir(path.join(root, 'v'));
  await writeFile(path.join(root, 'v', 'm.gguf'), fox);
  await writeFile(path.join(root, 'v', 'mmproj-F16.gguf'), 'x');
  expect(await look('v/m.gguf')).toMatchObject({ kind: 'present', facts: { contents: { projector: 'mmproj-F16.gguf' } } });
});

test('list() has the catalogue and the other models of the directory, once each', async () => {
  await writeDemoModels(root);
  await mkdir(path.join(root, 'own'));
  for (const name of ['m.gguf', 'mmproj.gguf', 'notes.txt', 's-00001-of-00002.gguf', 's-00002-of-00002.gguf']) {
    await writeFile(path.join(root, 'own', name), fox);
  }
  const listed = await store.list(signal);
  expect(listed.map((model) => [model.id, model.presence.kind])).toEqual([
    ['demo-fox', 'present'],
    ['demo-owl', 'present'],
    ['demo-clock', 'pullable'],
    ['demo-embed', 'present'],
    ['demo-listener', 'pullable'],
    ['demo-speaker', 'pullable'],
    ['own/m.gguf', 'present'],
    ['own/s-00001-of-00002.gguf', 'present'],
  ]);
});

test('changes() wakes when a model appears in a new directory', async () => {
  const abort = new AbortController();
  try {
    const woken = new Promise<void>((resolve) =>
      store.changes(() => void look('new/m.gguf').then((seen) => seen.kind === 'present' && resolve()), abort.signal),
    );
    // A watcher that has not started yet misses the change, which only the resync would find; so it is repeated until it is noticed.
    const write = setInterval(
      () => void mkdir(path.join(root, 'new'), { recursive: true }).then(() => writeFile(path.join(root, 'new', 'm.gguf'), fox)),
      300,
    );
    await woken.finally(() => clearInterval(write));
  } finally {
    abort.abort();
  }
});
