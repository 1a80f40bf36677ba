import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { createModelSources } from '../../src/models/model-sources.ts';
import { createModelStore, type DirectoryModelStore } from '../../src/models/store.ts';
import type { Progress } from '../../src/reconciler/ports.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeHub, type FakeHub, type FakeRepo } from '../support/hub/fake-hub.ts';
import { bufferFile, virtualFile } from '../support/hub/virtual-file.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';

const fox = bufferFile(Buffer.from(encodeDemoModel('demo-fox')));
const owl = bufferFile(Buffer.from(encodeDemoModel('demo-owl')));
const projector = virtualFile(100_000);
const large = virtualFile(20_000_000);
const FILES = new Map([
  ['README.md', bufferFile(Buffer.from('# m'))],
  ['m-Q4_K_M.gguf', fox],
  ['m-Q8_0.gguf', owl],
  ['mmproj-F16.gguf', projector],
]);
const signal = new AbortController().signal;
const id = (text: string): ModelId => ModelId.parse(text);

let root = '';
let hub: FakeHub;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-hub-'));
  hub = await startFakeHub({ repos: [repoOf('o/r')], pageSize: 2 });
});
afterEach(async () => {
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

function repoOf(name: string, more: Partial<FakeRepo> = {}): FakeRepo {
  return { name, commit: 'a'.repeat(40), files: new Map(FILES), license: 'apache-2.0', ...more };
}

interface StoreOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly fitsBytes?: number;
  readonly accepted?: readonly string[];
}

/** A store as a service that has just been started has it. */
function storeOf({ env = {}, fitsBytes, accepted = [] }: StoreOptions = {}): DirectoryModelStore {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: path.join(root, 'no-home'), ...env });
  const sources = createModelSources({ root, hub: access, fitsBytes: async () => fitsBytes, acceptedLicenses: accepted });
  return createModelStore({ root, formats: MODEL_FORMATS, sources, pace: { pollMs: 10, stillMs: 50, retryMs: 5 } });
}

const look = async (store: DirectoryModelStore, name: string) => (await store.observe([id(name)], signal)).get(id(name));
const pull = (store: DirectoryModelStore, name: string, own = signal, onProgress: (progress: Progress) => void = () => {}) =>
  store.pull(id(name), onProgress, own);

