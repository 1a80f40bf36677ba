import type { ModelFormat, ProviderRegistry } from './provider.ts';

/** Formats of all providers. A file that several recognise belongs to the first. Pure. */
export const modelFormats = (providers: ProviderRegistry): readonly ModelFormat[] => Object.values(providers).map(({ models }) => models);
