/**
 * What llama-server has to be for a model: it serves whatever it is asked, even where the answer is uninitialised memory or the end
 * of the process, so that the pairing of model and start is decided here, from the file's metadata. Pure.
 */
import type { ModelFacts } from '../../provider.ts';
import type { Capability } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';

export type Pooling = 'none' | 'mean' | 'cls' | 'last' | 'rank';

/** How the server is started. `generate` may embed too, when the slot's own arguments ask for it. */
export interface Role {
  readonly start: 'generate' | 'embed' | 'rerank';
  readonly pooling: Pooling;
  readonly capabilities: readonly Capability[];
}

/** `<arch>.pooling_type` of a GGUF file. */
const POOLING: readonly Pooling[] = ['none', 'mean', 'cls', 'last', 'rank'];

/** Families of encoders: they make vectors and cannot write text. */
const ENCODERS =
  /^(bert|modern-bert|nomic-bert|nomic-bert-moe|neo-bert|jina-bert-v2|jina-bert-v3|eurobert|gemma-embedding|llama-embed|t5encoder)$/;

const GENERATES: readonly Capability[] = ['chat', 'completion'];

export function isEncoder(model: ModelFacts): boolean {
  return model.architecture !== undefined && ENCODERS.test(model.architecture);
}

/** A reranker needs its head: without one the scores are whatever lay in memory. */
function isReranker(model: ModelFacts): boolean {
  return model.poolingType === 4 || model.hasClassifier === true;
}

export function roleOf(slot: string, spec: SlotSpec, model: ModelFacts): Role {
  const asked = askedByArguments(spec.model.args);
  const own = model.poolingType === undefined ? undefined : POOLING[model.poolingType];
  if (isReranker(model)) {
    return { start: 'rerank', pooling: 'rank', capabilities: isEncoder(model) ? ['rerank'] : [...GENERATES, 'rerank'] };
  }
  const pooling = asked.pooling ?? (own === undefined || own === 'none' || own === 'rank' ? 'mean' : own);
  if (isEncoder(model) || (own !== undefined && own !== 'none') || slot === 'embed') {
    return { start: 'embed', pooling, capabilities: pooled(pooling) };
  }
  if (!asked.embeddings) return { start: 'generate', pooling, capabilities: GENERATES };
  // a causal model that embeds without pooling ends the process at the first chat request
  const capabilities = pooling === 'none' || pooling === 'rank' ? [] : [...GENERATES, ...pooled(pooling)];
  return { start: 'embed', pooling, capabilities };
}

function pooled(pooling: Pooling): readonly Capability[] {
  return pooling === 'none' || pooling === 'rank' ? [] : ['embedding'];
}

/** The slot's own arguments stand last and win, so that they count here too. */
function askedByArguments(args: readonly string[]): { readonly embeddings: boolean; readonly pooling: Pooling | undefined } {
  const flag = args.lastIndexOf('--pooling');
  const joined = args.findLast((arg) => arg.startsWith('--pooling='))?.slice('--pooling='.length);
  const value = flag === -1 ? joined : args[flag + 1];
  return {
    embeddings: args.some((arg) => arg === '--embedding' || arg === '--embeddings'),
    pooling: POOLING.find((pooling) => pooling === value),
  };
}
