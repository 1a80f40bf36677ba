import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { createBoard } from '../../src/reconciler/board.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { manageClusterModels } from '../../src/wiring/manage-models.ts';
import { createClusterModelsWorld, type ClusterModelsWorld } from '../cluster/cluster-models-fixture.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';

const signal = new AbortController().signal;
const MODEL = ModelId.parse('hf:o/llama:Q8_0');
const PLAIN = { acceptLicense: false, url: undefined, sha256: undefined };

let root = '';
let hub: FakeHub;
let world: ClusterModelsWorld;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-manage-'));
  const files = new Map([['m-Q8_0.gguf', bufferFile(Buffer.from(encodeDemoModel('demo-owl')))]]);
  hub = await startFakeHub({ repos: [{ name: 'o/llama', commit: 'a'.repeat(40), files, license: 'llama3.2' }] });
  world = await createClusterModelsWorld();
});
afterEach(async () => {
  await world.close();
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

test('models are pulled in a cluster after their licence was accepted, and removed once no slot uses them', async () => {
  const store = await world.replica({ root, env: { HF_ENDPOINT: hub.url } });
  const board = createBoard();
  const manage = manageClusterModels(store, board);
  const presence = async () => (await store.observe([MODEL], signal)).get(MODEL)?.kind;

  expect(await manage.pullModel(MODEL, PLAIN)).toMatchObject({ ok: false, failure: { reason: 'LicenseNotAccepted' } });
  expect(await presence()).toBe('pullable');
  expect(await manage.pullModel(MODEL, { ...PLAIN, acceptLicense: true })).toEqual({ ok: true, value: undefined });
  await eventually('it is known', async () => (await presence()) === 'present' && manage.pulls().length === 0);
  // Nobody has to accept it again.
  expect(await manage.pullModel(MODEL, PLAIN)).toMatchObject({ ok: true });

  publish(board, { name: 'primary', model: MODEL });
  expect(await manage.removeModel(MODEL)).toEqual({ ok: true, value: { usedBy: ['primary'] } });
  publish(board, { name: 'primary', model: 'demo-fox' });
  expect(await manage.removeModel(MODEL)).toEqual({ ok: true, value: 'removed' });
  expect(await presence()).toBe('pullable');
  expect(await manage.removeModel(MODEL)).toEqual({ ok: true, value: 'absent' });
});

test.each([
  ['own/m.gguf', PLAIN, 'ModelMissing', 'Nothing provides "own/m.gguf"'],
  ['hf:o/none', PLAIN, 'ModelGated', '"o/none" does not exist, or requires a token'],
  ['url/x/m.gguf', { ...PLAIN, url: 'https://example.com/m.gguf' }, 'PulledByPods', 'put the file of "url/x/m.gguf" on their volume'],
])('%s cannot be pulled in a cluster', async (name, request, reason, message) => {
  const store = await world.replica({ root, env: { HF_ENDPOINT: hub.url } });
  const failure = { kind: 'stalled', reason, message: expect.stringContaining(message) };
  expect(await manageClusterModels(store, createBoard()).pullModel(ModelId.parse(name), request)).toMatchObject({ ok: false, failure });
});

test('a model whose download has failed is listed with the reason', async () => {
  const store = await world.replica({ root, env: { HF_ENDPOINT: hub.url }, acceptedLicenses: ['llama3.2'] });
  const manage = manageClusterModels(store, createBoard());
  hub.fault = ({ path: each }) => (each.includes('/resolve/') ? { status: 503 } : undefined);
  expect(await manage.pullModel(MODEL, PLAIN)).toMatchObject({ ok: true });
  await eventually('it has failed', () => manage.pulls()[0]?.failure !== undefined);
  expect(manage.pulls()).toMatchObject([{ id: MODEL, failure: { kind: 'retry', reason: 'ModelPullFailed' } }]);
});
