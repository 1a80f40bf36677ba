/** Builds slots and models for the tests of the GGUF provider. */
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot, type SlotDocument, type SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import type { GgufContents } from '../../../src/providers/gguf/decide/gguf-model.ts';
import type { Sized, SlotContext } from '../../../src/providers/provider.ts';

export function specOf(name: string, document: Partial<SlotDocument> & { readonly model: SlotDocument['model'] }): SlotSpec {
  const parsed = parseSlot(SlotName.parse(name), { provider: 'gguf', ...document });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

export const CAUSAL: Sized = {
  id: ModelId.parse('chat.gguf'),
  hostPath: '/models/chat.gguf',
  sizeBytes: 5_000_000_000,
  provider: 'gguf',
  contents: {
    architecture: 'llama',
    hasClassifier: false,
    trainedContext: 131_072,
    blockCount: 32,
    embeddingLength: 4096,
    headCount: 32,
    headCountKv: 8,
  },
};

export const ENCODER: Sized = {
  id: ModelId.parse('embed.gguf'),
  hostPath: '/models/embed.gguf',
  sizeBytes: 140_000_000,
  provider: 'gguf',
  contents: {
    architecture: 'bert',
    poolingType: 2,
    hasClassifier: false,
    trainedContext: 512,
    blockCount: 12,
    embeddingLength: 768,
    headCount: 12,
  },
};

/** The same model, if its files said something else. */
export function saying(model: Sized, contents: GgufContents): Sized {
  return { ...model, contents: { ...model.contents, ...contents } };
}

export function contextOf(name: string, model: Sized, document: Partial<SlotDocument> = {}, more: Partial<SlotContext> = {}): SlotContext {
  return {
    name: SlotName.parse(name),
    spec: specOf(name, { model: { default: model.id }, ...document }),
    model,
    modelPath: model.hostPath,
    listen: { host: '127.0.0.1', port: 18_080 },
    ...more,
  };
}
