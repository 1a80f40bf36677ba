import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { createModelSources } from '../../src/models/model-sources.ts';
import { createModelStore } from '../../src/models/store.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { createModelSearch } from '../../src/wiring/manage-models.ts';
import type { FitSizes } from '../../src/wiring/fit-model.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { virtualFile } from '../support/hub/virtual-file.ts';

const QUERY = { text: 'o/', limit: 10, cursor: undefined };

let root = '';
let hub: FakeHub;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-search-'));
  const common = { commit: 'a'.repeat(40), files: new Map([['m-Q8_0.gguf', virtualFile(1000)]]) };
  hub = await startFakeHub({
    repos: [
      { name: 'o/llama', license: 'llama3.2', ...common },
      { name: 'o/gated', license: 'llama3.2', gated: 'auto', ...common },
      { name: 'o/free', license: 'mit', ...common },
    ],
  });
});
afterEach(async () => {
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

function open({ isOff = false, fitSizes = async () => undefined }: { readonly isOff?: boolean; readonly fitSizes?: FitSizes } = {}) {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: path.join(root, 'no-home') });
  const modelFiles = createModelStore({ root, formats: MODEL_FORMATS, sources: createModelSources({ root, hub: access }) });
  return { modelFiles, ...createModelSearch({ modelFiles }, { isOff, now: () => 0, fitSizes }) };
}

test('says which licences are to be accepted, also after one of them was, without asking the Hub again', async () => {
  const { modelFiles, searchModels } = open();
  const restricted = async () => {
    const found = await searchModels(QUERY);
    return found.ok ? found.value.models.flatMap(({ id, needsAcceptance }) => (needsAcceptance ? [id] : [])) : found.failure;
  };
  expect(await restricted()).toEqual(['o/llama']);
  const asked = hub.log.length;
  await modelFiles.sources.licenses.accept('llama3.2', ModelId.parse('hf:o/llama'));
  expect(await restricted()).toEqual([]);
  expect(hub.log).toHaveLength(asked);
});

test('says what fits, or that it is not known', async () => {
  const quantisationsOf = async (fitSizes?: FitSizes) => {
    const found = await open(fitSizes === undefined ? {} : { fitSizes }).searchModels({ ...QUERY, text: 'free' });
    return found.ok ? found.value.models[0]?.quantisations : found.failure;
  };
  const file = { uri: 'hf:o/free:Q8_0', quantisation: 'Q8_0', files: ['m-Q8_0.gguf'], sizeBytes: 1000, projector: undefined };
  expect(await quantisationsOf()).toEqual([{ ...file, fits: undefined, neededBytes: undefined }]);
  const fitSizes = async () => (sizeBytes: number) => ({ fits: false, neededBytes: sizeBytes * 1.1001 });
  expect(await quantisationsOf(fitSizes)).toEqual([{ ...file, fits: false, neededBytes: 1100 }]);
});

test('asks nobody if it is switched off', async () => {
  expect(await open({ isOff: true }).searchModels(QUERY)).toMatchObject({ ok: false, failure: { kind: 'stalled' } });
  expect(hub.log).toEqual([]);
});
