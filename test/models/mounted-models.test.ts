/** Workflows in a ConfigMap that a kubelet mounts: they appear in the store, and are read again when the ConfigMap changes. */
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { WORKFLOWS_MOUNT } from '../../src/models/decide/workflows-mount.ts';
import { fetchModel } from '../../src/models/download/fetch-model.ts';
import { createModelStore, type DirectoryModelStore } from '../../src/models/store.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { SHAPES, writeCheckpoint } from '../support/comfyui/checkpoints.ts';
import { changed, PORTRAIT } from '../support/comfyui/user-workflows.ts';
import { eventually } from '../support/eventually.ts';
import { mountConfigMap } from '../support/mounted-config-map.ts';

const KEY = 'portrait.workflow.json';
const ID = ModelId.parse(`${WORKFLOWS_MOUNT.at}/${KEY}`);
const WIDE = changed(PORTRAIT, '5', { inputs: { width: 640, height: 448 } });
const signal = new AbortController().signal;
let directory = '';
let root = '';
let mounted = '';
let store: DirectoryModelStore;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-mounted-'));
  root = path.join(directory, 'models');
  mounted = path.join(directory, 'workflows');
  await writeCheckpoint(path.join(root, 'image/models/checkpoints/sdxl-turbo/base.safetensors'), SHAPES.sdxl);
  await writeCheckpoint(path.join(root, 'image/models/checkpoints/glow.safetensors'), SHAPES.other);
  store = createModelStore({ root, formats: MODEL_FORMATS, mounts: mounts() });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const mounts = () => [{ ...WORKFLOWS_MOUNT, directory: mounted }];

async function look(id: ModelId = ID) {
  const presence = (await store.observe([id], signal)).get(id);
  if (presence === undefined) throw new Error('No answer');
  return presence;
}

async function listed(): Promise<readonly ModelId[]> {
  return (await store.list(signal)).filter(({ presence }) => presence.kind === 'present').map(({ id }) => id);
}

test('a workflow is a model under a path that stays the same, and finds its models in the store', async () => {
  expect(await look()).toMatchObject({ kind: 'missing', isAbsent: true });
  await mountConfigMap(mounted, { [KEY]: JSON.stringify(PORTRAIT), 'notes.txt': 'x' });
  const before = await look();
  expect(before).toMatchObject({
    kind: 'present',
    facts: { hostPath: path.join(root, ID), provider: 'image', family: 'SDXL (workflow)' },
  });
  expect(JSON.stringify(before)).toContain('sdxl-turbo/base.safetensors');
  expect((await listed()).filter((id) => id.includes('workflow'))).toEqual([ID]);
  await mountConfigMap(mounted, { [KEY]: JSON.stringify(WIDE) });
  const after = await look();
  expect(after).toMatchObject({ kind: 'present', facts: { hostPath: path.join(root, ID) } });
  expect([JSON.stringify(before), JSON.stringify(after)].map((text) => text.includes('\\"width\\":640'))).toEqual([false, true]);
  await mountConfigMap(mounted, { 'other.workflow.json': JSON.stringify(PORTRAIT) });
  expect(await look()).toMatchObject({ kind: 'missing', isAbsent: true });
  expect((await listed()).filter((id) => id.includes('workflow'))).toEqual([`${WORKFLOWS_MOUNT.at}/other.workflow.json`]);
});

test('a change of the ConfigMap is noticed', async () => {
  await mountConfigMap(mounted, { [KEY]: JSON.stringify(PORTRAIT) });
  const stop = new AbortController();
  let woken = 0;
  store.changes(() => (woken += 1), stop.signal);
  try {
    // Watching begins some time later.
    for (let version = 0; woken === 0 && version < 50; version += 1) {
      await mountConfigMap(mounted, { [KEY]: JSON.stringify(version % 2 === 0 ? WIDE : PORTRAIT) });
      await eventually('a wake', () => woken > 0, 200).catch(() => undefined);
    }
    expect(woken).toBeGreaterThan(0);
  } finally {
    stop.abort();
  }
});

test('a pod finds it where the gateway does, and says what is missing', async () => {
  const fetch = async () =>
    fetchModel({ root, formats: MODEL_FORMATS, mounts: mounts(), id: ID, writer: 'pod', onProgress: () => undefined }, signal);
  expect(await fetch()).toMatchObject({ ok: false, failure: { reason: 'ModelMissing' } });
  await mountConfigMap(mounted, { [KEY]: JSON.stringify(PORTRAIT) });
  expect(await fetch()).toMatchObject({ ok: true, value: { file: path.join(root, ID), verified: 'header' } });
  await rm(path.join(root, 'image/models/checkpoints/glow.safetensors'));
  expect(await fetch()).toMatchObject({
    ok: false,
    failure: { reason: 'ModelUnusable', message: expect.stringContaining('loads the file "glow.safetensors"') },
  });
});

test('no link leads out of the directory, and nothing beside the ConfigMap is read', async () => {
  await mountConfigMap(mounted, { [KEY]: JSON.stringify(PORTRAIT) });
  await writeFile(path.join(directory, 'secret.workflow.json'), JSON.stringify(PORTRAIT));
  await symlink('../secret.workflow.json', path.join(mounted, 'link.workflow.json'));
  expect(await look(ModelId.parse(`${WORKFLOWS_MOUNT.at}/link.workflow.json`))).toMatchObject({
    kind: 'missing',
    message: expect.stringContaining('links to a file outside the model store'),
  });
});
