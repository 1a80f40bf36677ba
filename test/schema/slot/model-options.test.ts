import { describe, expect, test } from '@jest/globals';
import { companionsOf } from '../../../src/schema/slot/model-options.ts';
import { presetNames, presetOf } from '../../../src/schema/slot/presets.ts';
import { parseSlot, type SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

const PRIMARY = SlotName.parse('primary');
const parse = (model: object, more: object = {}) => parseSlot(PRIMARY, { model: { default: 'a.gguf', ...model }, ...more });
const problemsOf = (model: object, more: object = {}): readonly string[] => {
  const parsed = parse(model, more);
  return parsed.ok ? [] : parsed.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
};
function specOf(model: object): SlotSpec {
  const parsed = parse(model);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

const LEGAL = { name: 'legal', file: 'loras/legal.gguf' };

describe('adapters of a slot', () => {
  const spec = specOf({
    aliases: ['gpt'],
    adapters: [LEGAL, { name: 'poems', file: 'loras/poems.gguf', scale: 0.5 }],
    presets: { think: { set: { seed: 1 } } },
  });

  test('are presets that force the adapter with its scale, and no other', () => {
    expect(presetOf({ name: 'primary', spec }, 'primary:poems')?.preset).toMatchObject({
      set: {},
      force: { lora: [{ id: 1, scale: 0.5 }] },
    });
    expect(presetOf({ name: 'primary', spec }, 'gpt:legal')?.preset).toMatchObject({ force: { lora: [{ id: 0, scale: 1 }] } });
    expect(presetOf({ name: 'primary', spec }, 'primary')).toBeUndefined();
    expect(presetNames({ name: 'primary', ...spec.model }).map(([name]) => name)).toContain('primary:legal');
  });

  test('and the draft model are loaded beside the model, in this order', () => {
    expect(companionsOf(spec)).toEqual(['loras/legal.gguf', 'loras/poems.gguf']);
    expect(companionsOf(specOf({ adapters: [LEGAL], draft: { model: 'tiny.gguf' } }))).toEqual(['tiny.gguf', 'loras/legal.gguf']);
    expect(companionsOf(specOf({ draft: { ngram: true } }))).toEqual([]);
  });
});

test.each([
  [{ program: { path: 'llama-server' } }, expect.stringContaining('program.path: Write an absolute path')],
  [{ program: { image: 'example.com/llama:v1' } }, expect.stringContaining('program.image: Write the name of an image with its digest')],
  [
    { provider: 'remote', remote: { url: 'https://a.example/v1' }, program: { path: '/bin/a' } },
    expect.stringContaining('runs no program here'),
  ],
  [{ provider: 'vllm', program: { path: '/bin/a' } }, expect.stringContaining('The engine "vllm" names its program in "command"')],
])('a slot cannot run %j', (more, problem) => {
  expect(problemsOf({}, more)).toEqual([problem]);
});

test.each([
  [{ program: { path: '/opt/llama.cpp/llama-server', image: 'localhost/llama-server:b11700' } }],
  [{ provider: 'vllm', program: { image: `example.com/vllm@sha256:${'a'.repeat(64)}` } }],
  [{ provider: 'stt', program: { path: '/opt/stt' } }],
])('a slot can run %j', (more) => {
  expect(problemsOf({}, more)).toEqual([]);
});

test('a short form means both keys and values, and a table what it has', () => {
  expect(specOf({ kvCache: 'q8_0' }).model.kvCache).toEqual({ k: 'q8_0', v: 'q8_0' });
  expect(specOf({ kvCache: { k: 'q4_0' } }).model.kvCache).toEqual({ k: 'q4_0' });
  expect(specOf({}).model.kvCache).toBeUndefined();
  expect(specOf({ offload: { gpuLayers: 20 } }).model.offload).toEqual({ gpuLayers: 20 });
});

test.each<[string, object, string]>([
  ['no kind of draft', { draft: { max: 4 } }, 'model.draft: Set exactly one of "model", "mtp", "ngram"'],
  ['two kinds of draft', { draft: { mtp: true, ngram: true } }, 'model.draft: Set exactly one of "model", "mtp", "ngram"'],
  ['a draft that is off', { draft: { mtp: false } }, 'model.draft.mtp: Use one of "true", not false'],
  ['limits the wrong way round', { draft: { ngram: true, min: 9, max: 4 } }, 'model.draft.min: "min" is above "max": swap them'],
  ['a path out of the store', { adapters: [{ ...LEGAL, file: '../x.gguf' }] }, 'model.adapters.0.file: A model id consists of'],
  ['a name of the Hub', { adapters: [{ ...LEGAL, file: 'hf:a/b' }] }, 'model.adapters.0.file: Write the path of a file in the model store'],
  ['two adapters of one name', { adapters: [LEGAL, LEGAL] }, 'model.adapters.1: An earlier entry has the same "name"'],
  [
    'an adapter with the name of a preset',
    { adapters: [LEGAL], presets: { legal: {} } },
    'model.adapters: An adapter and a preset have the same name',
  ],
  ['a name with a colon', { adapters: [{ ...LEGAL, name: 'a:b' }] }, 'model.adapters.0.name: Write a name of lower-case letters'],
  ['an unknown type', { kvCache: 'q3_0' }, 'model.kvCache: Write a type, or a table with "k" and "v"'],
  ['an unknown part', { kvCache: { q: 'q8_0' } }, 'model.kvCache.q: Unknown key "q"; did you mean "k"?'],
  ['an empty division', { offload: {} }, 'model.offload: Write "auto", "full", or a table with "gpu_layers"'],
  ['no place', { parallel: 0 }, 'model.parallel: Use at least 1, not 0'],
  ['an unknown effort', { reasoning: { effort: 'hgih' } }, 'model.reasoning.effort: Use one of "minimal"'],
])('%s is refused', (_what, model, problem) => {
  expect(problemsOf(model)).toEqual([expect.stringContaining(problem)]);
});

describe('a provider that cannot be told', () => {
  test.each<[string, object]>([
    ['draft', { draft: { ngram: true } }],
    ['adapters', { adapters: [LEGAL] }],
    ['kvCache', { kvCache: 'q8_0' }],
    ['parallel', { parallel: 2 }],
    ['reasoning', { reasoning: { budget: 0 } }],
    ['offload', { offload: { gpuLayers: 3 } }],
  ])('refuses "%s" by name', (key, model) => {
    for (const provider of ['stt', 'vllm']) {
      const written = key === 'kvCache' ? 'kv_cache' : key;
      expect(problemsOf(model, { provider })).toEqual([
        `model.${key}: Provider "${provider}" cannot express "model.${written}": remove it, or use "model.args"`,
      ]);
    }
  });

  test('accepts a slot without them', () => {
    expect(problemsOf({ offload: 'auto', adapters: [] }, { provider: 'vllm' })).toEqual([]);
  });
});
