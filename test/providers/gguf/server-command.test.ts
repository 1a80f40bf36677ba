import { describe, expect, test } from '@jest/globals';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import type { Sized } from '../../../src/providers/provider.ts';
import { CAUSAL, contextOf, ENCODER, saying } from './slot-context.ts';

/** Returns the value of the last occurrence of a flag, which takes precedence. */
function valueOf(command: readonly string[], flag: string): string | undefined {
  const at = command.lastIndexOf(flag);
  return at === -1 ? undefined : command[at + 1];
}

test('startCmd() returns the complete command of a chat model', () => {
  const slot = contextOf('primary', CAUSAL, {
    model: { default: CAUSAL.id, aliases: ['gpt-4o', 'a,b'], context: 8192, args: ['--jinja'] },
  });
  expect(gguf.startCmd(slot)).toEqual([
    'llama-server',
    '--host',
    '127.0.0.1',
    '--port',
    '18080',
    '--model',
    '/models/chat.gguf',
    '--alias',
    'chat.gguf,gpt-4o',
    '--ctx-size',
    '8192',
    '--n-gpu-layers',
    'all',
    '--no-ui',
    '--no-slots',
    '--offline',
    '--jinja',
  ]);
});

test.each([
  ['vulkan', undefined, 'all'],
  ['rocm', undefined, 'all'],
  ['cuda', undefined, 'all'],
  ['cpu', undefined, '0'],
  ['vulkan', 0, '0'],
] as const)('startCmd() on backend %s with %s GPUs puts %s layers on the GPU', (backend, gpus, layers) => {
  const slot = contextOf('primary', CAUSAL, { backend, resources: gpus === undefined ? {} : { gpus } });
  expect(valueOf(gguf.startCmd(slot), '--n-gpu-layers')).toBe(layers);
});

test('startCmd() does not set the context if the slot does not', () => {
  expect(gguf.startCmd(contextOf('primary', CAUSAL))).not.toContain('--ctx-size');
});

test('startCmd() sets one thread for very small models only', () => {
  expect(valueOf(gguf.startCmd(contextOf('primary', { ...CAUSAL, sizeBytes: 300_000 })), '--threads')).toBe('1');
  expect(gguf.startCmd(contextOf('primary', CAUSAL))).not.toContain('--threads');
});

test('startCmd() passes the projector of a chat model', () => {
  const slot = contextOf('primary', saying(CAUSAL, { projector: 'mmproj.gguf' }));
  expect(valueOf(gguf.startCmd(slot), '--mmproj')).toBe('/models/mmproj.gguf');
});

const pooled = (poolingType: number): Sized => saying(CAUSAL, { poolingType });

test.each([
  ['an encoder', 'primary', ENCODER, 'cls', ['embedding']],
  ['an encoder without a pooling type', 'primary', saying(ENCODER, { poolingType: 0 }), 'mean', ['embedding']],
  ['a causal model that was trained for embeddings', 'primary', pooled(3), 'last', ['embedding']],
  ['a causal model in the slot "embed"', 'embed', CAUSAL, 'mean', ['embedding']],
] as const)(
  '%s is started for embeddings, with its pooling and a batch as large as its context',
  (_, name, model, pooling, capabilities) => {
    const slot = contextOf(name, model);
    const command = gguf.startCmd(slot);
    expect(command).toContain('--embeddings');
    expect(valueOf(command, '--pooling')).toBe(pooling);
    expect(valueOf(command, '--ubatch-size')).toBe(valueOf(command, '--ctx-size'));
    expect(valueOf(command, '--batch-size')).toBe(valueOf(command, '--ctx-size'));
    expect(gguf.capabilities(slot.name, slot.spec, model)).toEqual(capabilities);
  },
);

test('an encoder never gets more context than positions, and a causal embedder by default no more than 8192 tokens', () => {
  const asked = contextOf('embed', ENCODER, { model: { default: ENCODER.id, context: 4096 } });
  expect(valueOf(gguf.startCmd(asked), '--ctx-size')).toBe('512');
  expect(valueOf(gguf.startCmd(contextOf('embed', CAUSAL)), '--ctx-size')).toBe('8192');
});

test.each([
  ['an encoder with pooling "rank"', saying(ENCODER, { poolingType: 4, hasClassifier: true }), ['rerank']],
  ['an encoder with pooling "rank" whose tensors are not known', saying(ENCODER, { poolingType: 4, hasClassifier: undefined }), ['rerank']],
  ['an encoder with a classifier head', saying(ENCODER, { hasClassifier: true }), ['rerank']],
  ['a causal reranker', saying(CAUSAL, { poolingType: 4, hasClassifier: true }), ['chat', 'completion', 'rerank']],
] as const)('%s is started with --rerank and has the right capabilities', (_, model, capabilities) => {
  const slot = contextOf('primary', model);
  expect(gguf.startCmd(slot)).toContain('--rerank');
  expect(gguf.startCmd(slot)).not.toContain('--embeddings');
  expect(gguf.capabilities(slot.name, slot.spec, model)).toEqual(capabilities);
});

