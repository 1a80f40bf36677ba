/** Models of the catalogue from a slot's point of view: they are pulled from the Hub by the one machinery, under the rules of all pulls. */
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createCatalogueSource, type CatalogueSource } from '../../src/models/catalogue/catalogue-source.ts';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { encodeGguf, text } from '../../toolboxes/demo/encode-gguf.ts';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { removeModel } from '../../src/models/model-files.ts';
import { createModelSources } from '../../src/models/model-sources.ts';
import { createModelStore, type DirectoryModelStore } from '../../src/models/store.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import type { Progress } from '../../src/reconciler/ports.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile, virtualFile, type VirtualFile } from '../support/hub/virtual-file.ts';

const COMMIT = 'c'.repeat(40);
const fox = bufferFile(Buffer.from(encodeDemoModel('demo-fox')));
const owl = bufferFile(Buffer.from(encodeDemoModel('demo-owl')));
const projector = virtualFile(3_000_000);
/** A header without `pooling_type`, as that of some embedding models. */
const bare = bufferFile(Buffer.from(encodeGguf({ metadata: [['general.architecture', text('qwen3')]], tensors: [] })));
const signal = new AbortController().signal;

let root = '';
let hub: FakeHub;
let source: CatalogueSource;
let store: DirectoryModelStore;

const fileOf = (name: string, { sizeBytes, sha256 }: VirtualFile, more = '') =>
  `[[models.files]]\nrepo = "o/r"\nfile = "${name}"\nsize = ${sizeBytes}\nsha256 = "${sha256}"\n${more}`;
