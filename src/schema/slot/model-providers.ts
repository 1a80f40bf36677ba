/** Which provider serves a model, where its id says so. Pure. */
import { PROVIDER_OF_MODEL } from './catalogue-providers.ts';
import type { ProviderKind } from './provider-kinds.ts';

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
