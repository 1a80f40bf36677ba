/** What the list of models shows. Pure. */
import type { ModelEntry, Pull, Slot } from '../types.ts';

export function matchesModel(model: ModelEntry, search: string): boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const text = [model.id, model.family, model.provider, model.kind ?? '', model.license ?? ''].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Files that are here, in whatever state, apart from what can be had. */
export function splitModels(models: readonly ModelEntry[]): {
  readonly here: readonly ModelEntry[];
  readonly others: readonly ModelEntry[];
} {
  return { here: models.filter(({ present }) => present), others: models.filter(({ present }) => !present) };
}

/** The slots that could serve a model: those with its provider. A slot whose text is wrong needs a person first. */
export function slotsFor(model: ModelEntry, slots: readonly Slot[]): readonly string[] {
  return slots.filter(({ spec, status }) => spec !== null && status.provider === model.provider).map(({ name }) => name);
}

export function pullOf(model: ModelEntry, pulls: readonly Pull[]): Pull | undefined {
  return pulls.find((pull) => pull.model === model.id);
}

export type Fit = 'fits' | 'tight' | 'too-large' | 'unknown';

/** What the model needs: as the list says it, or as the service has computed it for this machine since; otherwise what it needs at least. Null if nobody knows. */
export function neededBytes(
  { memory_bytes: memory, min_memory_bytes: least }: Pick<ModelEntry, 'memory_bytes' | 'min_memory_bytes'>,
  computed: number | undefined,
): number | null {
  return computed ?? memory ?? least;
}

/** `available` is what the machine has free now, `total` what it has. */
export function fitOf(needed: number | null, available: number | null, total: number | null): Fit {
  if (needed === null || total === null) return 'unknown';
  if (needed > total) return 'too-large';
  return available !== null && needed > available ? 'tight' : 'fits';
}
