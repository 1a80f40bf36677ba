/** Keys of a slot as flags of llama-server, as far as its build has them, and what speaks against them. Pure. */
import type { ExpressedKeys, ProgramOptions, Sized } from '../../provider.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import { formatSize } from '../../../schema/words/quantities.ts';
import { ggufModel, type GgufModel } from './gguf-model.ts';
import { roleOf } from './model-role.ts';
import { chooseLayout, companionMemory } from './server-layout.ts';

/** Newest first. All builds of the last two years know `--model-draft`, with other names beside it. */
const DRAFT_MAX = ['--spec-draft-n-max', '--draft-max'] as const;
const DRAFT_MIN = ['--spec-draft-n-min', '--draft-min'] as const;
const TYPES = { model: 'draft-simple', mtp: 'draft-mtp', ngram: 'ngram-mod' } as const;
const NGRAM_MAX = ['--spec-ngram-mod-n-max', '--draft-max'] as const;
const NGRAM_MIN = ['--spec-ngram-mod-n-min', '--draft-min'] as const;
const SPEC_TYPE = '--spec-type';
const EFFORT = '--reasoning-effort';
const TEMPLATE = '--chat-template-kwargs';
const BUDGET = '--reasoning-budget';
/** Builds until 2025 start with every adapter in effect or take the scale as a word of its own. */
const LORA = '--lora-scaled';

/** Words that depend on the build. */
export const KEY_WORDS = [SPEC_TYPE, ...Object.values(TYPES), ...DRAFT_MAX, ...DRAFT_MIN, ...NGRAM_MAX, ...NGRAM_MIN, EFFORT, TEMPLATE];

type Draft = NonNullable<SlotSpec['model']['draft']>;

const has = (options: ProgramOptions | undefined, flag: string): boolean => options === undefined || options.flags[flag] !== undefined;
const typeOf = (draft: Draft): (typeof TYPES)[keyof typeof TYPES] =>
  draft.model !== undefined ? TYPES.model : draft.mtp === true ? TYPES.mtp : TYPES.ngram;

/** `model`: with its companions, whose paths are those that the server sees. */
export function keyArguments({ model: keys }: SlotSpec, model: GgufModel, options: ProgramOptions | undefined): readonly string[] {
  const { draft, adapters, kvCache, reasoning } = keys;
  return [
    ...(draft === undefined ? [] : draftArguments(draft, pathOf(model, draft.model), options)),
    ...adapterArguments(
      adapters.flatMap(({ file }) => pathOf(model, file) ?? []),
      options,
    ),
    ...flag('--cache-type-k', kvCache?.k),
    ...flag('--cache-type-v', kvCache?.v),
    ...(reasoning === undefined ? [] : reasoningArguments(reasoning, options)),
  ];
}

const pathOf = ({ companions = [] }: GgufModel, id: string | undefined): string | undefined =>
  companions.find((each) => each.id === id)?.hostPath;

const flag = (name: string, value: string | number | undefined): readonly string[] => (value === undefined ? [] : [name, String(value)]);

function draftArguments(draft: Draft, path: string | undefined, options: ProgramOptions | undefined): readonly string[] {
  const [most, least] = draft.ngram === true ? [NGRAM_MAX, NGRAM_MIN] : [DRAFT_MAX, DRAFT_MIN];
  const spelled = (names: readonly [string, ...string[]]): string => names.find((name) => has(options, name)) ?? names[0];
  return [
    // Earlier builds draft as soon as they have a draft model.
    ...(has(options, SPEC_TYPE) ? [SPEC_TYPE, typeOf(draft)] : []),
    ...flag('--model-draft', path),
    ...flag(spelled(most), draft.max),
    ...flag(spelled(least), draft.min),
  ];
}

/** A scale of 0 leaves requests without the name of an adapter to the model itself. */
function adapterArguments(paths: readonly string[], options: ProgramOptions | undefined): readonly string[] {
  if (paths.length === 0) return [];
  if (options?.flags[LORA]?.words === 2) return paths.flatMap((path) => [LORA, path, '0']);
  return [LORA, paths.map((path) => `${path}:0`).join(',')];
}

