/** Role of llama-server, which accepts any request, even if the model then returns garbage or crashes. Pure. */
import type { Capability, ChatAbilities } from '../../../schema/slot/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { GgufModel } from './gguf-model.ts';

export interface Role {
  readonly start: 'generate' | 'embed' | 'rerank';
  readonly pooling: Pooling;
  readonly capabilities: readonly Capability[];
}

/** Architectures that make vectors and cannot generate text. */
const ENCODERS =
  /^(bert|modern-bert|nomic-bert|nomic-bert-moe|neo-bert|jina-bert-v2|jina-bert-v3|eurobert|gemma-embedding|llama-embed|t5encoder)$/;

const GENERATES: readonly Capability[] = ['chat', 'completion'];

export const isEncoder = (model: GgufModel): boolean => model.architecture !== undefined && ENCODERS.test(model.architecture);
/** Without a classifier head, scores are uninitialised memory. The header counts only where tensors are unknown. */
const isReranker = ({ poolingType, hasClassifier }: GgufModel): boolean => hasClassifier ?? POOLINGS[poolingType ?? 0] === 'rank';

export function roleOf(slot: string, spec: SlotSpec, model: GgufModel): Role {
  const options = serverOptions(spec);
  const own = model.poolingType === undefined ? undefined : POOLINGS[model.poolingType];
  if (isReranker(model))
    return { start: 'rerank', pooling: 'rank', capabilities: isEncoder(model) ? ['rerank'] : [...GENERATES, 'rerank'] };
  const pooling = options.pooling ?? (own === undefined || own === 'none' || own === 'rank' ? 'mean' : own);
  if (isEncoder(model) || (own !== undefined && own !== 'none') || slot === 'embed')
    return { start: 'embed', pooling, capabilities: pooled(pooling) };
  if (!options.embeddings) return { start: 'generate', pooling, capabilities: GENERATES };
  // A causal model that embeds without pooling crashes with the first chat request.
  const capabilities = pooling === 'none' || pooling === 'rank' ? [] : [...GENERATES, ...pooled(pooling)];
  return { start: 'embed', pooling, capabilities };
}

const NAMES_PROJECTOR = /^(?:-mmu?|--mmproj(?:-url)?|LLAMA_ARG_MMPROJ(?:_URL)?)$/;

/** llama-server constrains the output of any model. A projector that arguments or environment name was not read. */
export function chatAbilities(slot: string, spec: SlotSpec, model: GgufModel): ChatAbilities {
  const { architecture, chatTemplate, tools, thinking, sees = true, hears } = model;
  const isNamed = [...spec.model.args, ...Object.keys(spec.env)].some((word) => NAMES_PROJECTOR.test(word));
  const projector = roleOf(slot, spec, model).start === 'generate' ? model.projector : undefined;
  const media = projector === undefined ? { vision: false, audio: false } : { vision: sees, audio: hears };
  const isKnown = !isNamed && (projector !== undefined || architecture !== undefined);
  return { structured_output: true, ...(chatTemplate === undefined ? {} : { tools, thinking }), ...(isKnown ? media : {}) };
}

const pooled = (pooling: Pooling): readonly Capability[] => (pooling === 'none' || pooling === 'rank' ? [] : ['embedding']);

export function objectionTo(spec: Pick<SlotSpec, 'model' | 'env'>, model: GgufModel): string | undefined {
  const { rerank, embeddings, pooling } = serverOptions(spec);
  const ranks = isReranker(model);
  const noHead = `Model "${model.id}" has no classifier head, so its scores would mean nothing`;
  if (rerank && !ranks) return `${noHead}; remove "--rerank" from the arguments of the slot, or set a reranker model`;
  if (pooling === 'rank' && !ranks) return `${noHead}; set "--pooling" to "mean", "cls" or "last", or set a reranker model`;
  if (POOLINGS[model.poolingType ?? 0] === 'rank' && !ranks)
    return `${noHead}: its header says that it ranks, but the tensors for it were not converted; get another file of the reranker`;
  if (pooling !== 'none' || ranks || !(embeddings || isEncoder(model))) return undefined;
  const what = isEncoder(model)
    ? 'there would be no embedding of a text, only one for each token'
    : 'the first chat request would end the server';
  return `With "--pooling none", ${what}; set "--pooling" to "mean", "cls" or "last" in the arguments of the slot`;
}

export const POOLINGS = ['none', 'mean', 'cls', 'last', 'rank'] as const;
export type Pooling = (typeof POOLINGS)[number];
export type ServerOptions = ReturnType<typeof serverOptions>;