const PINNED = `commit = "${COMMIT}"\n`;
const MODELS = `
[[models]]
id = "own-vision"
kind = "vision"
license = "apache-2.0"
${fileOf('deep/m-Q4_K_M.gguf', fox, PINNED)}
${fileOf('mmproj-F16.gguf', projector, PINNED)}
[[models]]
id = "own-restricted"
kind = "chat"
license = "llama3.2"
license_url = "https://example.com/licence"
${fileOf('m-Q8_0.gguf', owl)}
[[models]]
id = "own-embed"
kind = "embed"
pooling = "last"
${fileOf('embed.gguf', bare)}
[[models]]
id = "own-moved"
kind = "chat"
${fileOf('gone.gguf', fox, `commit = "${'d'.repeat(40)}"\n`)}
`;

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-catalogue-'));
  const files = new Map([
    ['deep/m-Q4_K_M.gguf', fox],
    ['mmproj-F16.gguf', projector],
    ['m-Q8_0.gguf', owl],
    ['embed.gguf', bare],
  ]);
  hub = await startFakeHub({ repos: [{ name: 'o/r', commit: COMMIT, files }] });
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: path.join(root, 'no-home') });
  const local = path.join(root, 'models.toml');
  const log = { info: () => undefined, warn: () => undefined };
  await writeFile(local, MODELS);
  source = await createCatalogueSource({ local, hub: access, providers: ['gguf'], quietPeriodMs: 0, log });
  expect(await source.read()).toEqual([]);
  const { catalogue } = source;
  const own = path.join(root, 'store');
  const sources = createModelSources({ root: own, hub: access, catalogue });
  store = createModelStore({ root: own, formats: MODEL_FORMATS, catalogue, sources, pace: { pollMs: 10, stillMs: 50, retryMs: 5 } });
});
afterEach(async () => {
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

const id = (name: string): ModelId => ModelId.parse(name);
const look = async (name: string) => (await store.observe([id(name)], signal)).get(id(name));
const pull = async (name: string, onProgress: (progress: Progress) => void = () => undefined) =>
  await store.pull(id(name), onProgress, signal);

test('a model and its projector are pulled from their commit, with progress over both, and are then there', async () => {
  const totalBytes = fox.sizeBytes + projector.sizeBytes;
  expect(await look('own-vision')).toEqual({ kind: 'pullable', sizeBytes: totalBytes });
  // The first connection for the projector breaks: the pull goes on where it was.
  let cuts = 1;
  hub.fault = (request) =>
    request.path.includes('mmproj') && request.server === 'storage' && cuts-- > 0 ? { cutAfter: 500_000 } : undefined;
  const progress: Progress[] = [];
  expect(await pull('own-vision', (each) => progress.push(each))).toEqual({ ok: true, value: undefined });
  expect(progress.at(-1)).toMatchObject({ doneBytes: totalBytes, totalBytes });
  const directory = path.dirname(source.catalogue.get('own-vision')?.files[0].path ?? '');
  expect(await look('own-vision')).toMatchObject({
    kind: 'present',
    facts: {
      hostPath: path.join(root, 'store', directory, 'm-Q4_K_M.gguf'),
      contents: { projector: 'mmproj-F16.gguf' },
    },
  });
  expect(hub.log.filter((request) => request.server === 'hub').every(({ path: each }) => each.includes(`/resolve/${COMMIT}/`))).toBe(true);
  expect((await store.list(signal)).filter((model) => model.presence.kind === 'present').map((model) => model.id)).toEqual(['own-vision']);
});

test('a model whose second file is missing is not there, and a pull gets that file alone', async () => {
  await pull('own-vision');
  const directory = path.join(root, 'store', path.dirname(source.catalogue.get('own-vision')?.files[0].path ?? ''));
  await rm(path.join(directory, 'mmproj-F16.gguf'));
  expect(await look('own-vision')).toMatchObject({ kind: 'pullable' });
  const before = hub.log.length;
  await pull('own-vision');
  expect(await look('own-vision')).toMatchObject({ kind: 'present', facts: { contents: { projector: 'mmproj-F16.gguf' } } });
  expect(hub.log.slice(before).every(({ path: each }) => !each.includes('m-Q4_K_M.gguf'))).toBe(true);
});

test('a file that was pulled under its name on the Hub is linked and not downloaded again, unless it is damaged', async () => {
  const byName = 'hf:o/r/deep/m-Q4_K_M.gguf';
  const fetched = (): number => hub.log.filter(({ path: each }) => each.includes('m-Q4_K_M.gguf')).length;
  expect(await pull(byName)).toMatchObject({ ok: true });
  const first = await look(byName);
  const before = fetched();
  const shown: string[] = [];
  expect(await pull('own-vision', ({ what }) => shown.push(what))).toMatchObject({ ok: true });
  const second = await look('own-vision');
  if (first?.kind !== 'present' || second?.kind !== 'present') throw new Error('Both must be present');
  const [one, two] = [await stat(first.facts.hostPath), await stat(second.facts.hostPath)];
  expect({ fetched: fetched(), ino: two.ino }).toEqual({ fetched: before, ino: one.ino });
  expect(shown).toContain('m-Q4_K_M.gguf (comparing a copy in the store)');
  expect((await readdir(path.dirname(second.facts.hostPath))).toSorted()).toEqual(['m-Q4_K_M.gguf', 'mmproj-F16.gguf']);

  // Removing one leaves the other.
  await removeModel({ root: store.root, sources: store.sources, formats: MODEL_FORMATS }, id('own-vision'));
  expect(await look(byName)).toMatchObject({ kind: 'present' });

  await writeFile(first.facts.hostPath, new Uint8Array(fox.sizeBytes));
  expect(await pull('own-vision')).toMatchObject({ ok: true });
  expect(fetched()).toBeGreaterThan(before);
  expect(await look('own-vision')).toMatchObject({ kind: 'present', facts: { contents: { architecture: 'llama' } } });
});

test('a restrictive licence has to be accepted first, and the message says where to read it', async () => {
  expect(await pull('own-restricted')).toMatchObject({
    ok: false,
    failure: { reason: 'LicenseNotAccepted', message: expect.stringContaining('"llama3.2" (https://example.com/licence)') },
  });
  expect(hub.log).toEqual([]);
  await store.sources.licenses.accept('llama3.2', 'own-restricted');
  expect(await pull('own-restricted')).toMatchObject({ ok: true });
  expect(hub.log[0]?.path).toContain('/resolve/main/');
});

test('a header that does not say how to pool is completed by the catalogue', async () => {
  expect(await pull('own-embed')).toMatchObject({ ok: true });
  expect(await look('own-embed')).toMatchObject({ kind: 'present', facts: { contents: { architecture: 'qwen3', poolingType: 3 } } });
});

const GONE = 'The files of "own-moved" are not where the catalogue says; correct its entry in "models.toml"';

test('a file that is gone, or has another content, is refused with what to do', async () => {
  expect(await pull('own-moved')).toMatchObject({ ok: false, failure: { kind: 'stalled', message: GONE } });
  hub.fault = (request) => (request.path.includes('m-Q8_0') ? { file: virtualFile(owl.sizeBytes) } : undefined);
  await store.sources.licenses.accept('llama3.2', 'own-restricted');
  expect(await pull('own-restricted')).toMatchObject({ ok: false, failure: { reason: 'ModelHashMismatch' } });
  expect(await look('own-restricted')).toMatchObject({ kind: 'pullable' });
});

test('a model that this version cannot run is refused before anything is asked for', async () => {
  const message =
    'The model "sdxl-turbo" cannot be used: it needs the provider "image", which this version does not include yet; choose another model';
  expect(await look('sdxl-turbo')).toEqual({ kind: 'missing', message });
  expect(await pull('sdxl-turbo')).toMatchObject({ ok: false, failure: { kind: 'stalled', message } });
  expect(await store.sources.resolve(id('sdxl-turbo'), signal)).toMatchObject({ ok: false, failure: { message } });
  expect(hub.log).toEqual([]);
});

test.each([
  ['own-visoin', '; did you mean "own-vision"?'],
  ['OWN-Embed', '; did you mean "own-embed"?'],
  ['gemma-4', '; did you mean "gemma-4-e2b", "gemma-4-e4b" or "gemma-4-12b"?'],
])('an unknown id such as "%s" is answered with those that were meant', async (name, hint) => {
  const presence = await look(name);
  expect(presence?.kind === 'missing' ? presence.message : '').toContain(hint);
  const pulled = await pull(name);
  expect(pulled.ok ? '' : pulled.failure.message).toContain(hint);
});

test('an edit of one entry takes its model away, and leaves all others as they were', async () => {
  await pull('own-vision');
  await pull('own-embed');
  const [vision, embed] = [await look('own-vision'), await look('own-embed')];
  await writeFile(
    path.join(root, 'models.toml'),
    MODELS.replace(fox.sha256, owl.sha256).replace(`size = ${fox.sizeBytes}`, `size = ${owl.sizeBytes}`),
  );
  expect(await source.read()).toEqual([]);
  expect(await look('own-vision')).toMatchObject({ kind: 'pullable' });
  expect(await look('own-embed')).toEqual(embed);
  await writeFile(path.join(root, 'models.toml'), MODELS.replace('license = "apache-2.0"', 'license = "mit"'));
  await source.read();
  expect(await look('own-vision')).toEqual(vision);
});
