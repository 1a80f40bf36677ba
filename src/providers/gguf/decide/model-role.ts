/**
 * Decides from the metadata of a model how llama-server is started and what it serves. The server itself accepts every request, even if
 * the model then returns uninitialised memory or the process crashes. Pure.
 */
import type { Capability } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { GgufModel } from './gguf-model.ts';

export type Pooling = 'none' | 'mean' | 'cls' | 'last' | 'rank';

/** How the server is started and what it then serves. */
export interface Role {
  readonly start: 'generate' | 'embed' | 'rerank';
  readonly pooling: Pooling;
  readonly capabilities: readonly Capability[];
}

/** The values of `<arch>.pooling_type` in a GGUF file. */
const POOLING: readonly Pooling[] = ['none', 'mean', 'cls', 'last', 'rank'];

/** Architectures of encoders, which make vectors and cannot generate text. */
const ENCODERS =
  /^(bert|modern-bert|nomic-bert|nomic-bert-moe|neo-bert|jina-bert-v2|jina-bert-v3|eurobert|gemma-embedding|llama-embed|t5encoder)$/;

const GENERATES: readonly Capability[] = ['chat', 'completion'];

export function isEncoder(model: GgufModel): boolean {
  return model.architecture !== undefined && ENCODERS.test(model.architecture);
}

/** A reranker needs a classifier head: without one, its scores are uninitialised memory. */
function isReranker(model: GgufModel): boolean {
  return model.poolingType === 4 || model.hasClassifier === true;
}

export function roleOf(slot: string, spec: SlotSpec, model: GgufModel): Role {
  const args = parseArguments(spec.model.args);
  const own = model.poolingType === undefined ? undefined : POOLING[model.poolingType];
  if (isReranker(model)) {
    return { start: 'rerank', pooling: 'rank', capabilities: isEncoder(model) ? ['rerank'] : [...GENERATES, 'rerank'] };
  }
  const pooling = args.pooling ?? (own === undefined || own === 'none' || own === 'rank' ? 'mean' : own);
  if (isEncoder(model) || (own !== undefined && own !== 'none') || slot === 'embed') {
    return { start: 'embed', pooling, capabilities: pooled(pooling) };
  }
  if (!args.embeddings) return { start: 'generate', pooling, capabilities: GENERATES };
  // A causal model that embeds without pooling crashes with the first chat request.
  const capabilities = pooling === 'none' || pooling === 'rank' ? [] : [...GENERATES, ...pooled(pooling)];
  return { start: 'embed', pooling, capabilities };
}

function pooled(pooling: Pooling): readonly Capability[] {
  return pooling === 'none' || pooling === 'rank' ? [] : ['embedding'];
}

/** The slot's own arguments come last on the command line and take precedence, so they count here too. */
function parseArguments(args: readonly string[]): { readonly embeddings: boolean; readonly pooling: Pooling | undefined } {
  const flag = args.lastIndexOf('--pooling');
  const joined = args.findLast((arg) => arg.startsWith('--pooling='))?.slice('--pooling='.length);
  const value = flag === -1 ? joined : args[flag + 1];
  return {
    embeddings: args.some((arg) => arg === '--embedding' || arg === '--embeddings'),
    pooling: POOLING.find((pooling) => pooling === value),
  };
}