describe('a model that is named by its repository', () => {
  test('can be pulled, is complete with its projector, and then needs no network', async () => {
    const store = storeOf();
    expect(await look(store, 'hf:o/r')).toEqual({ kind: 'pullable', sizeBytes: undefined });
    const progress: Progress[] = [];
    expect(await pull(store, 'hf:o/r', signal, (each) => progress.push(each))).toEqual({ ok: true, value: undefined });
    const directory = path.join(root, 'hf/o/r/m-Q4_K_M');
    expect(await readdir(directory)).toEqual(['m-Q4_K_M.gguf', 'mmproj-F16.gguf']);
    const totalBytes = fox.sizeBytes + projector.sizeBytes;
    expect(progress.at(-1)).toMatchObject({ what: 'mmproj-F16.gguf', doneBytes: totalBytes, totalBytes });
    await hub.close();
    const present = {
      kind: 'present',
      facts: { hostPath: path.join(directory, 'm-Q4_K_M.gguf'), contents: { projector: 'mmproj-F16.gguf' } },
    };
    expect(await look(storeOf(), 'hf:o/r')).toMatchObject(present);
    expect(await pull(storeOf(), 'hf:o/r')).toMatchObject({ ok: true });
  });

  test.each([
    ['hf:o/r:Q8_0', undefined, 'm-Q8_0'],
    ['hf:o/r/m-Q8_0.gguf', undefined, 'm-Q8_0'],
    ['hf:o/r', projector.sizeBytes + owl.sizeBytes, owl.sizeBytes < fox.sizeBytes ? 'm-Q8_0' : 'm-Q4_K_M'],
  ])('%s with %p bytes of memory is %s', async (name, fitsBytes, directory) => {
    const store = storeOf(fitsBytes === undefined ? {} : { fitsBytes });
    expect(await pull(store, name)).toMatchObject({ ok: true });
    expect(await readdir(path.join(root, 'hf/o/r'))).toEqual([directory]);
  });

  test('keeps the commit that it was resolved to, although the repository has moved on', async () => {
    const asked = (): readonly string[] => hub.fileRequests().map(({ path: each }) => each);
    hub.fault = ({ server }) => (server === 'storage' ? { status: 404 } : undefined);
    expect(await pull(storeOf(), 'hf:o/r')).toMatchObject({ ok: false });
    hub.fault = () => undefined;
    hub.repos.set('o/r', repoOf('o/r', { commit: 'b'.repeat(40) }));
    const before = asked().length;
    expect(await pull(storeOf(), 'hf:o/r')).toMatchObject({
      ok: false,
      failure: { message: expect.stringContaining('no longer has the chosen version') },
    });
    expect(asked().length).toBe(before);
    expect(hub.log.filter(({ path: each }) => each.includes('/resolve/')).every(({ path: each }) => each.includes('a'.repeat(40)))).toBe(
      true,
    );
  });

  test.each([
    ['hf:o/none', 'ModelGated', '"o/none" does not exist, or requires a token'],
    ['hf:o/r:Q3_K', 'ModelMissing', '"o/r" has no quantisation "Q3_K"; choose one of "Q4_K_M", "Q8_0"'],
    ['hf:o/r/none.gguf', 'ModelMissing', '"o/r" has no file "none.gguf"; choose one of'],
    ['hf:o', 'ModelMissing', 'is not a model on the Hub; write it as "hf:owner/repo"'],
  ])('%s fails with what to do', async (name, reason, message) => {
    const failure = { kind: 'stalled', reason, message: expect.stringContaining(message) };
    expect(await pull(storeOf(), name)).toMatchObject({ ok: false, failure });
    expect(await readdir(root)).toEqual([]);
  });

  test('does not fit, whichever quantisation', async () => {
    expect(await pull(storeOf({ fitsBytes: 1000 }), 'hf:o/r')).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', reason: 'ModelTooLarge' },
    });
  });

  test('answers of something else than the Hub are told apart from it', async () => {
    const elsewhere = storeOf({ env: { HF_ENDPOINT: `${hub.storageUrl}/` } });
    expect(await pull(elsewhere, 'hf:o/r')).toMatchObject({ ok: false, failure: { reason: 'ModelMissing' } });
    await hub.close();
    const message = expect.stringContaining('; check the network');
    expect(await pull(storeOf(), 'hf:o/r')).toMatchObject({ ok: false, failure: { kind: 'retry', message } });
  });
});

describe('a repository with terms', () => {
  test('needs a token, from the environment or from the file of a login', async () => {
    hub.repos.set('o/gated', repoOf('o/gated', { token: 'hf_right', gated: 'manual', license: 'llama3.2' }));
    const gated = { ok: false, failure: { kind: 'stalled', reason: 'ModelGated', message: expect.stringContaining('accept its terms') } };
    expect(await pull(storeOf(), 'hf:o/gated')).toMatchObject(gated);
    expect(await pull(storeOf({ env: { HF_TOKEN: 'hf_wrong' } }), 'hf:o/gated')).toMatchObject(gated);
    await writeFile(path.join(root, 'token'), 'hf_right\n');
    expect(await pull(storeOf({ env: { HF_HOME: root } }), 'hf:o/gated')).toEqual({ ok: true, value: undefined });
    expect(hub.log.filter(({ server, authorization }) => server === 'storage' && authorization !== undefined)).toEqual([]);
  });

  test('is fetched only after its licence was accepted, for this store or by the settings', async () => {
    hub.repos.set('o/llama', repoOf('o/llama', { license: 'llama3.2' }));
    const store = storeOf();
    const refused = await pull(store, 'hf:o/llama');
    expect(refused).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'LicenseNotAccepted' } });
    expect(refused).toMatchObject({
      failure: { message: expect.stringContaining(`The licence "llama3.2" (${hub.url}/o/llama) restricts the use of the model`) },
    });
    expect(hub.fileRequests()).toEqual([]);
    expect(await look(store, 'hf:o/llama')).toMatchObject({ kind: 'pullable', refusal: expect.stringContaining('"llama3.2"') });
    expect(await pull(storeOf({ accepted: ['llama3.2'] }), 'hf:o/llama:Q8_0')).toMatchObject({ ok: true });
    await store.sources.licenses.accept('llama3.2', 'hf:o/llama');
    expect(await look(store, 'hf:o/llama')).toEqual({ kind: 'pullable', sizeBytes: expect.any(Number) });
    expect(await pull(storeOf(), 'hf:o/llama')).toMatchObject({ ok: true });
    expect(await readFile(path.join(root, '.svc/accepted-licenses.json'), 'utf8')).toContain('"model": "hf:o/llama"');
  });
});

