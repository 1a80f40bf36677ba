/** What the list of models shows and offers. Pure. */
import type { Capability, ModelEntry, Pull, Slot } from '../types.ts';

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

/** What requests ask of a model of each kind, and the built-in slot for it. */
const USES: Readonly<Record<NonNullable<ModelEntry['kind']>, { readonly serves: Purpose; readonly slot: string | undefined }>> = {
  chat: { serves: 'chat', slot: 'primary' },
  coder: { serves: 'chat', slot: 'primary' },
  vision: { serves: 'chat', slot: 'primary' },
  embed: { serves: 'embedding', slot: 'embed' },
  rerank: { serves: 'rerank', slot: undefined },
  transcription: { serves: 'transcription', slot: 'stt' },
  speech: { serves: 'speech', slot: 'tts' },
  image: { serves: 'image', slot: 'img' },
};
/** What a slot can be for, the most usual first. */
export const PURPOSES = ['chat', 'embedding', 'rerank', 'transcription', 'speech', 'image'] as const satisfies readonly Capability[];
/** The provider of a model that no list has. */
export const USUAL_PROVIDER: Readonly<Record<Purpose, string>> = {
  chat: 'gguf',
  embedding: 'gguf',
  rerank: 'gguf',
  transcription: 'stt',
  speech: 'tts',
  image: 'image',
};
export type Purpose = (typeof PURPOSES)[number];

/** Models that can be chosen for a purpose, those that are here first. */
export function modelsFor(purpose: Purpose, models: readonly ModelEntry[]): readonly ModelEntry[] {
  const fitting = models.filter((model) => model.selectable && useOf(model)?.serves === purpose);
  return fitting.toSorted((one, other) => Number(other.present) - Number(one.present));
}

/** Undefined for a model of an engine of the user's own, which may serve anything. */
export const purposeOf = (model: ModelEntry): Purpose | undefined => useOf(model)?.serves;

/** The built-in slot of a purpose, or a name after the purpose that no slot has. */
export function freeName(purpose: Purpose, names: readonly string[]): string {
  const builtIn = Object.values(USES).find(({ serves }) => serves === purpose)?.slot ?? purpose;
  const taken = new Set(names);
  if (!taken.has(builtIn)) return builtIn;
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? purpose : `${purpose}-${number}`;
    if (!taken.has(name)) return name;
  }
}

const BUILT_IN = new Map(Object.values(USES).flatMap(({ serves, slot }) => (slot === undefined ? [] : [[slot, serves] as const])));

/** A kind that the catalogue does not name is derived from how the model pools its vectors. */
function useOf({ kind, pooling, provider }: ModelEntry): (typeof USES)['chat'] | undefined {
  if (kind !== null) return USES[kind];
  if (provider !== 'gguf') return undefined;
  return USES[pooling === null ? 'chat' : pooling === 'rank' ? 'rerank' : 'embed'];
}

/**
 * Names of the slots that could serve the model, its built-in slot first. A slot keeps what it serves; one that serves
 * nothing yet takes any model of its provider. Slots with an invalid document are left out.
 */
export function slotsFor(model: ModelEntry, slots: readonly Slot[]): readonly string[] {
  const use = useOf(model);
  const suits = ({ name, spec, status: { provider, capabilities } }: Slot): boolean => {
    if (spec === null || provider !== model.provider) return false;
    const served = capabilities.length > 0 ? capabilities : [BUILT_IN.get(name)].filter((each) => each !== undefined);
    return use === undefined || served.length === 0 || served.includes(use.serves);
  };
  const names = slots.filter(suits).map(({ name }) => name);
  return names.toSorted((one, other) => Number(other === use?.slot) - Number(one === use?.slot));
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
