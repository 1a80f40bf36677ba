/**
 * Keys of a slot that become flags of its server: what it loads beside the model, and how it computes. Which providers
 * can express them is in `provider-kinds.ts`; how, is in the folder of the provider.
 */
import { z } from 'zod';
import { optional } from '../pod/kube-fields.ts';
import { isTable, writeKeys, type KeyStyle } from '../words/key-case.ts';
import { ModelId } from '../words/names.ts';
import { isBuiltInKind, kindFacts, type ProviderKind } from './provider-kinds.ts';
import { PresetName, type Preset } from './presets.ts';
import { list, rulesAt } from './slot-rules.ts';
import type { SpecProblem } from './spec-problem.ts';

const CACHE_TYPES = ['f32', 'f16', 'bf16', 'q8_0', 'q5_1', 'q5_0', 'q4_1', 'q4_0', 'iq4_nl'] as const;
const MOST_LAYERS = 10_000;

const Draft = z
  .strictObject({
    model: optional('Draft model: an id from the catalogue, or the path of a file in the model store', ModelId),
    mtp: optional('true: the model predicts several tokens itself, with a head that is in its file', z.literal(true)),
    ngram: optional('true: what has been said before is proposed again, without a model', z.literal(true)),
    max: optional('Most tokens to propose at a time. Default: that of the server', z.int().min(1).max(256)),
    min: optional('Fewer tokens than this are not proposed. Default: that of the server', z.int().min(0).max(256)),
  })
  .superRefine(rulesAt('model.draft'));

const Adapter = z.strictObject({
  name: PresetName.describe('Name of the adapter: a request for "<slot>:<name>" is answered with it'),
  // llama-server separates files with "," and scales with ":".
  file: ModelId.refine((file) => !file.includes(':'), 'Write the path of a file in the model store, without ":"').describe(
    'Path of its file in the model store',
  ),
  scale: z.number().min(-100).max(100).default(1).describe('How strongly it changes the model'),
});

const CacheType = z.enum(CACHE_TYPES);
const Layers = z.int().min(0).max(MOST_LAYERS);

const OFFLOAD = 'Write "auto", "full", or a table with "{gpuLayers}", "{cpuExperts}" or both, as numbers of layers';

export const MODEL_OPTIONS = {
  draft: optional('Speculative decoding: tokens are proposed cheaply, and the model checks several at once. GGUF only', Draft),
  adapters: list('LoRA adapters that the server loads beside the model. GGUF only', Adapter, 16, 'model.adapters'),
  kvCache: optional(
    'How keys and values of the context are stored, e.g. "q8_0", which takes about half of the memory, or a table with "k" and "v". GGUF only. Default: "f16"',
    z.union(
      [CacheType, z.strictObject({ k: CacheType.optional(), v: CacheType.optional() })],
      `Write a type, or a table with "k" and "v" of a type each: ${CACHE_TYPES.map((type) => `"${type}"`).join(', ')}`,
    ),
  ),
  parallel: optional(
    'Requests that the server computes at once, each with a context of its own. GGUF only. Default: as many as fit into "resources.memory"',
    z.int().min(1).max(256),
  ),
  reasoning: optional(
    'How much the model thinks before it answers, for requests that do not say it. GGUF only',
    z.strictObject({
      effort: optional('Effort, for chat templates that know it', z.enum(['minimal', 'low', 'medium', 'high', 'xhigh', 'max'])),
      budget: optional('Most tokens of thinking; 0: none. Default: no limit', z.int().min(0).max(16_777_216)),
    }),
  ),
  offload: optional(
    'GGUF on a machine with GPUs that have a memory of their own. "auto": what does not fit there is computed by the CPU, experts first; "full": the devices compute everything; a table: "gpu_layers" layers on the devices, and the experts of the first "cpu_experts" layers on the CPU. Default: "auto", or "full" where "backend" is set',
    z.union(
      [
        z.enum(['auto', 'full']),
        z
          .strictObject({ gpuLayers: Layers.optional(), cpuExperts: Layers.optional() })
          .refine((table) => Object.keys(table).length > 0, OFFLOAD),
      ],
      OFFLOAD,
    ),
  ),
};

type Options = Readonly<{ [Key in keyof typeof MODEL_OPTIONS]?: z.output<(typeof MODEL_OPTIONS)[Key]> }>;

/** Fills in what depends on other keys. Each adapter is a preset as well, which no file can declare. */
export function resolveModel<Written extends Options & { readonly presets: Readonly<Record<string, Preset>> }>(
  { kvCache, offload, adapters = [], presets, ...model }: Written,
  backendGiven: boolean,
) {
  return {
    ...model,
    ...(kvCache === undefined ? {} : { kvCache: typeof kvCache === 'string' ? { k: kvCache, v: kvCache } : kvCache }),
    adapters,
    presets: { ...presets, ...Object.fromEntries(adapters.map(({ name }) => [name, adapterPreset(name, adapters)])) },
    offload: offload ?? (backendGiven ? 'full' : 'auto'),
  };
}

/** Servers load adapters in this order, without applying them. */
const adapterPreset = (name: string, adapters: NonNullable<Options['adapters']>): Preset => ({
  set: {},
  force: { lora: adapters.flatMap((each, id) => (each.name === name ? [{ id, scale: each.scale }] : [])) },
  aliases: [],
  isAdapter: true,
});

/** Models that the server of a slot loads beside its own. */
export const companionsOf = ({
  model: { draft, adapters },
}: {
  readonly model: Pick<Options, 'draft' | 'adapters'>;
}): readonly ModelId[] => [...(draft?.model === undefined ? [] : [draft.model]), ...(adapters ?? []).map(({ file }) => file)];

/** One problem for each key that no server of the provider can be told. `document` has camelCase keys. */
export function inexpressible(kind: ProviderKind, document: unknown, style: KeyStyle): readonly SpecProblem[] {
  if (kindFacts(kind).expresses || !isTable(document)) return [];
  const { model, resources, program } = document;
  const problem = (table: string, key: string): SpecProblem => ({
    path: [table, key],
    message: writeKeys(`Provider "${kind}" cannot express "${table}.{${key}}": remove it, or use "model.args"`, style),
  });
  const isSet = (key: string, value: unknown): boolean =>
    key === 'offload' ? isTable(value) : Array.isArray(value) ? value.length > 0 : value !== undefined;
  return [
    ...Object.keys(MODEL_OPTIONS).flatMap((key) => (isTable(model) && isSet(key, model[key]) ? [problem('model', key)] : [])),
    ...(isTable(resources) && isSet('devices', resources['devices']) ? [problem('resources', 'devices')] : []),
    ...(kind === 'remote' && program !== undefined
      ? [{ path: ['program'], message: 'A slot with the provider "remote" runs no program here: remove "program"' }]
      : []),
    ...(!isBuiltInKind(kind) && isTable(program) && program['path'] !== undefined
      ? [{ path: ['program', 'path'], message: `The engine "${kind}" names its program in "command": remove "program.path"` }]
      : []),
  ];
}
