/**
 * How much memory llama-server will take, before it runs. The terms are those of llama.cpp: the weights as they lie in the file, the
 * key-value cache (`llama_kv_cache`: for each layer and token the keys and values of its KV heads, as 16-bit floats), the compute
 * buffer of one batch, and a prompt cache that llama-server keeps beside it. The last one is bounded here: its own default is 8 GiB,
 * which no admission could count on. Pure.
 */
import type { ModelFacts } from '../../provider.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import { isEncoder, roleOf } from './model-role.ts';

const MIB = 2 ** 20;

/** What the process needs without a model: program, libraries, threads, HTTP. Measured: 40 to 60 MiB. */
const BASE_BYTES = 64 * MIB;
/** llama-server's own physical batch for text. */
const BATCH = 512;
/** Wide rows of 32-bit floats that the graph of a batch holds at once, in multiples of the embedding's length. */
const WIDE_ROWS = 16;
const BYTES_PER_FLOAT = 4;
const BYTES_PER_KV = 2;

/** Where a file does not say what it was trained with. */
const UNKNOWN_CONTEXT = 4096;
/** The longest input of OpenAI's embeddings; an embedding batch takes memory by the square of it. */
const MAX_UNASKED_EMBEDDING_CONTEXT = 8192;

/** Enough to keep about one more conversation than is running. */
const MIN_CACHE_RAM_MIB = 64;
const MAX_CACHE_RAM_MIB = 2048;

/** Tokens of context that the server will have. */
export function contextOf(slot: string, spec: SlotSpec, model: ModelFacts): number {
  const { start } = roleOf(slot, spec, model);
  const trained = model.trainedContext ?? UNKNOWN_CONTEXT;
  if (start === 'generate') return spec.model.context ?? trained;
  // an encoder has no positions beyond those it was trained with
  if (isEncoder(model)) return Math.min(spec.model.context ?? MAX_UNASKED_EMBEDDING_CONTEXT, trained);
  return spec.model.context ?? Math.min(trained, MAX_UNASKED_EMBEDDING_CONTEXT);
}

function kvCacheBytes(slot: string, spec: SlotSpec, model: ModelFacts): number {
  if (isEncoder(model) || model.blockCount === undefined || model.embeddingLength === undefined) return 0;
  const heads = model.headCount ?? 1;
  const headLength = model.embeddingLength / heads;
  const perToken = (model.headCountKv ?? heads) * ((model.keyLength ?? headLength) + (model.valueLength ?? headLength));
  return contextOf(slot, spec, model) * model.blockCount * perToken * BYTES_PER_KV;
}

/** What is passed as `--cache-ram`, in MiB. Servers that only embed or rank keep no prompts. */
export function cacheRamMiB(slot: string, spec: SlotSpec, model: ModelFacts): number {
  if (!roleOf(slot, spec, model).capabilities.includes('chat')) return 0;
  return Math.min(MAX_CACHE_RAM_MIB, Math.max(MIN_CACHE_RAM_MIB, Math.ceil(kvCacheBytes(slot, spec, model) / MIB)));
}

export function serverMemoryBytes(slot: string, spec: SlotSpec, model: ModelFacts): number {
  const { start } = roleOf(slot, spec, model);
  const context = contextOf(slot, spec, model);
  const batch = start === 'generate' ? Math.min(BATCH, context) : context;
  const rows = batch * (model.embeddingLength ?? 4096) * WIDE_ROWS * BYTES_PER_FLOAT;
  return Math.ceil(BASE_BYTES + model.sizeBytes + kvCacheBytes(slot, spec, model) + rows + cacheRamMiB(slot, spec, model) * MIB);
}
