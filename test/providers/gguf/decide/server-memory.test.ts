import { describe, expect, test } from '@jest/globals';
import type { Sized } from '../../../../src/providers/provider.ts';
import { ggufContents, type GgufModel } from '../../../../src/providers/gguf/decide/gguf-model.ts';
import { parseGgufHeader } from '../../../support/providers/parse-gguf-header.ts';
import { chooseLayout, serverMemory } from '../../../../src/providers/gguf/decide/server-layout.ts';
import { CUDA_BYTES, serverParts, type ServerParts } from '../../../../src/providers/gguf/decide/gguf-memory.ts';
import { encodeGguf, i32s, text, u32, type GgufValue } from '../../../../toolboxes/demo/encode-gguf.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';
import type { SlotDocument } from '../../../../src/schema/slot/slot-spec.ts';
import { specOf } from '../slot-context.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

function modelOf(architecture: string, metadata: Readonly<Record<string, number | readonly number[]>>, sizeBytes = 0): Sized<GgufModel> {
  const entries = Object.entries(metadata).map(([key, value]): readonly [string, GgufValue] => [
    `${architecture}.${key}`,
    typeof value === 'number' ? u32(value) : i32s(value),
  ]);
  const parsed = parseGgufHeader(encodeGguf({ metadata: [['general.architecture', text(architecture)], ...entries], tensors: [] }));
  if (parsed.kind !== 'header') throw new Error(parsed.kind);
  return { ...ggufContents([parsed.header], undefined), id: ModelId.parse('m.gguf'), hostPath: '/m.gguf', sizeBytes };
}

/** The measured models, in sizes that a server loads at once: 8 heads of 64, and 2 for keys and values. */
const SMALL = {
  block_count: 2,
  context_length: 131_072,
  embedding_length: 512,
  feed_forward_length: 1024,
  vocab_size: 4000,
  'attention.head_count': 8,
  'attention.head_count_kv': 2,
  'attention.key_length': 64,
  'attention.value_length': 64,
};
const DENSE = modelOf('llama', SMALL);
const WINDOW = modelOf('gemma3', { ...SMALL, block_count: 12, 'attention.sliding_window': 1024 });
const EXPERTS = modelOf('qwen3moe', {
  ...SMALL,
  block_count: 4,
  expert_count: 32,
  expert_used_count: 8,
  expert_feed_forward_length: 256,
});
const WIDE_EXPERTS = modelOf('qwen3moe', {
  ...SMALL,
  block_count: 4,
  embedding_length: 2048,
  'attention.head_count': 32,
  'attention.head_count_kv': 4,
  'attention.key_length': 128,
  'attention.value_length': 128,
  expert_count: 16,
  expert_used_count: 8,
  expert_feed_forward_length: 768,
});
const LATENT = modelOf('deepseek2', {
  ...SMALL,
  block_count: 4,
  'attention.head_count_kv': 1,
  'attention.key_length': 288,
  'attention.value_length': 256,
  'attention.key_length_mla': 96,
  'attention.value_length_mla': 64,
  'attention.kv_lora_rank': 256,
});
const STATES = modelOf('mamba', {
  block_count: 4,
  context_length: 131_072,
  embedding_length: 512,
  feed_forward_length: 0,
  'attention.head_count': 0,
  'ssm.conv_kernel': 4,
  'ssm.inner_size': 1024,
  'ssm.state_size': 16,
});

function partsOf(model: Sized<GgufModel>, context: number, args: readonly string[] = []): ServerParts {
  const spec = specOf('primary', { backend: 'cpu', model: { default: 'm.gguf', context, args: [...args] } });
  return serverParts(model, chooseLayout('primary', spec, model).layout);
}

