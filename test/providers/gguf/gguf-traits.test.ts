import { expect, test } from '@jest/globals';
import { encodeEmbedder } from '../../../toolboxes/demo/demo-embedder.ts';
import { encodeDemoModel } from '../../../toolboxes/demo/demo-models.ts';
import { encodeGguf, text, u32 } from '../../../toolboxes/demo/encode-gguf.ts';
import type { ModelContents } from '../../../src/providers/provider.ts';
import { ggufContents } from '../../../src/providers/gguf/decide/gguf-model.ts';
import { ggufTraits } from '../../../src/providers/gguf/gguf-format.ts';
import { parseGgufHeader } from '../../support/providers/parse-gguf-header.ts';

const contentsOf = (bytes: Uint8Array, projector?: string, values: ReadonlyMap<string, boolean> = new Map()): ModelContents => {
  const parsed = parseGgufHeader(bytes);
  if (parsed.kind !== 'header') throw new Error(parsed.kind);
  return ggufContents([parsed.header], projector === undefined ? undefined : { name: projector, sizeBytes: 1, values });
};
const TEMPLATE = text('{% if tools %}<tool_call>{% endif %}<think>');
const experts = encodeGguf({
  metadata: [
    ['general.architecture', text('qwen3moe')],
    ['general.file_type', u32(15)],
    ['qwen3moe.context_length', u32(40_960)],
    ['qwen3moe.expert_count', u32(128)],
    ['qwen3moe.expert_used_count', u32(8)],
    ['tokenizer.chat_template', TEMPLATE],
  ],
  tensors: [],
});

test.each<readonly [string, ModelContents, unknown]>([
  [
    'a mixture of experts with tools, thinking and a projector',
    contentsOf(experts, 'mmproj-F16.gguf'),
    { quantization: 'Q4_K_M', context: 40_960, experts: { total: 128, active: 8 }, abilities: ['tools', 'thinking', 'vision'] },
  ],
  [
    'the same with a projector for recordings alone',
    contentsOf(
      experts,
      'mmproj-F16.gguf',
      new Map([
        ['clip.has_vision_encoder', false],
        ['clip.has_audio_encoder', true],
      ]),
    ),
    expect.objectContaining({ abilities: ['tools', 'thinking', 'audio'] }),
  ],
  ['the same without a projector', contentsOf(experts), expect.objectContaining({ abilities: ['tools', 'thinking'] })],
  ['a model that embeds', contentsOf(encodeDemoModel('demo-embed')), expect.objectContaining({ pooling: 'mean', abilities: [] })],
  ['a model that ranks', contentsOf(encodeEmbedder({ name: 'r', head: 'rank' })), expect.objectContaining({ pooling: 'rank' })],
  ['what a catalogue states', { poolingType: 3, trainedContext: 8192 }, { pooling: 'last', context: 8192 }],
  ['nothing', {}, {}],
  ['numbers that no model can have', { parameters: -1, expertCount: Number.NaN, poolingType: 99 }, {}],
  ['contents of another version', { quantization: 4 }, {}],
])('%s says what users can know of it', (_, contents, traits) => {
  expect(ggufTraits(contents)).toEqual(traits);
});
