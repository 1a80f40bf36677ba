/** Which provider serves a model, where its id says so. Pure. */
import type { ProviderKind } from './provider-kinds.ts';

/** The ids of the catalogue, by provider. `test/models/model-providers.test.ts` compares them with it. */
export const PROVIDER_OF_MODEL: Readonly<Record<string, ProviderKind>> = {
  'demo-fox': 'gguf',
  'demo-owl': 'gguf',
  'demo-clock': 'gguf',
  'demo-embed': 'gguf',
};

/** Files of this format are served by llama.cpp only. */
const GGUF_ENDING = '.gguf';

/** Undefined if the id does not say it. */
export function providerOfModel(model: string): ProviderKind | undefined {
  if (Object.hasOwn(PROVIDER_OF_MODEL, model)) return PROVIDER_OF_MODEL[model];
  return model.endsWith(GGUF_ENDING) ? 'gguf' : undefined;
}

/** The same rule as a CEL expression about the id: whether it says which provider serves the model. */
export function celKnowsProvider(model: string, listOf: (ids: readonly string[]) => string): string {
  return `${model}.endsWith('${GGUF_ENDING}') || ${model} in ${listOf(Object.keys(PROVIDER_OF_MODEL))}`;
}