describe('the cache of llama-server 0.7.0 has exactly the size that it logs:', () => {
  test.each([
    ['a dense model', DENSE, 4096, [], 4],
    ['a dense model with a context that is no multiple of 256', DENSE, 1000, [], 1],
    ['one sequence', DENSE, 16_384, ['-np', '1'], 16],
    ['eight sequences', DENSE, 16_384, ['-np', '8'], 16],
    ['8-bit keys and values', DENSE, 16_384, ['-ctk', 'q8_0', '-ctv', 'q8_0'], 8.5],
    ['windows', WINDOW, 16_384, [], 16 + 22.5],
    ['windows with one sequence', WINDOW, 16_384, ['-np', '1'], 16 + 7.5],
    ['windows with two sequences', WINDOW, 16_384, ['-np', '2'], 16 + 15],
    ['windows with a longer context', WINDOW, 65_536, [], 64 + 22.5],
    ['windows with a larger batch', WINDOW, 16_384, ['-ub', '1024'], 16 + 25],
    ['windows that are kept in full', WINDOW, 16_384, ['--swa-full'], 16 + 80],
    ['latent attention', LATENT, 16_384, [], 36],
    ['latent attention with 8-bit keys', LATENT, 16_384, ['-ctk', 'q8_0', '-ctv', 'q8_0'], 19.125],
    ['states', STATES, 16_384, [], 1.1875],
    ['states of one sequence', STATES, 16_384, ['-np', '1'], 0.296875],
  ] as const)('%s', (_what, model, context, args, mib) => {
    expect(partsOf(model, context, args).cache).toBe(mib * MIB);
  });
});

describe('the compute buffer is at least what llama-server 0.7.0 logs, and little more:', () => {
  test.each([
    ['a dense model', DENSE, 4096, [], 13.02],
    ['a longer context', DENSE, 16_384, [], 25.02],
    ['a larger batch', DENSE, 16_384, ['-ub', '2048'], 100.07],
    ['without flash attention', DENSE, 16_384, ['-fa', 'off'], 294.51],
    ['eight sequences', DENSE, 16_384, ['-np', '8'], 11.02],
    ['windows', WINDOW, 16_384, [], 31.53],
    ['experts', EXPERTS, 16_384, [], 33.02],
    ['wide experts', WIDE_EXPERTS, 16_384, [], 104.02],
    ['latent attention', LATENT, 16_384, [], 31.01],
    ['states', STATES, 16_384, [], 15.3],
  ] as const)('%s', (_what, model, context, args, mib) => {
    const compute = partsOf(model, context, args).compute / MIB;
    expect(compute).toBeGreaterThan(mib * 0.99);
    expect(compute).toBeLessThan(mib * 1.3 + 4);
  });
});

describe('which layers have a window', () => {
  const SIXTEEN = { ...SMALL, block_count: 16, 'attention.sliding_window': 128 };
  // 2 heads of 64 in each layer
  const wholeLayers = (model: GgufModel): number => (model.layers?.whole.keys ?? 0) / 128;
  test.each([
    ['the header has no pattern and its family has none', modelOf('llama', SIXTEEN), 16],
    ['the family has one of two', modelOf('gpt-oss', SIXTEEN), 8],
    ['the family has three of four', modelOf('cohere2', SIXTEEN), 4],
    ['the header has a period', modelOf('gemma3', { ...SIXTEEN, 'attention.sliding_window_pattern': 8 }), 2],
    ['the header has a list', modelOf('mimo', { ...SIXTEEN, 'attention.sliding_window_pattern': [0, 1, 1, 1] }), 4],
    ['there is no window', modelOf('gemma3', { ...SIXTEEN, 'attention.sliding_window': 0 }), 16],
    ['the last layers share the cache of earlier ones', modelOf('llama', { ...SIXTEEN, 'attention.shared_kv_layers': 6 }), 10],
    ['some layers keep a state', modelOf('jamba', { ...SMALL, block_count: 4, 'attention.head_count_kv': [0, 2, 0, 2] }), 2],
    ['one of four layers attends', modelOf('qwen35', { ...SMALL, block_count: 16, full_attention_interval: 4 }), 4],
  ])('%s', (_what, model, layers) => {
    expect(wholeLayers(model)).toBe(layers);
  });

  test('windows may have keys and values of another length', () => {
    const lengths = { 'attention.key_length_swa': 32, 'attention.value_length_swa': 16 };
    expect(modelOf('gpt-oss', { ...SIXTEEN, ...lengths }).layers?.window).toEqual({ tokens: 128, keys: 8 * 2 * 32, values: 8 * 2 * 16 });
  });
});

