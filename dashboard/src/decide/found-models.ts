/** Models found on the Hugging Face Hub, in the form of the list of models. Pure. */
import type { FoundModel, ModelEntry } from '../types.ts';
import { formatBytes } from './format.ts';

type Quantisation = FoundModel['quantisations'][number];

/** The largest model that fits, otherwise the smallest. */
export function bestOf({ quantisations }: FoundModel): Quantisation | undefined {
  return quantisations.find(({ fits }) => fits !== false) ?? quantisations.at(-1);
}

export function labelOf({ quantisation, files, size_bytes: size, fits }: Quantisation): string {
  const parts = [quantisation ?? files[0] ?? '', formatBytes(size), fits === null ? '' : fits ? 'fits' : 'too large'];
  return parts.filter((part) => part !== '').join(' · ');
}

/** How models with these tasks make one vector; others generate text. */
const POOLINGS = new Map([
  ['feature-extraction', 'mean'],
  ['sentence-similarity', 'mean'],
  ['text-ranking', 'rank'],
]);

export function entryOf({ task, license, license_url: licenseUrl }: FoundModel, chosen: Quantisation): ModelEntry {
  return {
    id: chosen.uri,
    kind: null,
    provider: 'gguf',
    family: '',
    present: false,
    size_bytes: chosen.size_bytes,
    memory_bytes: null,
    min_memory_bytes: chosen.needed_bytes,
    min_vram_bytes: null,
    context: null,
    quantization: chosen.quantisation,
    parameters: null,
    pooling: POOLINGS.get(task ?? '') ?? null,
    experts: null,
    abilities: null,
    license,
    license_url: licenseUrl,
    verified: null,
    selectable: true,
    reason: null,
  };
}
