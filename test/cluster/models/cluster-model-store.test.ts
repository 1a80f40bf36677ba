import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DEMO_CATALOGUE, type Catalogue } from '../../../src/models/catalogue/catalogue.ts';
import { DEMO_MODEL_IDS, encodeDemoModel, writeDemoModels } from '../../../toolboxes/demo/demo-models.ts';
import { createModelStore } from '../../../src/models/store.ts';
import { MODEL_FORMATS, PROVIDERS } from '../../../src/providers/registry.ts';
import type { ModelFacts } from '../../../src/providers/provider.ts';
import { templatingOf } from '../../../src/reconciler/remember/desire.ts';
import type { ModelStore, RuntimeTraits } from '../../../src/reconciler/ports.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { SHAPES, writeCheckpoint } from '../../support/comfyui/checkpoints.ts';
import { changed, PORTRAIT, type SavedWorkflow } from '../../support/comfyui/user-workflows.ts';
import { createClusterModelsWorld, type ClusterModelsWorld } from '../cluster-models-fixture.ts';

const signal = new AbortController().signal;
const ids = DEMO_MODEL_IDS.map((id) => ModelId.parse(id));
const TRAITS: RuntimeTraits = { kind: 'kube', images: true, network: 'pods', modelsTarget: '/models' };
let root = '';
let world: ClusterModelsWorld;
beforeEach(async () => {
  world = await createClusterModelsWorld();
  root = await mkdtemp(path.join(tmpdir(), 'svc-cluster-store-'));
});
afterEach(async () => {
  await world.close();
  await rm(root, { recursive: true, force: true });
});

const clusterStore = async (): Promise<ModelStore> => world.replica({ root });

async function factsOf(store: Pick<ModelStore, 'observe'>, id: ModelId) {
  const presence = (await store.observe([id], signal)).get(id);
  if (presence?.kind !== 'present') throw new Error(`"${id}" is ${presence?.kind ?? 'nothing'}`);
  return presence.facts;
}

/** Returns the workload of a slot with this model. */
async function templateOf(store: Pick<ModelStore, 'observe'>, id: ModelId, resources = {}) {
  const name = SlotName.parse('mine');
  const parsed = parseSlot(name, { provider: 'gguf', backend: 'cpu', model: { default: id }, resources });
  if (!parsed.ok) throw new Error('No spec');
  const slot = { name, spec: parsed.spec, generation: 1, problems: [] };
  const template = templatingOf({ providers: PROVIDERS, runtime: { traits: TRAITS }, models: { root } }).templateOf(
    slot,
    await factsOf(store, id),
    { reference: 'localhost/x:1' },
  );
  return {
    revision: template?.revision,
    capabilities: template?.capabilities,
    memoryBytes: template?.memoryBytes,
    argv: template?.argv(1),
  };
}

describe('createClusterModelStore()', () => {
  test.each(ids)('renders the same workload for %s whether or not its file is mounted, like a store that reads the file', async (id) => {
    const unseen = await templateOf(await clusterStore(), id);
    expect(unseen.argv).toContain(`/models/demo/${id}.gguf`);
    await writeDemoModels(root, DEMO_MODEL_IDS);
    expect(await templateOf(await clusterStore(), id)).toEqual(unseen);
    // The version is that of the files here; replicas have files of their own, and would disagree.
    const { version: _version, ...ofHost } = await factsOf(createModelStore({ root, formats: MODEL_FORMATS }), id);
    expect(await factsOf(await clusterStore(), id)).toEqual(ofHost);
  });

  test('keeps the facts while a file of the catalogue appears, is incomplete, or is damaged', async () => {
    const store = await clusterStore();
    const id = ModelId.parse('demo-embed');
    const before = await factsOf(store, id);
    const bytes = encodeDemoModel('demo-embed');
    await mkdir(path.join(root, 'demo'));
    for (const content of [bytes.subarray(0, 10), bytes, Buffer.from('<html>')]) {
      await writeFile(path.join(root, 'demo/demo-embed.gguf'), content);
      expect(await factsOf(store, id)).toBe(before);
    }
  });

  test('reads a mounted file of the user, and knows only its path if it is absent or incomplete', async () => {
    const id = ModelId.parse('own/m.gguf');
    const bare = { id, hostPath: path.join(root, 'own/m.gguf') };
    expect(await factsOf(await clusterStore(), id)).toEqual(bare);
    await mkdir(path.join(root, 'own'));
    await writeFile(path.join(root, 'own/m.gguf'), encodeDemoModel('demo-fox').subarray(0, 1000));
    expect(await factsOf(await clusterStore(), id)).toEqual(bare);
    await writeFile(path.join(root, 'own/m.gguf'), encodeDemoModel('demo-fox'));
    expect(await factsOf(await clusterStore(), id)).toMatchObject({ contents: { architecture: 'llama' }, hostPath: bare.hostPath });
  });

  test('takes a file that it cannot read for none of a certain size, without restarting what earlier versions started', async () => {
    const id = ModelId.parse('own/m.gguf');
    const store = await clusterStore();
    const facts = await factsOf(store, id);
    expect(facts.sizeBytes).toBeUndefined();
    const asBefore = { observe: async () => new Map([[id, { kind: 'present', facts: { ...facts, sizeBytes: 0 } } as const]]) };
    for (const resources of [{}, { memory: '8Gi' }]) {
      const [unknown, before] = [await templateOf(store, id, resources), await templateOf(asBefore, id, resources)];
      expect(before.argv).toContain('--threads');
      expect(unknown.argv).not.toContain('--threads');
      // Weights of no known size leave no room to fill with sequences.
      expect(unknown.argv).not.toContain('--parallel');
      expect(unknown.memoryBytes).toBe('memory' in resources ? 8 * 2 ** 30 : undefined);
      expect(unknown.revision).toBe(before.revision);
    }
    expect((await templateOf(store, id)).revision).toBe('d0fbd8db5bb6');
  });

  test('takes the facts of a download from the catalogue', async () => {
    const demo = DEMO_CATALOGUE.get('demo-fox');
    if (demo === undefined) throw new Error('No demo model');
    const from = (sizeBytes: number) => ({ kind: 'url', url: 'http://127.0.0.1:1/x', sha256: 'a'.repeat(64), sizeBytes }) as const;
    const catalogue: Catalogue = new Map([
      [
        'v',
        {
          ...demo,
          id: 'v',
          headerFacts: { architecture: 'bert', poolingType: 1 },
          files: [
            { path: 'v/v.gguf', from: from(40) },
            { path: 'v/mmproj-v.gguf', from: from(2) },
          ],
        },
      ],
    ]);
    const store = await world.replica({ root, catalogue });
    expect((await store.observe([ModelId.parse('v')], signal)).get(ModelId.parse('v'))).toEqual({ kind: 'pullable', sizeBytes: 42 });
    expect(await store.pull(ModelId.parse('v'), () => {}, signal)).toMatchObject({ ok: true });
    expect(await factsOf(store, ModelId.parse('v'))).toEqual({
      id: 'v',
      hostPath: path.join(root, 'v/v.gguf'),
      sizeBytes: 42,
      provider: 'gguf',
      contents: { architecture: 'bert', poolingType: 1, projector: 'mmproj-v.gguf' },
      pinnedBy: { object: expect.stringMatching(/^svc-model-[0-9a-f]{20}$/), digest: expect.any(String) },
    });
  });
});