describe('copies of windows and states', () => {
  const layoutOf = (model: GgufModel, args: readonly string[] = []) =>
    chooseLayout('primary', specOf('primary', { backend: 'cpu', model: { default: 'm.gguf', context: 65_536, args: [...args] } }), model)
      .layout;
  // As Gemma 3 with 27 billion weights: 416 MiB for one sequence
  const large = modelOf('gemma3', {
    block_count: 62,
    context_length: 131_072,
    embedding_length: 5376,
    'attention.head_count': 32,
    'attention.head_count_kv': 16,
    'attention.key_length': 128,
    'attention.value_length': 128,
    'attention.sliding_window': 1024,
  });
  test.each([
    ['as many as a context of this length can have if they are small', STATES, [], 4 + 8],
    ['no more of them in a longer context if they are larger', WINDOW, ['-c', '1048576'], 25],
    ['as many as llama-server allows where they may be close to each other', STATES, ['-cms', '0'], 32],
    ['one for each sequence if they are large', large, [], 1],
    ['as many as the slot says', large, ['--ctx-checkpoints', '7'], 7],
    ['none if nothing needs them', DENSE, [], 0],
    ['none where no text is generated', WINDOW, ['--embeddings', '--pooling', 'mean'], 0],
  ] as const)('are %s', (_what, model, args, count) => {
    expect(layoutOf(model, args).checkpoints).toBe(count);
  });

  // A copy is 5 MiB: one window of 1,024 tokens. llama-server 0.7.0 keeps the first one of each sequence, three of its last request, and one for each 8,192 tokens between. Three are a
  // batch of 512 tokens or more before the end, unless the last message is short: then there are only three.
  test.each([
    ['a short context that four sequences share', 4096, [], 4 * 3],
    ['one that is longer than window and batch', 8000, [], 4 * 4],
    ['one between', 5632, [], 4 * (1 + 3 * (896 / 1024))],
    ['a longer one', 65_536, [], 4 * 4 + 8],
    ['sequences with a context each', 65_536, ['-np', '4'], 4 * (4 + 2)],
    ['one sequence', 65_536, ['-np', '1'], 4 + 8],
    ['fewer than there could be', 65_536, ['-np', '1', '--ctx-checkpoints', '2'], 2],
    ['more than there can be', 4096, ['-np', '1', '--ctx-checkpoints', '32'], 4],
    ['copies that are close to each other', 4096, ['-np', '1', '--ctx-checkpoints', '32', '-cms', '0'], 32],
    ['windows that cannot all be full', 2048, [], (4 * 3) / 2],
  ] as const)('are counted as often as there can be, with %s', (_what, context, args, copies) => {
    expect(partsOf(WINDOW, context, args).checkpoints / MIB).toBe(5 * copies);
  });

  test('have the size that llama-server logs', () => {
    const one = partsOf(WINDOW, 65_536, ['--ctx-checkpoints', '1', '-np', '1']).checkpoints;
    expect(one / MIB).toBeCloseTo(5, 1);
  });
});

describe('where the memory is', () => {
  const model: Sized<GgufModel> = { ...DENSE, sizeBytes: 4 * GIB, inputBytes: GIB / 2, hasOutput: true, expertBytes: 3 * GIB };
  const demand = (document: Partial<SlotDocument>, of = model, args: readonly string[] = []) =>
    serverMemory('primary', specOf('primary', { ...document, model: { default: 'm.gguf', context: 4096, args: [...args] } }), of);
  const cpu = demand({ backend: 'cpu' });
  const gpu = demand({ backend: 'cuda' });

  test('all of it is the host’s without a GPU', () => {
    expect(cpu.deviceBytes).toBe(0);
    expect(cpu.hostBytes).toBeGreaterThan(4 * GIB);
  });

  test('a GPU has all weights but the table that embeds tokens, and what CUDA takes', () => {
    expect(gpu.deviceBytes - 3.5 * GIB).toBeGreaterThan(CUDA_BYTES);
    expect(gpu.deviceBytes - 3.5 * GIB).toBeLessThan(CUDA_BYTES + 100 * MIB);
    expect(gpu.deviceBytes - demand({ backend: 'rocm' }).deviceBytes).toBe(CUDA_BYTES);
    expect(gpu.hostBytes).toBeGreaterThan(GIB / 2);
  });

  test('a GPU has that table as well if it is also the output matrix', () => {
    expect(demand({ backend: 'cuda' }, { ...model, hasOutput: false }).deviceBytes - gpu.deviceBytes).toBe(GIB / 2);
  });

  test.each([['--no-kv-offload', 4 * MIB]])('%s moves %d bytes to the host', (argument, bytes) => {
    const moved = demand({ backend: 'cuda' }, model, [argument]);
    expect(gpu.deviceBytes - moved.deviceBytes).toBe(bytes);
    expect(moved.hostBytes - gpu.hostBytes).toBe(bytes);
  });

  test('a projector is where the model is', () => {
    const seeing = { ...model, projector: 'mmproj.gguf', projectorBytes: GIB };
    expect(demand({ backend: 'cuda' }, seeing).deviceBytes - gpu.deviceBytes).toBeGreaterThanOrEqual(GIB);
    expect(demand({ backend: 'cpu' }, seeing).hostBytes - cpu.hostBytes).toBeGreaterThanOrEqual(GIB);
  });
});