const DIVIDES_WEIGHTS: ReadonlySet<string> = new Set(
  (
    '-ngl --gpu-layers --n-gpu-layers -cmoe --cpu-moe -ncmoe --n-cpu-moe -ncffn --n-cpu-ffn -ot --override-tensor -dev --device -ts --tensor-split -fit --fit ' +
    'LLAMA_ARG_N_GPU_LAYERS LLAMA_ARG_CPU_MOE LLAMA_ARG_N_CPU_MOE LLAMA_ARG_N_CPU_FFN LLAMA_ARG_OVERRIDE_TENSOR LLAMA_ARG_DEVICE LLAMA_ARG_TENSOR_SPLIT LLAMA_ARG_FIT'
  ).split(' '),
);

/**
 * Options of llama-server in the arguments of a slot, or else in its environment. Absent: not set, or set to a value
 * that llama-server refuses.
 */
export function serverOptions({ model: { args, kvCache, offload }, env }: Pick<SlotSpec, 'model' | 'env'>) {
  const divided = typeof offload === 'string' ? {} : offload;
  const text = (flags: readonly string[], variable: string): string | undefined => {
    const at = args.findLastIndex((argument) => flags.includes(argument));
    return at === -1 ? env[variable] : args[at + 1];
  };
  const number = (flags: readonly string[], variable: string): number | undefined => {
    const value = text(flags, variable);
    return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
  };
  const all = (flags: readonly string[], variable: string): readonly string[] => {
    const given = args.flatMap((argument, index) => (flags.includes(argument) ? (args[index + 1] ?? []) : []));
    return given.length > 0 ? given : env[variable] === undefined ? [] : [env[variable]];
  };
  const choice = (on: readonly string[], off: readonly string[], variable: string): boolean | undefined => {
    const last = args.findLast((argument) => on.includes(argument) || off.includes(argument));
    if (last !== undefined) return on.includes(last);
    return isTrue(env[variable]);
  };
  const flash = text(['-fa', '--flash-attn'], 'LLAMA_ARG_FLASH_ATTN');
  const pooling = text(['--pooling'], 'LLAMA_ARG_POOLING');
  return {
    /** Tokens; 0 stands for the trained context. */
    context: number(['-c', '--ctx-size'], 'LLAMA_ARG_CTX_SIZE'),
    parallel: number(['-np', '--parallel'], 'LLAMA_ARG_N_PARALLEL'),
    unified: choice(['-kvu', '--kv-unified'], ['-no-kvu', '--no-kv-unified'], 'LLAMA_ARG_KV_UNIFIED'),
    physicalBatch: number(['-ub', '--ubatch-size'], 'LLAMA_ARG_UBATCH'),
    cacheRamMiB: number(['-cram', '--cache-ram'], 'LLAMA_ARG_CACHE_RAM'),
    checkpoints: number(['-ctxcp', '--ctx-checkpoints', '--swa-checkpoints'], 'LLAMA_ARG_CTX_CHECKPOINTS'),
    checkpointSpacing: number(['-cms', '--checkpoint-min-step'], 'LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT'),
    keyType: text(['-ctk', '--cache-type-k'], 'LLAMA_ARG_CACHE_TYPE_K') ?? kvCache?.k,
    valueType: text(['-ctv', '--cache-type-v'], 'LLAMA_ARG_CACHE_TYPE_V') ?? kvCache?.v,
    flashAttention: flash === undefined || flash === 'auto' ? undefined : flash === 'on' || isTrue(flash),
    fullWindows: choice(['--swa-full'], [], 'LLAMA_ARG_SWA_FULL') ?? false,
    cacheOnHost: choice(['-nkvo', '--no-kv-offload'], ['-kvo', '--kv-offload'], 'LLAMA_ARG_NO_KV_OFFLOAD') ?? false,
    /** Undefined: all. */
    gpuLayers: number(['-ngl', '--gpu-layers', '--n-gpu-layers'], 'LLAMA_ARG_N_GPU_LAYERS') ?? divided.gpuLayers,
    expertLayersOnHost:
      (choice(['-cmoe', '--cpu-moe'], [], 'LLAMA_ARG_CPU_MOE') ?? false)
        ? Infinity
        : (number(['-ncmoe', '--n-cpu-moe'], 'LLAMA_ARG_N_CPU_MOE') ?? divided.cpuExperts ?? 0),
    overrides: all(['-ot', '--override-tensor'], 'LLAMA_ARG_OVERRIDE_TENSOR').flatMap((list) => list.split(',')),
    /** The user has decided what devices compute. */
    dividesWeights: [...args, ...Object.keys(env)].some((word) => DIVIDES_WEIGHTS.has(word)),
    embeddings: choice(['--embedding', '--embeddings'], [], 'LLAMA_ARG_EMBEDDINGS') ?? false,
    rerank: choice(['--rerank', '--reranking'], [], 'LLAMA_ARG_RERANKING') ?? false,
    pooling: POOLINGS.find((each) => each === pooling),
  };
}

const isTrue = (value: string | undefined): boolean | undefined =>
  value === undefined ? undefined : ['true', '1', 'on', 'enabled'].includes(value);
