import type { ModelFormat, ProviderRegistry } from './provider.ts';

/** How the models of all providers look on disk. A file that several would take belongs to the first one. Pure. */
export function modelFormats(providers: ProviderRegistry): readonly ModelFormat[] {
  return Object.values(providers).map(({ models }) => models);
}
