/**
 * Estimates the memory that llama-server needs before it is started. The parts are those of llama.cpp: the weights as stored in the
 * file; the key-value cache (`llama_kv_cache`: keys and values of each layer, token and KV head as 16-bit floats); the compute buffer of
 * one batch; and the prompt cache of llama-server. The latter is limited here, because its default of 8 GiB is too much to reserve. Pure.
 */
import type { MemoryDemand } from '../../provider.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { GgufModel } from './gguf-model.ts';
import { isEncoder, roleOf } from './model-role.ts';
import { usesGpu } from './uses-gpu.ts';

const MIB = 2 ** 20;

/** Memory of the process without a model. Measured: 40 to 60 MiB. */
const BASE_BYTES = 64 * MIB;
/** The default physical batch of llama-server for text, in tokens. */
const BATCH = 512;
/** Rows of 32-bit floats per token that the compute graph of a batch holds at once, in multiples of the embedding length. */
const WIDE_ROWS = 16;
const BYTES_PER_FLOAT = 4;
const BYTES_PER_KV = 2;

/** For files that do not contain the trained context. */
const UNKNOWN_CONTEXT = 4096;
/** The longest input of OpenAI's embeddings. The memory of an embedding batch grows with the square of the context. */
const MAX_DEFAULT_EMBEDDING_CONTEXT = 8192;

/** Limits of a prompt cache that holds about one conversation besides the active one. */
const MIN_CACHE_RAM_MIB = 64;
const MAX_CACHE_RAM_MIB = 2048;

/** Returns the context of the server in tokens. */
export function contextOf(slot: string, spec: SlotSpec, model: GgufModel): number {
  const { start } = roleOf(slot, spec, model);
  const trained = model.trainedContext ?? UNKNOWN_CONTEXT;
  if (start === 'generate') return spec.model.context ?? trained;
  // An encoder has no positions beyond its trained context.
  if (isEncoder(model)) return Math.min(spec.model.context ?? MAX_DEFAULT_EMBEDDING_CONTEXT, trained);
  return spec.model.context ?? Math.min(trained, MAX_DEFAULT_EMBEDDING_CONTEXT);
}

function kvCacheBytes(slot: string, spec: SlotSpec, model: GgufModel): number {
  if (isEncoder(model) || model.blockCount === undefined || model.embeddingLength === undefined) return 0;
  const heads = model.headCount ?? 1;
  const headLength = model.embeddingLength / heads;
  const perToken = (model.headCountKv ?? heads) * ((model.keyLength ?? headLength) + (model.valueLength ?? headLength));
  return contextOf(slot, spec, model) * model.blockCount * perToken * BYTES_PER_KV;
}

/** Returns the value of `--cache-ram` in MiB. Servers that only embed or rank do not cache prompts. */
export function cacheRamMiB(slot: string, spec: SlotSpec, model: GgufModel): number {
  if (!roleOf(slot, spec, model).capabilities.includes('chat')) return 0;
  return Math.min(MAX_CACHE_RAM_MIB, Math.max(MIN_CACHE_RAM_MIB, Math.ceil(kvCacheBytes(slot, spec, model) / MIB)));
}

/** On a GPU, all layers, their cache and the buffers of a batch are in its memory; the process and its cache of prompts stay in that of the host. */
export function serverMemory(slot: string, spec: SlotSpec, model: GgufModel): MemoryDemand {
  const { start } = roleOf(slot, spec, model);
  const context = contextOf(slot, spec, model);
  const batch = start === 'generate' ? Math.min(BATCH, context) : context;
  const rows = batch * (model.embeddingLength ?? 4096) * WIDE_ROWS * BYTES_PER_FLOAT;
  const processBytes = BASE_BYTES + cacheRamMiB(slot, spec, model) * MIB;
  const computedBytes = Math.ceil(model.sizeBytes + kvCacheBytes(slot, spec, model) + rows);
  if (!usesGpu(spec)) return { hostBytes: processBytes + computedBytes, deviceBytes: 0 };
  return { hostBytes: processBytes, deviceBytes: computedBytes };
}
