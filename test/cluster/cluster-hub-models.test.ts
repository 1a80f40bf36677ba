/** Names on the Hub in a cluster: a fake API server keeps the records, a fake Hub has the repositories, and no gateway fetches a file. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CONFIG_MAPS } from '../../src/cluster/client/decide/resource-path.ts';
import type { ClusterModelStore } from '../../src/cluster/models/cluster-model-store.ts';
import { encodeEmbedder } from '../../toolboxes/demo/demo-embedder.ts';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { encodeGguf, text, texts, u32 } from '../../toolboxes/demo/encode-gguf.ts';
import { createModelSources } from '../../src/models/model-sources.ts';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { createModelStore } from '../../src/models/store.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import type { ModelFacts } from '../../src/providers/provider.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeHub, type FakeHub, type FakeRepo } from '../support/hub/fake-hub.ts';
import { bufferFile, virtualFile } from '../support/hub/virtual-file.ts';
import { createClusterModelsWorld, type ClusterModelsWorld, type ReplicaOptions } from './cluster-models-fixture.ts';

const signal = new AbortController().signal;
const id = (name: string): ModelId => ModelId.parse(name);
const gguf = (bytes: Uint8Array) => bufferFile(Buffer.from(bytes));
const FILES = new Map([
  ['m-Q4_K_M.gguf', gguf(encodeDemoModel('demo-fox'))],
  ['m-Q8_0.gguf', gguf(encodeEmbedder({ name: 'r', head: 'rank' }))],
  ['mmproj-F16.gguf', virtualFile(100_000)],
]);

let root = '';
let hub: FakeHub;
let world: ClusterModelsWorld;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-cluster-hub-'));
  hub = await startFakeHub({ repos: [repoOf('o/r')] });
  world = await createClusterModelsWorld();
});
afterEach(async () => {
  await world.close();
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

function repoOf(name: string, more: Partial<FakeRepo> = {}): FakeRepo {
  return { name, commit: 'a'.repeat(40), files: new Map(FILES), license: 'apache-2.0', ...more };
}

const replica = async ({ env, ...more }: Partial<ReplicaOptions> = {}): Promise<ClusterModelStore> =>
  world.replica({ root, env: { HF_ENDPOINT: hub.url, ...env }, ...more });
const pull = async (store: ClusterModelStore, name: string) => store.pull(id(name), () => {}, signal);
const look = async (store: ClusterModelStore, name: string) => (await store.observe([id(name)], signal)).get(id(name));
const records = () => world.fake.objects(CONFIG_MAPS);

async function factsOf(store: ClusterModelStore, name: string): Promise<ModelFacts> {
  const presence = await look(store, name);
  if (presence?.kind !== 'present') throw new Error(`"${name}" is ${presence?.kind ?? 'not known'}`);
  return presence.facts;
}

describe('a name on the Hub in a cluster', () => {
  test('is resolved once, to the facts that a reader of its files finds, and no file is fetched', async () => {
    const store = await replica();
    expect(await look(store, 'hf:o/r')).toEqual({ kind: 'pullable', sizeBytes: undefined });
    expect(await pull(store, 'hf:o/r')).toEqual({ ok: true, value: undefined });
    const { pinnedBy, ...facts } = await factsOf(store, 'hf:o/r');
    expect(pinnedBy).toEqual({ object: expect.stringMatching(/^svc-model-[0-9a-f]{20}$/), digest: expect.any(String) });
    // The beginning of each file tells the facts: the projector's tells whether the model sees and hears.
    const names = hub.fileRequests().map(({ path: each }) => path.basename(each.split('?')[0] ?? ''));
    expect(names).toEqual(['m-Q4_K_M.gguf', 'mmproj-F16.gguf']);
    expect(await readdir(root)).toEqual([]);
    const onHost = createModelStore({
      root,
      formats: MODEL_FORMATS,
      sources: createModelSources({ root, hub: readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: root }) }),
    });
    expect(await onHost.pull(id('hf:o/r'), () => {}, signal)).toMatchObject({ ok: true });
    const read = (await onHost.observe([id('hf:o/r')], signal)).get(id('hf:o/r'));
    expect(read).toMatchObject({ kind: 'present', facts });
  });

  test('means the same for every replica and after a restart, without the Hub and although the repository has moved on', async () => {
    const [leader, follower] = [await replica(), await replica()];
    expect(await pull(leader, 'hf:o/r')).toMatchObject({ ok: true });
    await eventually('the other replica knows it', async () => (await look(follower, 'hf:o/r'))?.kind === 'present');
    const facts = await factsOf(leader, 'hf:o/r');
    hub.repos.set('o/r', repoOf('o/r', { commit: 'b'.repeat(40) }));
    await hub.close();
    expect(await factsOf(follower, 'hf:o/r')).toEqual(facts);
    expect(await factsOf(await replica(), 'hf:o/r')).toEqual(facts);
    // The loop remembers what it computed for as long as the facts are the same object.
    expect(await factsOf(leader, 'hf:o/r')).toBe(await factsOf(leader, 'hf:o/r'));
    expect(JSON.parse(String(Object(records()[0]?.['data'])['pin']))).toMatchObject({
      id: 'hf:o/r',
      files: [{ from: { commit: 'a'.repeat(40) } }, {}],
    });
  });

  test('is resolved again after it was removed', async () => {
    const store = await replica();
    await pull(store, 'hf:o/r');
    const before = await factsOf(store, 'hf:o/r');
    expect(await store.forget(id('hf:o/r'))).toEqual({ ok: true, value: true });
    expect(await look(store, 'hf:o/r')).toMatchObject({ kind: 'pullable' });
    hub.repos.set('o/r', repoOf('o/r', { commit: 'b'.repeat(40) }));
    expect(await pull(store, 'hf:o/r')).toMatchObject({ ok: true });
    expect((await factsOf(store, 'hf:o/r')).pinnedBy?.digest).not.toBe(before.pinnedBy?.digest);
    expect(await store.forget(id('hf:o/none'))).toEqual({ ok: true, value: false });
  });

  test('is gone once its removal succeeded, before the watch tells of it', async () => {
    const store = await replica();
    await pull(store, 'hf:o/r');
    world.fake.watches.silence();
    expect(await store.forget(id('hf:o/r'))).toEqual({ ok: true, value: true });
    expect(await look(store, 'hf:o/r')).toMatchObject({ kind: 'pullable' });
  });

  test('that two replicas resolve at the same time has the files that the first one kept', async () => {
    const [one, other] = [await replica(), await replica()];
    const results = await Promise.all([pull(one, 'hf:o/r'), pull(other, 'hf:o/r')]);
    expect(results.some(({ ok }) => ok)).toBe(true);
    for (const result of results) if (!result.ok) expect(result.failure).toMatchObject({ kind: 'retry' });
    await eventually(
      'both know it',
      async () => (await look(one, 'hf:o/r'))?.kind === 'present' && (await look(other, 'hf:o/r'))?.kind === 'present',
    );
    expect(await factsOf(one, 'hf:o/r')).toEqual(await factsOf(other, 'hf:o/r'));
    expect(records()).toHaveLength(1);
  });

  test('is not known to be missing before the records are known', async () => {
    const store = await replica({ isEarly: true });
    expect((await store.observe([id('hf:o/r'), id('demo-fox')], signal)).has(id('hf:o/r'))).toBe(false);
    expect(await look(store, 'demo-fox')).toMatchObject({ kind: 'present' });
    expect(await look(store, 'hf:o')).toMatchObject({
      kind: 'missing',
      message: expect.stringContaining('is not a model on the Hub; write it as'),
    });
  });

  test('whose record somebody has altered is resolved again', async () => {
    const store = await replica();
    await pull(store, 'hf:o/r');
    const name = String(records()[0]?.metadata.name);
    const labels = records()[0]?.metadata.labels ?? {};
    world.fake.put(CONFIG_MAPS, 'default', { metadata: { name, labels }, data: { pin: '{"version":1}', model: '{}' } });
    await eventually('it is seen', async () => (await look(store, 'hf:o/r'))?.kind === 'pullable');
    expect(await pull(store, 'hf:o/r')).toMatchObject({ ok: true });
    expect(await look(store, 'hf:o/r')).toMatchObject({ kind: 'present' });
  });

  test.each([
    ['hf:o/r:Q8_0', undefined, 'rank', 'm-Q8_0'],
    ['hf:o/r', undefined, undefined, 'm-Q4_K_M'],
    ['hf:o/r/m-Q8_0.gguf', 1, 'rank', 'm-Q8_0'],
  ])('%s with %p bytes for models has the facts of its own file', async (name, fitsBytes, head, directory) => {
    const store = await replica(fitsBytes === undefined ? {} : { fitsBytes });
    expect(await pull(store, name)).toMatchObject({ ok: true });
    const facts = await factsOf(store, name);
    expect(facts.hostPath).toBe(path.join(root, `hf/o/r/${directory}/${directory}.gguf`));
    expect(facts.contents).toMatchObject({ hasClassifier: head === 'rank' });
  });

  test('reads a long header in steps, and only its beginning of the file', async () => {
    const words = Array.from({ length: 60_000 }, (_, index) => `a word of the vocabulary ${index}`);
    const metadata = [
      ['general.architecture', text('llama')],
      ['tokenizer.ggml.tokens', texts(words)],
      ['llama.block_count', u32(7)],
    ] as const;
    const header = Buffer.from(encodeGguf({ metadata, tensors: [] }));
    hub.repos.set(
      'o/long',
      repoOf('o/long', { files: new Map([['long.gguf', bufferFile(Buffer.concat([header, Buffer.alloc(9_000_000)]))]]) }),
    );
    const store = await replica();
    expect(await pull(store, 'hf:o/long')).toMatchObject({ ok: true });
    expect((await factsOf(store, 'hf:o/long')).contents).toMatchObject({ blockCount: 7 });
    const ranges = hub.fileRequests().map(
      ({ range }) =>
        /^bytes=([0-9]+)-([0-9]+)$/
          .exec(range ?? '')
          ?.slice(1)
          .map(Number) ?? [],
    );
    expect(ranges.length).toBeGreaterThan(1);
    expect(ranges.map(([from]) => from)).toEqual([0, ...ranges.slice(0, -1).map(([, last = 0]) => last + 1)]);
    expect(ranges.at(-1)?.[1]).toBeLessThan(header.length + 2 ** 22);
  });
});

describe('a name on the Hub that cannot be used', () => {
  test.each([
    ['hf:o/none', 'ModelGated', '"o/none" does not exist, or requires a token'],
    ['hf:o/r:Q3_K', 'ModelMissing', '"o/r" has no quantisation "Q3_K"'],
    ['hf:o/r/mmproj-F16.gguf', 'ModelUnusable', 'damaged or not a GGUF file'],
  ])('%s says why in the failure, and nothing is kept', async (name, reason, message) => {
    const failure = { kind: 'stalled', reason, message: expect.stringContaining(message) };
    expect(await pull(await replica(), name)).toMatchObject({ ok: false, failure });
    expect(records()).toEqual([]);
  });

  test.each([
    [{ status: 429, headers: { 'retry-after': '7' } }, 'retry', 'ModelPullFailed', 'in 8 s'],
    [{ status: 503 }, 'retry', 'ModelPullFailed', 'HTTP status 503'],
    [{ cutAfter: 100 }, 'retry', 'ModelPullFailed', 'header of the model'],
    [{ etag: 'f'.repeat(64) }, 'stalled', 'ModelHashMismatch', 'another file'],
  ] as const)('a Hub that answers the question for a header with %j', async (fault, kind, reason, message) => {
    hub.fault = ({ path: each }) => (each.includes('/resolve/') || each.includes('signature') ? fault : undefined);
    expect(await pull(await replica(), 'hf:o/r')).toMatchObject({
      ok: false,
      failure: { kind, reason, message: expect.stringContaining(message) },
    });
    hub.fault = () => undefined;
    expect(await pull(await replica(), 'hf:o/r')).toMatchObject({ ok: true });
  });

  test('a server without ranges is read to the end of the header', async () => {
    hub.fault = () => ({ range: 'ignored' });
    const store = await replica();
    expect(await pull(store, 'hf:o/r')).toMatchObject({ ok: true });
    expect((await factsOf(store, 'hf:o/r')).contents).toMatchObject({ architecture: 'llama' });
  });

  test('a gated repository is explained, and read with the token of the gateway, which no other server sees', async () => {
    hub.repos.set('o/gated', repoOf('o/gated', { token: 'hf_right', gated: 'manual', license: 'llama3.2' }));
    const gated = { ok: false, failure: { kind: 'stalled', reason: 'ModelGated', message: expect.stringContaining('accept its terms') } };
    expect(await pull(await replica({ env: { HF_TOKEN: 'hf_wrong' } }), 'hf:o/gated')).toMatchObject(gated);
    expect(await pull(await replica({ env: { HF_TOKEN: 'hf_right' } }), 'hf:o/gated')).toMatchObject({ ok: true });
    expect(hub.log.filter(({ server, authorization }) => server === 'storage' && authorization !== undefined)).toEqual([]);
    expect(JSON.stringify(records())).not.toContain('hf_right');
  });

  test('a licence that restricts the use is accepted once for the namespace, or by the settings', async () => {
    hub.repos.set('o/llama', repoOf('o/llama', { license: 'llama3.2' }));
    const store = await replica();
    const refused = await pull(store, 'hf:o/llama');
    expect(refused).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'LicenseNotAccepted' } });
    expect(records()).toEqual([]);
    expect(await look(store, 'hf:o/llama')).toMatchObject({ kind: 'pullable', refusal: expect.stringContaining('"llama3.2"') });
    expect(await pull(await replica({ acceptedLicenses: ['Llama3.2'] }), 'hf:o/llama:Q8_0')).toMatchObject({ ok: true });
    expect(await store.sources.licenses.accept('llama3.2', 'hf:o/llama')).toMatchObject({ ok: true });
    expect(await store.sources.licenses.accept('llama3.2', 'hf:o/llama')).toMatchObject({ ok: true });
    expect(await look(store, 'hf:o/llama')).toEqual({ kind: 'pullable', sizeBytes: expect.any(Number) });
    expect(await pull(store, 'hf:o/llama')).toMatchObject({ ok: true });
    hub.repos.set('o/other', repoOf('o/other', { license: 'llama3.2' }));
    expect(await pull(await replica(), 'hf:o/other')).toMatchObject({ ok: true });
  });
});

test('the models of a cluster are those of the catalogue, and the names that were resolved', async () => {
  const store = await replica();
  await pull(store, 'hf:o/r');
  const listed = await store.list(signal);
  expect(listed.map((model) => [model.id, model.presence.kind])).toEqual(
    expect.arrayContaining([
      ['demo-fox', 'present'],
      ['hf:o/r', 'present'],
    ]),
  );
  expect(listed.find((model) => model.id === 'hf:o/r')?.entry).toMatchObject({ license: 'apache-2.0' });
});
