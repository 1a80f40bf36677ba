/** Options of llama-server in the arguments of a slot, or else in its environment. Pure. */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

export const POOLINGS = ['none', 'mean', 'cls', 'last', 'rank'] as const;
export type Pooling = (typeof POOLINGS)[number];
export type ServerOptions = ReturnType<typeof serverOptions>;

/** Absent: not set, or set to a value that llama-server refuses. */
export function serverOptions({ model: { args }, env }: Pick<SlotSpec, 'model' | 'env'>) {
  const text = (flags: readonly string[], variable: string): string | undefined => {
    const at = args.findLastIndex((argument) => flags.includes(argument));
    return at === -1 ? env[variable] : args[at + 1];
  };
  const number = (flags: readonly string[], variable: string): number | undefined => {
    const value = text(flags, variable);
    return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
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

const isTrue = (value: string | undefined): boolean | undefined =>
  value === undefined ? undefined : ['true', '1', 'on', 'enabled'].includes(value);
