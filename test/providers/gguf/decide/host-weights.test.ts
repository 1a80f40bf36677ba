/** What a GPU leaves to the host: by arguments of the slot, or by a split. */
import { describe, expect, test } from '@jest/globals';
import type { Sized } from '../../../../src/providers/provider.ts';
import type { GgufModel } from '../../../../src/providers/gguf/decide/gguf-model.ts';
import { serverMemory, serverSplits } from '../../../../src/providers/gguf/decide/server-layout.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';
import type { SlotDocument } from '../../../../src/schema/slot/slot-spec.ts';
import { specOf } from '../slot-context.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

const demand = (document: Partial<SlotDocument>, of: Sized<GgufModel>, args: readonly string[] = []) =>
  serverMemory('primary', specOf('primary', { ...document, model: { default: 'm.gguf', context: 4096, args: [...args] } }), of);

/** Four layers of 768 MiB experts and 96 MiB of attention each, and an output matrix of 128 MiB, after the table of 512 MiB. */
const layered: Sized<GgufModel> = {
  id: ModelId.parse('m.gguf'),
  hostPath: '/m.gguf',
  architecture: 'qwen3moe',
  trainedContext: 131_072,
  blockCount: 4,
  embeddingLength: 512,
  headCount: 8,
  headCountKv: 2,
  feedForwardLength: 2048,
  vocabularySize: 4000,
  expertCount: 32,
  expertUsedCount: 8,
  sizeBytes: 4 * GIB,
  inputBytes: GIB / 2,
  hasOutput: true,
  expertBytes: 3 * GIB,
  blocks: {
    'attn_q.weight': Array(4).fill(96 * MIB),
    'ffn_up_exps.weight': Array(4).fill(384 * MIB),
    'ffn_down_exps.weight': Array(4).fill(384 * MIB),
  },
};
const LAYER = 864 * MIB;

test.each([
  ['--cpu-moe', [], 3 * GIB, 768 * MIB],
  ['--n-cpu-moe', ['3'], 3 * 768 * MIB, 768 * MIB],
  ['-ncmoe', ['9'], 3 * GIB, 768 * MIB],
  // The output matrix is the last of five.
  ['-ngl', ['3'], 2 * LAYER, LAYER],
  ['--n-gpu-layers', ['1'], 4 * LAYER, LAYER],
  ['-ngl', ['0'], 4 * LAYER + 128 * MIB, LAYER],
  ['-ngl', ['5'], 0, 0],
  ['-ngl', ['99'], 0, 0],
  ['-ot', [String.raw`blk\.[23]\.ffn_(up|down)_exps\.=CPU`], 2 * 768 * MIB, 768 * MIB],
  ['-ot', ['blk.0.*exps=CUDA1,exps=CPU'], 3 * 768 * MIB, 768 * MIB],
  ['-ot', ['attn_q=CUDA1'], 0, 0],
  // It would be evaluated for seconds.
  ['-ot', ['(x+x+)+y=CPU'], 0, 0],
  ['-ot', ['(=CPU'], 0, 0],
] as const)('%s %j leaves %d bytes of the weights to the host, of %d in one layer', (flag, values, bytes, largest) => {
  const whole = demand({ backend: 'cuda' }, layered);
  const divided = demand({ backend: 'cuda' }, layered, [flag, ...values]);
  // Beside the weights, the host gets the caches of its layers, and buffers to compute them.
  expect(divided.hostBytes - whole.hostBytes).toBeGreaterThanOrEqual(bytes);
  expect(divided.hostBytes - whole.hostBytes).toBeLessThanOrEqual(bytes + (bytes === 0 ? 0 : 60 * MIB));
  expect(whole.deviceBytes - divided.deviceBytes).toBeGreaterThanOrEqual(bytes - largest);
  expect(whole.deviceBytes - divided.deviceBytes).toBeLessThanOrEqual(bytes - largest + (bytes === 0 ? 0 : 20 * MIB));
});

describe('a server that is divided', () => {
  const splitsOf = (document: Partial<SlotDocument> = {}, args: readonly string[] = [], of = layered) =>
    serverSplits('primary', specOf('primary', { ...document, model: { default: 'm.gguf', context: 4096, args: [...args] } }), of);

  test('leaves experts to the CPU first, then layers', () => {
    const splits = splitsOf();
    expect(splits.map(({ env }) => Object.values(env).join('/'))).toEqual(['1', '2', '3', '4', '4/4', '3/4', '2/4', '1/4']);
    expect(splits[1]).toMatchObject({ env: { LLAMA_ARG_N_CPU_MOE: '2' }, onHost: 'the experts of 2 of 4 layers' });
    expect(splits.at(-1)).toMatchObject({
      env: { LLAMA_ARG_N_GPU_LAYERS: '1', LLAMA_ARG_N_CPU_MOE: '4' },
      onHost: '4 of 4 layers, and all experts',
    });
  });

  test('needs as much as one with the same arguments', () => {
    for (const { demand: split, env } of splitsOf()) {
      const layers = env['LLAMA_ARG_N_GPU_LAYERS'];
      const args = ['-ncmoe', env['LLAMA_ARG_N_CPU_MOE'] ?? '', ...(layers === undefined ? [] : ['-ngl', layers])];
      expect(demand({}, layered, args)).toEqual(split);
    }
  });

  test('says how much about, where the header was not read', () => {
    const { id, hostPath, sizeBytes } = layered;
    expect(splitsOf({}, [], { id, hostPath, sizeBytes }).map(({ onHost }) => onHost)).toContain('about 25 % of the layers');
  });

  test.each([
    ['without experts, by layers', splitsOf({}, [], { ...layered, expertBytes: 0, blocks: {} }), 4],
    ['not where the slot names a backend', splitsOf({ backend: 'cuda' }), 0],
    ['not on a CPU', splitsOf({ resources: { gpus: 0 } }), 0],
    ['not where the arguments of the slot say how', splitsOf({}, ['-ngl', '3']), 0],
  ])('%s', (_what, splits, count) => {
    expect(splits).toHaveLength(count);
  });
});
