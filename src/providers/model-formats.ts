import type { ModelFormat, ProviderRegistry } from './provider.ts';

/** Formats of all providers. A file that several recognise belongs to the first. Pure. */
export function modelFormats(providers: ProviderRegistry): readonly ModelFormat[] {
  return Object.values(providers).map(({ models }) => models);
}