describe('"memory" of the resources decides about what a slot leaves open:', () => {
  const model: Sized<GgufModel> = { ...modelOf('llama', { ...SMALL, block_count: 32 }), sizeBytes: GIB };
  // 16 KiB of keys and values for each token, and as much for the cache of prompts: 256 MiB for a context of 8192 tokens
  const chosen = (memory: string | undefined, more: SlotDocument['model']) => {
    const resources = memory === undefined ? {} : { memory };
    const { layout, ...set } = chooseLayout('primary', specOf('primary', { backend: 'cpu', resources, model: more }), model);
    return { ...set, sequences: layout.parallel, unified: layout.unified };
  };
  const DEFAULT = { default: 'm.gguf' };
  test.each([
    ['nothing is set: llama-server decides', undefined, DEFAULT, { context: undefined, parallel: undefined, sequences: 4, unified: true }],
    ['the context is set', undefined, { ...DEFAULT, context: 8192 }, { context: 8192, parallel: undefined, sequences: 4, unified: true }],
    ['room for eight sequences', '5Gi', { ...DEFAULT, context: 8192 }, { context: 65_536, parallel: 8, sequences: 8, unified: false }],
    ['room for two contexts', '1700Mi', { ...DEFAULT, context: 8192 }, { context: 16_384, parallel: 2, sequences: 2, unified: false }],
    ['room for one', '1500Mi', { ...DEFAULT, context: 8192 }, { context: 8192, parallel: undefined, sequences: 4, unified: true }],
    ['room for less than one', '1Gi', { ...DEFAULT, context: 8192 }, { context: 8192, parallel: undefined, sequences: 4, unified: true }],
    ['no context is set, and nothing fits', '1Gi', DEFAULT, { context: 4096, parallel: undefined, sequences: 4, unified: true }],
    [
      'arguments take precedence',
      '5Gi',
      { ...DEFAULT, args: ['-np', '3', '-c', '3072'] },
      { context: undefined, parallel: undefined, sequences: 3, unified: false },
    ],
  ])('%s', (_what, memory, document, expected) => {
    expect(chosen(memory, document)).toEqual(expected);
  });

  test('without a context, the largest one that fits is taken', () => {
    const spec = specOf('primary', { backend: 'cpu', resources: { memory: '3Gi' }, model: DEFAULT });
    const { context = 0, layout } = chooseLayout('primary', spec, model);
    expect(context % 256).toBe(0);
    const bytes = (tokens: number): number =>
      serverMemory('primary', specOf('primary', { backend: 'cpu', model: { ...DEFAULT, context: tokens } }), model).hostBytes;
    expect(bytes(context)).toBeLessThanOrEqual(3 * GIB);
    expect(bytes(context + 256)).toBeGreaterThan(3 * GIB);
    expect(layout.context).toBe(context);
  });
});

test.each([
  ['counts beyond all bounds', { ...SMALL, block_count: 0xff_ff_ff_ff, embedding_length: 0xff_ff_ff_ff }],
  ['no heads', { ...SMALL, 'attention.head_count': 0 }],
  ['lists that are too short', { ...SMALL, 'attention.head_count_kv': [1] }],
  ['nothing', {}],
])('a header with %s still yields a number of bytes', (_what, metadata) => {
  const { hostBytes, deviceBytes } = serverMemory(
    'primary',
    specOf('primary', { model: { default: 'm.gguf' } }),
    modelOf('llama', metadata),
  );
  expect(Number.isFinite(hostBytes + deviceBytes)).toBe(true);
  expect(Math.min(hostBytes, deviceBytes)).toBeGreaterThanOrEqual(0);
});