test.each([
  ['nothing', [], ['chat', 'completion']],
  ['--embeddings', ['--embeddings'], ['chat', 'completion', 'embedding']],
  ['--embeddings and a pooling', ['--embeddings', '--pooling', 'last'], ['chat', 'completion', 'embedding']],
  ['a pooling that would crash the server with the first chat request', ['--embeddings', '--pooling', 'none'], []],
  ['--rerank without a head', ['--rerank'], ['chat', 'completion']],
] as const)('a chat model in a slot with the arguments "%s" serves what works with them', (_, args, capabilities) => {
  const slot = contextOf('primary', CAUSAL, { model: { default: CAUSAL.id, args: [...args] } });
  expect(gguf.capabilities(slot.name, slot.spec, CAUSAL)).toEqual(capabilities);
  const command = gguf.startCmd(slot);
  if (command.includes('--embeddings')) expect(command).toContain('--pooling');
  expect(command.slice(command.length - args.length)).toEqual(args);
});

describe('objection()', () => {
  const objectionOf = (model: Sized, args: readonly string[], env: Readonly<Record<string, string>> = {}): string | undefined => {
    const { name, spec } = contextOf('primary', model, { model: { default: model.id, args: [...args] }, env });
    return gguf.objection?.(name, spec, model);
  };
  const RERANKER = saying(ENCODER, { poolingType: 4, hasClassifier: true });

  test.each([
    [
      'reranking without a head',
      CAUSAL,
      ['--rerank'],
      {},
      /^Model "chat.gguf" has no classifier head, .*; remove "--rerank" from the arguments of the slot/,
    ],
    ['reranking without a head by the environment', CAUSAL, [], { LLAMA_ARG_RERANKING: '1' }, /; remove "--rerank"/],
    ['an encoder that is to rank without a head', ENCODER, ['--reranking'], {}, /; remove "--rerank"/],
    [
      'the pooling of a reranker without a head',
      CAUSAL,
      ['--embeddings', '--pooling', 'rank'],
      {},
      / no classifier head, .*; set "--pooling" to /,
    ],
    ['a reranker whose head was not converted', saying(ENCODER, { poolingType: 4 }), [], {}, /; get another file of the reranker$/],
    [
      'embeddings without pooling',
      CAUSAL,
      ['--embeddings', '--pooling', 'none'],
      {},
      /, the first chat request would end the server; set "--pooling"/,
    ],
    ['an encoder without pooling', ENCODER, ['--pooling', 'none'], {}, /; set "--pooling" to "mean", "cls" or "last"/],
  ] as const)('refuses %s, and says what to do', (_what, model, args, env, message) => {
    expect(objectionOf(model, args, env)).toMatch(message);
  });

  test.each([
    ['a chat model', CAUSAL, []],
    ['a chat model that also embeds', CAUSAL, ['--embeddings']],
    ['another pooling', CAUSAL, ['--embeddings', '--pooling', 'last']],
    ['an encoder', ENCODER, []],
    ['a reranker', RERANKER, ['--rerank']],
    ['a reranker whose tensors are not known', saying(ENCODER, { poolingType: 4, hasClassifier: undefined }), []],
    ['pooling that nothing uses', CAUSAL, ['--pooling', 'none']],
  ] as const)('accepts %s', (_what, model, args) => {
    expect(objectionOf(model, args)).toBeUndefined();
  });
});

test('buildEnv() limits the prompt cache, denies access to web pages and limits the visible GPUs', () => {
  expect(gguf.buildEnv(contextOf('primary', CAUSAL))).toEqual({
    LLAMA_ARG_CORS_ORIGINS: 'localhost',
    LLAMA_ARG_SSE_PING_INTERVAL: '2',
    LLAMA_ARG_CACHE_RAM: '2048',
  });
  expect(gguf.buildEnv(contextOf('embed', ENCODER))['LLAMA_ARG_CACHE_RAM']).toBe('0');
  const states = saying(CAUSAL, { layers: { whole: { keys: 0, values: 0 }, stateBytes: 2 ** 20 } });
  expect(gguf.buildEnv(contextOf('primary', states, { model: { default: CAUSAL.id, context: 16_384 } }))).toMatchObject({
    LLAMA_ARG_CTX_CHECKPOINTS: '6',
    LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT: '8192',
  });
  const gpus = (backend: 'vulkan' | 'rocm' | 'cuda') => gguf.buildEnv(contextOf('primary', CAUSAL, { backend, resources: { gpus: 2 } }));
  expect(gpus('vulkan')['GGML_VK_VISIBLE_DEVICES']).toBe('0,1');
  expect(gpus('rocm')['ROCR_VISIBLE_DEVICES']).toBe('0,1');
  expect(gpus('cuda')['CUDA_VISIBLE_DEVICES']).toBe('0,1');
});

test.each([
  ['vulkan', ['/dev/dri']],
  ['rocm', ['/dev/kfd', '/dev/dri']],
  ['cuda', ['nvidia.com/gpu=all']],
  ['cpu', []],
] as const)('backend %s needs the devices %j', (backend, devices) => {
  expect(gguf.devices(backend)).toEqual(devices);
});
