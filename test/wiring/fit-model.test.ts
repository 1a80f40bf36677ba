import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FitRequest } from '../../src/api/ports.ts';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { createModelSources } from '../../src/models/model-sources.ts';
import { createModelStore } from '../../src/models/store.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import { EMPTY_BOARD, type BoardView } from '../../src/reconciler/board.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { createFit } from '../../src/wiring/fit-model.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import type { VirtualFile } from '../support/hub/virtual-file.ts';
import { recordedHardware } from '../support/hardware/recorded-machines.ts';
import type { Hardware } from '../../src/schema/status/hardware.ts';
import { createWorld } from '../support/simulation/world.ts';

const GB = 1_000_000_000;
/** Nobody may read it. */
const listed = (sizeBytes: number): VirtualFile => ({ sizeBytes, sha256: '0'.repeat(64), read: () => Buffer.alloc(0) });

let root = '';
let hub: FakeHub;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-fit-'));
  const files = new Map([
    ['m-Q4_K_M.gguf', listed(4 * GB)],
    ['m-Q8_0.gguf', listed(8 * GB)],
    ['m-F16.gguf', listed(16 * GB)],
  ]);
  const large = new Map([['m-Q8_0.gguf', listed(60 * GB)]]);
  const common = { commit: 'a'.repeat(40), license: 'apache-2.0' };
  hub = await startFakeHub({
    repos: [
      { name: 'o/r', files, ...common },
      { name: 'o/large', files: large, ...common },
    ],
  });
});
afterEach(async () => {
  await hub.close();
  await rm(root, { recursive: true, force: true });
});

interface Machine {
  readonly totalBytes?: number;
  readonly budget?: number;
  readonly board?: BoardView;
  readonly pods?: boolean;
  readonly hardware?: Hardware;
}

function open(machine: Machine = {}) {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: path.join(root, 'no-home') });
  const modelFiles = createModelStore({ root, formats: MODEL_FORMATS, sources: createModelSources({ root, hub: access }) });
  const { runtime } = createWorld(machine.pods === true ? { replicas: 1 } : {});
  const host = {
    read: async () => ({ memoryTotalBytes: machine.totalBytes ?? 16 * GB, memoryAvailableBytes: undefined, hardware: machine.hardware }),
  };
  return createFit({ modelFiles, runtime, host }, { current: () => machine.board ?? EMPTY_BOARD }, { SVC_MEMORY_BUDGET: machine.budget });
}

async function fit(model: string, more: Partial<FitRequest> = {}, machine: Machine = {}) {
  return open(machine).fit({ model: ModelId.parse(model), context: undefined, backend: 'cpu', ...more });
}

const valueOf = <T>(
  result: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: { readonly message: string } },
): T => {
  if (result.ok) return result.value;
  throw new Error(result.failure.message);
};

describe('fit', () => {
  test('answers from the header of a model in the store, within 100 ms once the code is loaded', async () => {
    await writeFile(path.join(root, 'a.gguf'), encodeDemoModel('demo-fox'));
    await fit('a.gguf');
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const began = performance.now();
      expect(valueOf(await fit('a.gguf'))).toMatchObject({ fits: true, fitsNow: true, exact: true, quantisations: [] });
      times.push(performance.now() - began);
    }
    expect(Math.min(...times)).toBeLessThan(100);
  });

  test('says what the CPU computes of a model that is larger than the devices, unless the backend is asked for', async () => {
    const machine = { totalBytes: 96 * GB, hardware: recordedHardware('rtx-3090-and-4090') };
    const answer = valueOf(await fit('hf:o/large', { backend: undefined }, machine));
    expect(answer).toMatchObject({ fits: true, backend: 'cuda', onHost: expect.stringMatching(/^about \d\d % of the layers$/) });
    expect(answer.message).toMatch(/on "cuda" if the CPU computes about \d\d % of the layers: it needs .* of the memory of device "gpu0"/);
    expect(Object.keys(answer.placement)).toEqual(['host', 'gpu1', 'gpu0']);
    expect(valueOf(await fit('hf:o/large', { backend: 'cuda' }, machine))).toMatchObject({ fits: false, onHost: undefined });
  });

  test('says which quantisation of a repository fits, and remembers and downloads nothing', async () => {
    const answer = valueOf(await fit('hf:o/r'));
    expect(answer.quantisations.map(({ name, fits }) => [name, fits])).toEqual([
      ['hf:o/r:F16', false],
      ['hf:o/r:Q8_0', true],
      ['hf:o/r:Q4_K_M', true],
    ]);
    expect(answer.message).toContain('"hf:o/r:Q8_0" fits');
    expect(answer).toMatchObject({ fits: true, exact: false });
    expect(await readdir(root)).toEqual([]);
  });

  test('answers for the quantisation that is named', async () => {
    expect(valueOf(await fit('hf:o/r:F16'))).toMatchObject({ fits: false });
    expect(valueOf(await fit('hf:o/r:q4_k_m'))).toMatchObject({ fits: true });
    expect(await fit('hf:o/r:Q2_K')).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'ModelMissing' } });
  });

  test('shows what is missing where nothing fits', async () => {
    const answer = valueOf(await fit('hf:o/r', {}, { budget: GB }));
    expect(answer.fits).toBe(false);
    expect(answer.message).toContain('"hf:o/r:Q4_K_M" does not fit');
  });

  test.each([
    ['a model that does not exist', 'no.gguf', {}, 'ModelMissing'],
    ['a repository that does not exist', 'hf:o/none', {}, expect.any(String)],
    ['a name that cannot be one', 'hf:o', {}, 'ModelMissing'],
    ['a backend that the provider does not have', 'hf:o/r', { backend: 'npu' as const }, 'SpecInvalid'],
  ])('fails for %s', async (_, model, more, reason) => {
    expect(await fit(model, more)).toMatchObject({ ok: false, failure: { reason } });
  });

  test('does not answer in a cluster', async () => {
    expect(await fit('hf:o/r', {}, { pods: true })).toMatchObject({ ok: false });
  });
});

describe('the memory for models of a search', () => {
  test('is what the answer for one model says', async () => {
    const { quantisations } = valueOf(await fit('hf:o/r', { backend: undefined }));
    const fitOf = await open().fitSizes();
    const seen = quantisations.map(({ name, sizeBytes }) => ({ name, sizeBytes, ...fitOf?.(sizeBytes) }));
    expect(seen).toEqual(quantisations);
    expect(new Set(seen.map(({ fits }) => fits))).toEqual(new Set([true, false]));
  });

  test('is not known in a cluster', async () => {
    expect(await open({ pods: true }).fitSizes()).toBeUndefined();
  });
});
