/** The slot files of a new installation: enabled if the machine can run them, with a model that fits. Pure. */
import { BUILT_IN_SLOTS, DEFAULT_PROVIDER_OF_SLOT, type ProviderKind } from '../../schema/slot/provider-kinds.ts';

export interface FirstSlotFacts {
  /** Undefined if unknown. */
  readonly memoryBytes: number | undefined;
  /** Returns a clause why this machine cannot run a provider; undefined if it can. */
  whyNot(kind: ProviderKind): string | undefined;
  /** Returns the size of the files of a catalogue model; undefined if unknown. */
  sizeBytes(model: string): number | undefined;
}

export interface SlotFile {
  /** Name of the slot. */
  readonly name: string;
  readonly text: string;
}

/** Models whose licences need no acceptance, the best first. A slot gets the first that fits, or the last. */
const MODELS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  primary: ['qwen3-4b-instruct', 'qwen3-1.7b', 'qwen3.5-0.8b'],
  embed: ['nomic-embed-text-v1.5'],
  stt: ['moonshine-base-en'],
  tts: ['kokoro-multi-lang-v1.0'],
  img: ['sd-1.5-pruned-emaonly'],
};
const PURPOSE: Readonly<Record<string, string>> = {
  primary: 'answers chat requests',
  embed: 'computes embeddings',
  stt: 'turns speech into text',
  tts: 'turns text into speech',
  img: 'generates images',
};
/** The rest is left for the context of the model, other slots and the system. */
const SHARE_OF_MEMORY = 0.4;

export function firstSlots(facts: FirstSlotFacts): readonly SlotFile[] {
  return BUILT_IN_SLOTS.map((name) => ({ name, text: slotText(name, facts) }));
}

function slotText(name: string, facts: FirstSlotFacts): string {
  const kind = DEFAULT_PROVIDER_OF_SLOT[name];
  const whyNot = kind === undefined ? undefined : facts.whyNot(kind);
  const why = whyNot === undefined ? '' : `# Not enabled, because ${whyNot}\n`;
  return `# The slot "${name}" ${PURPOSE[name] ?? 'serves a model'}. Changes to this file take effect when it is saved.
${why}enabled = ${whyNot === undefined}
# The first request loads the slot and may download its model. "always" loads it now.
load = "on-demand"

[model]
# Catalogue id ("svcctl get models"), file in the model store, or "hf:owner/repo".
default = "${modelFor(name, facts)}"
`;
}

function modelFor(name: string, { memoryBytes, sizeBytes }: FirstSlotFacts): string {
  const models = MODELS[name] ?? ['demo-fox'];
  const limit = memoryBytes === undefined ? 0 : memoryBytes * SHARE_OF_MEMORY;
  return models.find((model) => (sizeBytes(model) ?? Infinity) <= limit) ?? models.at(-1) ?? '';
}
