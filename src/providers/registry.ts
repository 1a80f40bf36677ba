/** All providers. A new one is a folder beside this file and a line here. */
import type { ModelFormat, ProviderRegistry } from './provider.ts';
import { gguf } from './gguf/gguf.ts';

export const PROVIDERS = { gguf } as const satisfies ProviderRegistry;

/** How the models of all providers look on disk. A file that several would take belongs to the first one. */
export const MODEL_FORMATS: readonly ModelFormat[] = Object.values(PROVIDERS).map(({ models }) => models);