function reasoningArguments(
  { effort, budget }: NonNullable<SlotSpec['model']['reasoning']>,
  options: ProgramOptions | undefined,
): readonly string[] {
  const asked = has(options, EFFORT) ? flag(EFFORT, effort) : [TEMPLATE, JSON.stringify({ reasoning_effort: effort })];
  return [...(effort === undefined ? [] : asked), ...flag(BUDGET, budget)];
}

/** Arguments and variables that say the same as a key. */
const SAME: readonly (readonly [key: string, isSet: (spec: SlotSpec) => boolean, words: string])[] = [
  [
    'model.draft',
    ({ model }) => model.draft !== undefined,
    '-md --model-draft --spec-draft-model -hfd -hfrd --hf-repo-draft --spec-draft-hf --spec-type --draft --draft-n --draft-max --draft-min --draft-n-min --spec-draft-n-max --spec-draft-n-min ' +
      '--spec-ngram-mod-n-max --spec-ngram-mod-n-min LLAMA_ARG_MODEL_DRAFT LLAMA_ARG_SPEC_DRAFT_MODEL LLAMA_ARG_SPEC_DRAFT_HF_REPO LLAMA_ARG_SPEC_TYPE LLAMA_ARG_SPEC_DRAFT_N_MAX LLAMA_ARG_SPEC_DRAFT_N_MIN',
  ],
  ['model.adapters', ({ model }) => model.adapters.length > 0, '--lora --lora-scaled --lora-init-without-apply LLAMA_ARG_LORA'],
  [
    'model.kv_cache',
    ({ model }) => model.kvCache !== undefined,
    '-ctk --cache-type-k -ctv --cache-type-v LLAMA_ARG_CACHE_TYPE_K LLAMA_ARG_CACHE_TYPE_V',
  ],
  ['model.parallel', ({ model }) => model.parallel !== undefined, '-np --parallel -c --ctx-size LLAMA_ARG_N_PARALLEL LLAMA_ARG_CTX_SIZE'],
  [
    'model.reasoning',
    ({ model }) => model.reasoning !== undefined,
    '-rea --reasoning --reasoning-effort --reasoning-budget LLAMA_ARG_REASONING LLAMA_ARG_REASONING_EFFORT LLAMA_ARG_THINK_BUDGET',
  ],
  [
    'model.offload',
    ({ model }) => typeof model.offload !== 'string',
    '-ngl --gpu-layers --n-gpu-layers -cmoe --cpu-moe -ncmoe --n-cpu-moe -fit --fit LLAMA_ARG_N_GPU_LAYERS LLAMA_ARG_CPU_MOE LLAMA_ARG_N_CPU_MOE LLAMA_ARG_FIT',
  ],
  [
    'resources.devices',
    ({ resources }) => resources.devices !== undefined,
    '-dev --device LLAMA_ARG_DEVICE CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GGML_VK_VISIBLE_DEVICES',
  ],
];

function objection(spec: SlotSpec, options: ProgramOptions | undefined): string | undefined {
  const words = new Set([
    ...spec.model.args.map((word) => (word.startsWith('--') ? word.replaceAll('_', '-') : word)),
    ...Object.keys(spec.env),
  ]);
  for (const [key, isSet, same] of SAME) {
    const twice = isSet(spec) ? same.split(' ').find((word) => words.has(word)) : undefined;
    if (twice !== undefined) return `Both "${key}" and "${twice}" are set, which say the same: remove one of them`;
  }
  return options && lacking(spec, options);
}

function lacking({ model: { draft, adapters, reasoning } }: SlotSpec, { flags }: ProgramOptions): string | undefined {
  const needs = (key: string, isMet: boolean, what: string): readonly string[] =>
    isMet ? [] : [`The llama-server of this slot cannot express "${key}", for which it needs ${what}; remove it, or install a newer build`];
  const types = flags[SPEC_TYPE]?.about;
  const takesModel = flags['--model-draft'] !== undefined && (flags[SPEC_TYPE] === undefined || flags[SPEC_TYPE].words === 1);
  return [
    ...(draft === undefined
      ? []
      : draft.model === undefined
        ? needs(`model.draft.${draft.mtp === true ? 'mtp' : 'ngram'}`, types !== undefined, `"${SPEC_TYPE} ${typeOf(draft)}"`)
        : needs('model.draft', takesModel, '"--model-draft"')),
    ...(adapters.length === 0 ? [] : needs('model.adapters', flags[LORA] !== undefined, `"${LORA}"`)),
    ...(reasoning?.effort === undefined
      ? []
      : needs(
          'model.reasoning.effort',
          [EFFORT, TEMPLATE].some((each) => flags[each] !== undefined),
          `"${EFFORT}"`,
        )),
    ...(reasoning?.budget === undefined
      ? []
      : needs(
          'model.reasoning.budget',
          flags[BUDGET] !== undefined && (reasoning.budget === 0 || !flags[BUDGET].about.includes('only one of')),
          `"${BUDGET} ${reasoning.budget}"`,
        )),
  ][0];
}

