/** Which provider serves a model, where its id says so. Pure. */
import { PROVIDER_OF_MODEL } from './catalogue-providers.ts';
import type { ProviderKind } from './provider-kinds.ts';

/** Files of this format are served by llama.cpp only. */
const GGUF_ENDING = '.gguf';

/** A repository of the Hub, with or without a quantisation: the file that is chosen there is in this format. */
const GGUF_REPOSITORY = /^hf:[^/]+\/[^/]+$/;

/** Undefined if the id does not say it. */
export function providerOfModel(model: string): ProviderKind | undefined {
  if (Object.hasOwn(PROVIDER_OF_MODEL, model)) return PROVIDER_OF_MODEL[model];
  return model.endsWith(GGUF_ENDING) || GGUF_REPOSITORY.test(model) ? 'gguf' : undefined;
}

/** Split GGUF models have these file names on the Hub, in other tools' directories, and in the store. */
const SHARD = /-(\d{5})-of-(\d{5})\.gguf$/i;

/** Returns the file names of all shards of a split model, or just the given name if the model is not split. */
export function shardNames(name: string): readonly string[] {
  const match = SHARD.exec(name);
  const count = Number(match?.[2] ?? 1);
  if (match === null || count < 2 || count > 999) return [name];
  const stem = name.slice(0, match.index);
  return Array.from({ length: count }, (_, index) => `${stem}-${String(index + 1).padStart(5, '0')}-of-${match[2]}${name.slice(-5)}`);
}

/** Returns the name of a GGUF file without its number as a shard and its ending. */
export const ggufStem = (name: string): string => name.replace(SHARD, '').replace(/\.gguf$/i, '');
