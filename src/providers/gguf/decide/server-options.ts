/**
 * Reads the options of llama-server that decide about its memory and its role from the arguments and the environment of a slot, where arguments take precedence. They
 * come last on the command line and take precedence over what the provider sets. Pure.
 */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

export type Pooling = (typeof POOLINGS)[number];

/** What a slot sets by itself. Absent: not set, or set to something that llama-server refuses. */
export interface ServerOptions {
  /** Tokens; 0 stands for the trained context. */
  readonly context: number | undefined;
  /** Sequences at the same time. */
  readonly parallel: number | undefined;
  /** Whether all sequences share one context. */
  readonly unified: boolean | undefined;
  /** The physical batch in tokens. */
  readonly physicalBatch: number | undefined;
  readonly cacheRamMiB: number | undefined;
  readonly checkpoints: number | undefined;
  /** The least number of tokens between copies of windows and states; 0 for no least distance. */
  readonly checkpointSpacing: number | undefined;
  /** Names of the types of the cache, such as `q8_0`. */
  readonly keyType: string | undefined;
  readonly valueType: string | undefined;
  readonly flashAttention: boolean | undefined;
  /** Whether layers with a window keep the whole context all the same. */
  readonly fullWindows: boolean;
  /** Whether the cache stays in the memory of the host. */
  readonly cacheOnHost: boolean;
  /** Whether the experts stay in the memory of the host. */
  readonly expertsOnHost: boolean;
  readonly embeddings: boolean;
  readonly rerank: boolean;
  readonly pooling: Pooling | undefined;
}

/** In the order of the values of `<arch>.pooling_type` in a GGUF file. */
export const POOLINGS = ['none', 'mean', 'cls', 'last', 'rank'] as const;

export function serverOptions({ model: { args }, env }: Pick<SlotSpec, 'model' | 'env'>): ServerOptions {
  const text = (flags: readonly string[], variable: string): string | undefined => {
    const at = args.findLastIndex((argument) => flags.includes(argument));
    return at === -1 ? env[variable] : args[at + 1];
  };
  const number = (flags: readonly string[], variable: string): number | undefined => {
    const value = text(flags, variable);
    return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
  };
  /** Undefined if neither is set; else what was set last. */
  const choice = (on: readonly string[], off: readonly string[], variable: string): boolean | undefined => {
    const last = args.findLast((argument) => on.includes(argument) || off.includes(argument));
    if (last !== undefined) return on.includes(last);
    return isTrue(env[variable]);
  };
  const flash = text(['-fa', '--flash-attn'], 'LLAMA_ARG_FLASH_ATTN');
  const pooling = text(['--pooling'], 'LLAMA_ARG_POOLING');
  return {
    context: number(['-c', '--ctx-size'], 'LLAMA_ARG_CTX_SIZE'),
    parallel: number(['-np', '--parallel'], 'LLAMA_ARG_N_PARALLEL'),
    unified: choice(['-kvu', '--kv-unified'], ['-no-kvu', '--no-kv-unified'], 'LLAMA_ARG_KV_UNIFIED'),
    physicalBatch: number(['-ub', '--ubatch-size'], 'LLAMA_ARG_UBATCH'),
    cacheRamMiB: number(['-cram', '--cache-ram'], 'LLAMA_ARG_CACHE_RAM'),
    checkpoints: number(['-ctxcp', '--ctx-checkpoints', '--swa-checkpoints'], 'LLAMA_ARG_CTX_CHECKPOINTS'),
    checkpointSpacing: number(['-cms', '--checkpoint-min-step'], 'LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT'),
    keyType: text(['-ctk', '--cache-type-k'], 'LLAMA_ARG_CACHE_TYPE_K'),
    valueType: text(['-ctv', '--cache-type-v'], 'LLAMA_ARG_CACHE_TYPE_V'),
    flashAttention: flash === undefined || flash === 'auto' ? undefined : flash === 'on' || isTrue(flash),
    fullWindows: choice(['--swa-full'], [], 'LLAMA_ARG_SWA_FULL') ?? false,
    cacheOnHost: choice(['-nkvo', '--no-kv-offload'], ['-kvo', '--kv-offload'], 'LLAMA_ARG_NO_KV_OFFLOAD') ?? false,
    expertsOnHost: choice(['-cmoe', '--cpu-moe'], [], 'LLAMA_ARG_CPU_MOE') ?? false,
    embeddings: choice(['--embedding', '--embeddings'], [], 'LLAMA_ARG_EMBEDDINGS') ?? false,
    rerank: choice(['--rerank', '--reranking'], [], 'LLAMA_ARG_RERANKING') ?? false,
    pooling: POOLINGS.find((each) => each === pooling),
  };
}

/** As llama-server reads its environment. */
function isTrue(value: string | undefined): boolean | undefined {
  return value === undefined ? undefined : ['true', '1', 'on', 'enabled'].includes(value);
}
