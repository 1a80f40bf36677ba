/** The slot files of a new installation: enabled where the machine can run them, with a model that fits, and loaded at the first request. Pure. */
import { BUILT_IN_SLOTS, DEFAULT_PROVIDER_OF_SLOT, type ProviderKind } from '../../../schema/slot/provider-kinds.ts';

export interface FirstSlotFacts {
  /** Undefined if it is not known. */
  readonly memoryBytes: number | undefined;
  /** Why this machine cannot run a provider: a clause. Undefined: it can. */
  whyNot(kind: ProviderKind): string | undefined;
  /** Size of the files of a model of the catalogue; undefined if it is not known. */
  sizeBytes(model: string): number | undefined;
}

export interface SlotFile {
  /** Name of the slot. */
  readonly name: string;
  readonly text: string;
}

/** Models with licences that nobody has to accept, the best first. A slot gets the first that fits, or the last. */
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
/** The rest is for the context of the model, the other slots and the system. */
const SHARE_OF_MEMORY = 0.4;

export function firstSlots(facts: FirstSlotFacts): readonly SlotFile[] {
  return BUILT_IN_SLOTS.map((name) => ({ name, text: slotText(name, facts) }));
}

function slotText(name: string, facts: FirstSlotFacts): string {
  const kind = DEFAULT_PROVIDER_OF_SLOT[name];
  const whyNot = kind === undefined ? undefined : facts.whyNot(kind);
  const why = whyNot === undefined ? '' : `# Not enabled, because ${whyNot}\n`;
  return `# The slot "${name}" ${PURPOSE[name] ?? 'serves a model'}. Save this file, and the change takes effect a moment later.
${why}enabled = ${whyNot === undefined}
# Loaded at the first request, which may download the model. "always" loads it now.
load = "on-demand"

[model]
# An id of the catalogue ("svcctl get models"), a file in the model store, or "hf:owner/repo".
default = "${modelFor(name, facts)}"
`;
}

function modelFor(name: string, { memoryBytes, sizeBytes }: FirstSlotFacts): string {
  const models = MODELS[name] ?? ['demo-fox'];
  const limit = memoryBytes === undefined ? 0 : memoryBytes * SHARE_OF_MEMORY;
  return models.find((model) => (sizeBytes(model) ?? Infinity) <= limit) ?? models.at(-1) ?? '';
}
