/** What the list of models shows and offers. Pure. */
import type { ModelEntry, Pull, Slot } from '../types.ts';

export function matchesModel(model: ModelEntry, search: string): boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const text = [model.id, model.family, model.provider, model.kind ?? '', model.license ?? ''].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

export function splitModels(models: readonly ModelEntry[]): {
  readonly here: readonly ModelEntry[];
  readonly others: readonly ModelEntry[];
} {
  return { here: models.filter(({ present }) => present), others: models.filter(({ present }) => !present) };
}

/** Names of the slots with the model's provider, except those with an invalid document. */
export function slotsFor(model: ModelEntry, slots: readonly Slot[]): readonly string[] {
  return slots.filter(({ spec, status }) => spec !== null && status.provider === model.provider).map(({ name }) => name);
}

export function pullOf(model: ModelEntry, pulls: readonly Pull[]): Pull | undefined {
  return pulls.find((pull) => pull.model === model.id);
}

export type Fit = 'fits' | 'tight' | 'too-large' | 'unknown';

/** `computed` is the estimate for this machine, once known. Null if there is no estimate at all. */
export function neededBytes(
  { memory_bytes: memory, min_memory_bytes: least }: Pick<ModelEntry, 'memory_bytes' | 'min_memory_bytes'>,
  computed: number | undefined,
): number | null {
  return computed ?? memory ?? least;
}

/** All in bytes; null is unknown. */
export function fitOf(needed: number | null, available: number | null, total: number | null): Fit {
  if (needed === null || total === null) return 'unknown';
  if (needed > total) return 'too-large';
  return available !== null && needed > available ? 'tight' : 'fits';
}