/** What the model, or a file that is loaded beside it, is not made for. */
export function objectionToKeys(name: string, spec: SlotSpec, model: GgufModel): string | undefined {
  const { draft, adapters, parallel, reasoning } = spec.model;
  const generating = { draft, adapters: adapters[0], parallel, reasoning };
  const [key] = Object.entries(generating).find(([, value]) => value !== undefined) ?? [];
  if (key !== undefined && roleOf(name, spec, model).start !== 'generate')
    return `The key "model.${key}" is for models that generate text, and this slot only embeds or ranks; remove it`;
  if (model.isAdapter === true)
    return `Model "${model.id}" is a LoRA adapter, not a model; list it in "model.adapters" of a slot with its model`;
  if (draft?.mtp === true && model.predictingLayers === 0)
    return `Model "${model.id}" has no head that predicts further tokens; remove "model.draft.mtp", or choose a file of the model with one`;
  for (const { id, isAdapter, architecture } of model.companions ?? []) {
    if (id === draft?.model && isAdapter === true)
      return `Model "${id}" is a LoRA adapter, not a draft model; set another one in "model.draft"`;
    if (!adapters.some(({ file }) => file === id)) continue;
    if (isAdapter === false) return `File "${id}" is no LoRA adapter; convert one with convert_lora_to_gguf.py of llama.cpp`;
    if (architecture !== undefined && model.architecture !== undefined && architecture !== model.architecture)
      return `The adapter "${id}" is for models of the architecture "${architecture}", and "${model.id}" is "${model.architecture}"; choose another one`;
  }
  return undefined;
}

const describe: ExpressedKeys<Sized>['describe'] = (name, spec, facts) => {
  const { draft, adapters, kvCache, parallel, reasoning, offload } = spec.model;
  const model = { ...ggufModel(facts), sizeBytes: facts.sizeBytes };
  const { layout, context } = chooseLayout(name, spec, model);
  const memory = companionMemory(spec, model, layout);
  const sizeOf = (part: keyof typeof memory): string => formatSize(memory[part].hostBytes + memory[part].deviceBytes);
  const from = draft?.model === undefined ? (draft?.mtp === true ? 'the head of the model' : 'earlier text') : `model "${draft.model}"`;
  const most = draft?.max === undefined ? '' : ` up to ${draft.max}`;
  return [
    ...(draft === undefined ? [] : [`draft: ${from} proposes${most} tokens, with ${sizeOf('draft')} of the memory`]),
    ...(adapters.length === 0
      ? []
      : [`adapters: ${adapters.map((each) => `"${name}:${each.name}"`).join(', ')}, with ${sizeOf('adapters')} of the memory`]),
    ...(kvCache === undefined ? [] : [`kv cache: keys ${kvCache.k ?? 'f16'}, values ${kvCache.v ?? 'f16'}`]),
    ...(parallel === undefined || context === undefined
      ? []
      : [`parallel: ${parallel} requests at once, with ${context / parallel} tokens each`]),
    ...(reasoning === undefined
      ? []
      : [`reasoning: effort ${reasoning.effort ?? 'as the model has it'}, at most ${reasoning.budget ?? 'any number of'} tokens`]),
    ...(typeof offload === 'string'
      ? []
      : [`offload: ${offload.gpuLayers ?? 'all'} layers on devices, the experts of ${offload.cpuExperts ?? 0} layers on the CPU`]),
  ];
};

export const ggufKeys: ExpressedKeys<Sized> = {
  objection,
  describe,
  adapterPaths: new Set(['/v1/chat/completions', '/v1/completions', '/v1/responses', '/infill']),
};