describe('a workflow of a user', () => {
  const id = ModelId.parse('image/models/checkpoints/portrait/portrait.workflow.json');
  const presenceOf = async (store: ModelStore) => (await store.observe([id], signal)).get(id);
  const templateOfImg = (facts: ModelFacts) => {
    const name = SlotName.parse('img');
    const parsed = parseSlot(name, { provider: 'image', backend: 'rocm', model: { default: id } });
    if (!parsed.ok) throw new Error('No spec');
    const slot = { name, spec: parsed.spec, generation: 1, problems: [] };
    return templatingOf({ providers: PROVIDERS, runtime: { traits: TRAITS }, models: { root } }).templateOf(slot, facts, {
      reference: 'localhost/x:1',
    });
  };
  async function save(workflow: SavedWorkflow): Promise<void> {
    const directory = path.join(root, 'image/models/checkpoints');
    await writeCheckpoint(path.join(directory, 'sdxl-turbo/base.safetensors'), SHAPES.sdxl);
    await writeCheckpoint(path.join(directory, 'portrait/glow.safetensors'), SHAPES.other);
    await writeFile(path.join(root, id), JSON.stringify(workflow));
  }

  test('in the mounted store is read, and its pod looks for the files of models where it names them', async () => {
    const store = await clusterStore();
    await save(PORTRAIT);
    const facts = await factsOf(store, id);
    expect(facts).toMatchObject({ provider: 'image', family: 'SDXL (workflow)', contents: { workflow: { name: 'portrait' } } });
    expect(JSON.stringify(facts.contents)).toContain('portrait/glow.safetensors');
    const template = templateOfImg(facts);
    expect(template?.capabilities).toEqual(['image']);
    expect(JSON.stringify(template)).toContain('"/models/image/models/checkpoints"');
    // A change needs no other pod.
    await save(changed(PORTRAIT, '5', { inputs: { width: 640, height: 448 } }));
    const after = await factsOf(store, id);
    expect(after.contents).not.toEqual(facts.contents);
    expect(templateOfImg(after)?.revision).toBe(template?.revision);
  });

  test('with a mistake says which', async () => {
    await save(changed(PORTRAIT, '3', { inputs: { clip: ['7', 0] } }));
    expect(await presenceOf(await clusterStore())).toMatchObject({ kind: 'missing', message: expect.stringContaining('goes in a circle') });
  });

  test('that the gateway cannot read is refused, since a pod alone cannot serve it', async () => {
    expect(await presenceOf(await clusterStore())).toEqual({
      kind: 'missing',
      message: `The gateway has to read "${id}", and cannot find it: put it into the volume of the models that the gateway mounts ("models.claim" or "models.hostPath", with "models.mountInGateway")`,
    });
    const inConfigMap = ModelId.parse('image/models/checkpoints/workflows/portrait.workflow.json');
    expect((await (await clusterStore()).observe([inConfigMap], signal)).get(inConfigMap)).toMatchObject({
      kind: 'missing',
      message: `The gateway has to read "${inConfigMap}", and cannot find it: put "portrait.workflow.json" into the ConfigMap that "models.workflowsConfigMapName" of the chart names`,
    });
  });
});
