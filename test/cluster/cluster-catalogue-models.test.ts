/** Entries of the catalogue in a cluster: a fake API server keeps the records, a fake Hub has the files, and no gateway fetches one. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CONFIG_MAPS } from '../../src/cluster/client/decide/resource-path.ts';
import type { ClusterModelStore } from '../../src/cluster/models/cluster-model-store.ts';
import { DEMO_CATALOGUE, type Catalogue } from '../../src/models/catalogue/catalogue.ts';
import { readCatalogueOnce } from '../../src/models/catalogue/catalogue-source.ts';
import { encodeSpeaker } from '../../toolboxes/demo/demo-speaker.ts';
import { encodeGguf, text } from '../../toolboxes/demo/encode-gguf.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { startFakeHub, type FakeHub, type FakeRepo } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { createClusterModelsWorld, type ClusterModelsWorld } from './cluster-models-fixture.ts';

const signal = new AbortController().signal;
const id = (name: string): ModelId => ModelId.parse(name);
const gguf = (bytes: Uint8Array) => bufferFile(Buffer.from(bytes));

let root = '';
let hub: FakeHub;
let world: ClusterModelsWorld;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-cluster-catalogue-'));
  hub = await startFakeHub({ repos: [] });
  world = await createClusterModelsWorld();
});
afterEach(async () => {
  await world.close();
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

const repoOf = (name: string, files: FakeRepo['files']): FakeRepo => ({ name, commit: 'a'.repeat(40), files, license: 'apache-2.0' });
const replica = async (catalogue: Catalogue): Promise<ClusterModelStore> =>
  world.replica({ root, env: { HF_ENDPOINT: hub.url }, catalogue });
const pull = async (store: ClusterModelStore, name: string) => store.pull(id(name), () => {}, signal);
const look = async (store: ClusterModelStore, name: string) => (await store.observe([id(name)], signal)).get(id(name));
const records = () => world.fake.objects(CONFIG_MAPS);

describe('an entry of the catalogue in a cluster', () => {
  /** A header without `pooling_type`, as that of some embedding models. */
  const bare = gguf(encodeGguf({ metadata: [['general.architecture', text('qwen3')]], tensors: [] }));

  async function catalogueOf(models: string): Promise<Catalogue> {
    const local = path.join(root, 'models.toml');
    await writeFile(local, models);
    const { catalogue, problems } = await readCatalogueOnce({ local, hub: { endpoint: hub.url }, providers: ['gguf'] });
    expect(problems).toEqual([]);
    return catalogue;
  }

  const entry = (sha256: string) =>
    `[[models]]\nid = "own"\nkind = "embed"\npooling = "last"\n[[models.files]]\nrepo = "o/own"\nfile = "e.gguf"\nsize = ${bare.sizeBytes}\nsha256 = "${sha256}"\n`;

  test('becomes a record with what its header says, completed by what the catalogue states; its pods need no catalogue', async () => {
    hub.repos.set('o/own', repoOf('o/own', new Map([['e.gguf', bare]])));
    const store = await replica(await catalogueOf(entry(bare.sha256)));
    expect(await look(store, 'own')).toEqual({ kind: 'pullable', sizeBytes: bare.sizeBytes });
    expect(await pull(store, 'own')).toEqual({ ok: true, value: undefined });
    expect(await look(store, 'own')).toMatchObject({
      kind: 'present',
      facts: { provider: 'gguf', contents: { architecture: 'qwen3', poolingType: 3 }, pinnedBy: { object: expect.any(String) } },
    });
    const changed = await replica(await catalogueOf(entry('f'.repeat(64))));
    expect(await look(changed, 'own')).toMatchObject({ kind: 'pullable' });
  });

  test('is read by the provider that it names, although another one knows files of the same names', async () => {
    const voiceFiles = Object.entries(encodeSpeaker()).map(([name, bytes]) => [name, gguf(bytes)] as const);
    hub.repos.set('o/voice', repoOf('o/voice', new Map(voiceFiles)));
    const own = id('own-voice');
    const [first, ...others] = voiceFiles.map(([name, { sha256, sizeBytes }]) => ({
      path: `voices/own/${name}`,
      from: { kind: 'url', url: `${hub.url}/o/voice/resolve/${'a'.repeat(40)}/${name}`, sha256, sizeBytes } as const,
    }));
    const demo = DEMO_CATALOGUE.get('demo-fox');
    if (demo === undefined || first === undefined) throw new Error('No demo model, or no files');
    const voice = { ...demo, id: own, provider: 'tts', directory: 'voices/own', files: [first, ...others] } as const;
    const store = await replica(new Map([[own, voice]]));
    expect(await pull(store, own)).toEqual({ ok: true, value: undefined });
    expect(await look(store, own)).toMatchObject({ kind: 'present', facts: { provider: 'tts', family: 'vits' } });
  });

  test('is refused where this version cannot run it, and no record is made', async () => {
    const store = await replica(await catalogueOf(''));
    const message =
      'The model "sdxl-turbo" cannot be used: it needs the provider "image", which this version does not include yet; choose another model';
    expect(await look(store, 'sdxl-turbo')).toEqual({ kind: 'missing', message });
    for (const refused of [await pull(store, 'sdxl-turbo'), await store.sources.resolve(id('sdxl-turbo'), signal)])
      expect(refused).toMatchObject({ ok: false, failure: { kind: 'stalled', message } });
    expect(records()).toEqual([]);
  });
});
