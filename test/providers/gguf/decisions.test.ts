import { describe, expect, test } from '@jest/globals';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { deriveHealth } from '../../../src/providers/gguf/decide/derive-health.ts';
import { PROVIDER_KIND_NAMES } from '../../../src/schema/slot/provider-kinds.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import type { Sized } from '../../../src/providers/provider.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { GgufContents } from '../../../src/providers/gguf/decide/gguf-model.ts';
import type { SlotDocument, SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import { CAUSAL, ENCODER, saying, specOf } from './slot-context.ts';

const GIB = 2 ** 30;

describe('estimateMemory()', () => {
  const bytesOf = (spec: SlotSpec, model: Sized): number => {
    const { hostBytes, deviceBytes } = gguf.estimateMemory(SlotName.parse('primary'), spec, model);
    return hostBytes + deviceBytes;
  };

  test.each([
    ['a GPU', {}, { hostBytes: 'cache', deviceBytes: 'weights' }],
    ['the CPU', { backend: 'cpu' }, { hostBytes: 'both', deviceBytes: 'none' }],
    ['the CPU, because the slot gets no GPU', { resources: { gpus: 0 } }, { hostBytes: 'both', deviceBytes: 'none' }],
  ] as const)('says where the memory is with %s, and the sum is about the same', (_what, document, where) => {
    const spec = specOf('primary', { ...document, model: { default: CAUSAL.id, context: 8192 } });
    const { hostBytes, deviceBytes } = gguf.estimateMemory(SlotName.parse('primary'), spec, CAUSAL);
    const named = (bytes: number): string => {
      if (bytes === 0) return 'none';
      if (bytes < CAUSAL.sizeBytes) return 'cache';
      return bytes === hostBytes + deviceBytes ? 'both' : 'weights';
    };
    expect({ hostBytes: named(hostBytes), deviceBytes: named(deviceBytes) }).toEqual(where);
    // The inputs of a batch are on both sides.
    const sum = bytesOf(specOf('primary', { backend: 'cpu', model: { default: CAUSAL.id, context: 8192 } }), CAUSAL);
    expect((hostBytes + deviceBytes) / sum).toBeCloseTo(1, 2);
  });

  test('counts 16-bit keys and values of every layer for each token of the context', () => {
    const spec = (context: number) => specOf('primary', { backend: 'cpu', model: { default: CAUSAL.id, context } });
    const difference = bytesOf(spec(65_536), CAUSAL) - bytesOf(spec(32_768), CAUSAL);
    // 32768 tokens × 32 layers × 8 KV heads × (128 + 128) × 2 bytes; the prompt cache is already at its limit. And 32768 tokens × a batch of 512 × 2 bytes for the mask
    expect(difference).toBe(4 * GIB + GIB / 32);
  });

  test('uses the lengths of keys and values from the file', () => {
    const spec = specOf('primary', { model: { default: CAUSAL.id, context: 65_536 } });
    const wide = bytesOf(spec, saying(CAUSAL, { keyLength: 256, valueLength: 256 }));
    expect(wide - bytesOf(spec, CAUSAL)).toBe(8 * GIB);
  });

  test('uses the trained context if the slot sets none, and counts no cache for an encoder', () => {
    const unset = specOf('primary', { model: { default: CAUSAL.id } });
    const set = specOf('primary', { model: { default: CAUSAL.id, context: 131_072 } });
    expect(bytesOf(unset, CAUSAL)).toBe(bytesOf(set, CAUSAL));
    const embed = bytesOf(specOf('embed', { model: { default: ENCODER.id } }), ENCODER);
    expect(embed).toBeGreaterThan(ENCODER.sizeBytes);
    expect(embed).toBeLessThan(ENCODER.sizeBytes + GIB / 4);
  });

  test('is never less than the file size, whatever is unknown', () => {
    const { id, hostPath, sizeBytes } = CAUSAL;
    expect(bytesOf(specOf('primary', { model: { default: id } }), { id, hostPath, sizeBytes })).toBeGreaterThan(sizeBytes);
  });
});

describe('infer()', () => {
  test.each([
    ['/v1/chat/completions', 'chat', '/v1/chat/completions'],
    ['/v1/completions', 'completion', '/v1/completions'],
    ['/v1/embeddings', 'embedding', '/v1/embeddings'],
    ['/v1/rerankings', 'rerank', '/v1/rerank'],
    ['/v1/messages', 'chat', '/v1/messages'],
    ['/v1/messages/count_tokens', 'chat', '/v1/messages/count_tokens'],
  ] as const)('forwards %s to the path of llama-server', (path, capability, upstream) => {
    expect(gguf.infer({ method: 'POST', path, capability }, [capability])).toMatchObject({ kind: 'forward', path: upstream });
  });

  test('translates the Responses API, which llama-server answers without fields that SDKs require', () => {
    const plan = gguf.infer({ method: 'POST', path: '/v1/responses', capability: 'chat' }, ['chat']);
    expect(plan).toMatchObject({
      kind: 'translate',
      mistakes: expect.arrayContaining([expect.objectContaining({ code: 'model.no_vision' })]),
    });
  });

  test.each<[string, GgufContents, Partial<SlotDocument>, unknown]>([
    ['no projector', {}, {}, { vision: false, audio: false }],
    ['a projector that was read', { projector: 'p.gguf', sees: true, hears: true }, {}, { vision: true, audio: true }],
    ['a projector for recordings', { projector: 'p.gguf', sees: false, hears: true }, {}, { vision: false, audio: true }],
    ['a projector of which only the name is known', { projector: 'p.gguf' }, {}, { vision: true }],
    ['a projector in the environment', {}, { env: { LLAMA_ARG_MMPROJ: '/p.gguf' } }, {}],
    [
      'a template for tools',
      { chatTemplate: true, tools: true, thinking: false },
      {},
      { vision: false, audio: false, tools: true, thinking: false },
    ],
  ])('says what chats may use with %s', (_what, contents, document, abilities) => {
    const spec = specOf('primary', { model: { default: CAUSAL.id }, ...document });
    expect(gguf.abilities?.(SlotName.parse('primary'), spec, saying(CAUSAL, contents))).toEqual({
      structured_output: true,
      ...Object(abilities),
    });
  });

  test('says nothing of a projector that the arguments name', () => {
    const abilitiesWith = (...args: string[]) =>
      gguf.abilities?.(SlotName.parse('primary'), specOf('primary', { model: { default: CAUSAL.id, args } }), CAUSAL);
    expect(abilitiesWith('--mmproj', '/p.gguf')).toEqual({ structured_output: true });
    expect(abilitiesWith('--mmap')).toEqual({ structured_output: true, vision: false, audio: false });
  });

  test.each(['chat', 'completion', 'embedding', 'rerank', 'speech'] as const)(
    'refuses %s with an explanation if the model does not support it',
    (capability) => {
      const plan = gguf.infer({ method: 'POST', path: '/v1/chat/completions', capability }, []);
      expect(plan).toMatchObject({ kind: 'refuse', message: expect.stringMatching(/^.{20,}$/) });
    },
  );

  test('refuses unknown paths, even one that is a property of every object', () => {
    expect(gguf.infer({ method: 'POST', path: 'constructor', capability: 'chat' }, ['chat']).kind).toBe('refuse');
  });
});

describe('deriveHealth()', () => {
  test.each([
    ['completion', '{"choices":[{"text":""}]}', 'passing'],
    ['completion', '{"choices":[]}', 'failing'],
    ['completion', 'not json', 'failing'],
    ['embedding', '{"data":[{"embedding":[0.5,0]}]}', 'passing'],
    ['embedding', '{"data":[{"embedding":[0,0]}]}', 'failing'],
    ['embedding', '{"data":[{"embedding":[null,1]}]}', 'failing'],
    ['embedding', '{"data":[{"embedding":[]}]}', 'failing'],
    ['rerank', '{"results":[{"relevance_score":-1.5}]}', 'passing'],
    ['rerank', '{"results":[{"relevance_score":null}]}', 'failing'],
  ] as const)('a %s probe with the response %s is %s', (probe, body, kind) => {
    expect(deriveHealth(probe, { status: 200, body }).kind).toBe(kind);
  });

  test.each([
    [0, '', 'silent'],
    [503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', 'loading'],
    [500, '{"error":{"message":"boom"}}', 'failing'],
    [404, '', 'failing'],
  ] as const)('a response with status %s and body %j is %s', (status, body, kind) => {
    expect(deriveHealth('completion', { status, body }).kind).toBe(kind);
  });

  test('quotes at most the beginning of a server message', () => {
    const health = deriveHealth('completion', { status: 500, body: 'x'.repeat(100_000) });
    expect(health.kind === 'failing' ? health.message.length : 0).toBeLessThan(400);
  });
});

test('the registry lists each provider under its kind', () => {
  for (const [kind, provider] of Object.entries(PROVIDERS)) {
    expect([...PROVIDER_KIND_NAMES, 'remote']).toContain(kind);
    expect(provider.kind).toBe(kind);
  }
});