describe('the downloads of one service', () => {
  beforeEach(() => {
    hub.repos.set('o/large', repoOf('o/large', { files: new Map([['m-Q4_K_M.gguf', large]]) }));
    hub.bytesPerSecond = 20_000_000;
  });

  test('are one for everyone who waits for the same model, and go on while somebody waits', async () => {
    const store = storeOf();
    const first = new AbortController();
    const seen = [0, 0];
    const leaving = pull(store, 'hf:o/large', first.signal, () => (seen[0] = (seen[0] ?? 0) + 1));
    const staying = pull(store, 'hf:o/large', signal, () => (seen[1] = (seen[1] ?? 0) + 1));
    await eventually('it has begun', () => (store.pulls.list()[0]?.progress?.doneBytes ?? 0) > 2_000_000);
    first.abort();
    expect(await leaving).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
    hub.bytesPerSecond = undefined;
    // The file is no model, which is noticed at the end, after every byte was fetched once.
    expect(await staying).toMatchObject({ ok: false, failure: { reason: 'ModelUnusable' } });
    expect(seen.every((count) => count > 0)).toBe(true);
    expect(hub.sentBytes()).toBe(large.sizeBytes);
  });

  test('end when nobody waits any more, and continue from there', async () => {
    const store = storeOf();
    const leaving = new AbortController();
    const left = pull(store, 'hf:o/large', leaving.signal);
    await eventually('it has begun', () => (store.pulls.list()[0]?.progress?.doneBytes ?? 0) > 5_000_000);
    leaving.abort();
    await left;
    expect(store.pulls.list()).toEqual([]);
    const sent = hub.sentBytes();
    hub.bytesPerSecond = undefined;
    const progress: number[] = [];
    await pull(storeOf(), 'hf:o/large', signal, ({ doneBytes }) => progress.push(doneBytes));
    expect(progress[0]).toBeGreaterThan(4_000_000);
    expect(sent).toBeLessThan(large.sizeBytes);
  });

  test('can be requested by nobody who stays, fail visibly, and be cancelled', async () => {
    const store = storeOf();
    store.pulls.request(id('hf:o/large'));
    store.pulls.request(id('hf:o/large'));
    await eventually('the list is right', () => store.pulls.list().length === 1);
    expect(store.pulls.list()).toMatchObject([{ id: 'hf:o/large', isRequested: true, failure: undefined }]);
    expect(store.pulls.cancel(id('hf:o/large'))).toBe(true);
    await eventually('the list is right', () => store.pulls.list().length === 0);
    store.pulls.request(id('hf:o/none'));
    await eventually('it has failed', () => store.pulls.list()[0]?.failure?.reason === 'ModelGated');
    expect(store.pulls.cancel(id('hf:o/none'))).toBe(true);
    expect(store.pulls.list()).toEqual([]);
    expect(store.pulls.cancel(id('hf:o/none'))).toBe(false);
  });
});

test('list() has what was pulled by its name, once', async () => {
  const store = storeOf();
  await pull(store, 'hf:o/r:Q8_0');
  const listed = (await store.list(signal)).filter(({ id: each }) => !each.startsWith('demo-'));
  expect(listed).toMatchObject([{ id: 'hf:o/r:Q8_0', presence: { kind: 'present' }, entry: { license: 'apache-2.0' } }]);
});
