/** Command line, environment and devices of llama-server for a slot. Pure. */
import { dirname, join } from 'node:path';
import { serverAliases } from '../../decide/judge-status.ts';
import type { SlotContext } from '../../provider.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { GgufModel } from './gguf-model.ts';
import { keyArguments } from './key-arguments.ts';
import { allLayers, closingArguments } from './llama-options.ts';
import { isEncoder, roleOf } from './model-role.ts';
import { chooseLayout, GPU_LAYERS, usesGpu } from './server-layout.ts';
import type { ServerLayout } from './gguf-memory.ts';

export const PROGRAM = 'llama-server';

export type GgufSlot = Omit<SlotContext, 'model'> & { readonly model: GgufModel };

/** Smaller models use one thread: synchronising several made such a model a hundred times slower. */
const ONE_THREAD_BYTES = 32 * 2 ** 20;

/** Seconds between pings of a stream. A stopping server ends streams only at the next ping. */
const PING_SECONDS = '2';

const VISIBLE_DEVICES: Readonly<Partial<Record<Backend, string>>> = {
  vulkan: 'GGML_VK_VISIBLE_DEVICES',
  rocm: 'ROCR_VISIBLE_DEVICES',
  cuda: 'CUDA_VISIBLE_DEVICES',
};

export function serverCommand(slot: GgufSlot): readonly [string, ...string[]] {
  const { spec, model } = slot;
  return [
    PROGRAM,
    '--host',
    slot.listen.host,
    '--port',
    String(slot.listen.port),
    '--model',
    slot.modelPath,
    '--alias',
    serverAliases(spec),
    ...contextArguments(slot),
    ...deviceArguments(slot),
    ...((model.sizeBytes ?? Infinity) < ONE_THREAD_BYTES ? ['--threads', '1'] : []),
    ...roleArguments(slot),
    ...keyArguments(spec, model, slot.options),
    ...closingArguments(slot.options),
    ...spec.model.args,
  ];
}

/** Not all builds know these: the environment ignores unknown names. The `[env]` of the slot wins. */
export function serverEnvironment(slot: GgufSlot): Readonly<Record<string, string>> {
  const { spec, model } = slot;
  const { layout } = chooseLayout(slot.name, spec, model);
  return {
    // Otherwise any web page may read responses from a loopback port.
    LLAMA_ARG_CORS_ORIGINS: 'localhost',
    LLAMA_ARG_SSE_PING_INTERVAL: PING_SECONDS,
    LLAMA_ARG_CACHE_RAM: String(layout.cacheRamMiB),
    // Only servers with windows or states make any.
    ...(layout.checkpoints === 0 ? {} : checkpointLimits(layout)),
    // Without layers on a GPU, a build for one would still use it for long prompts.
    ...(usesGpu(spec) ? visibleDevices(spec) : { LLAMA_ARG_DEVICE: 'none' }),
  };
}

const checkpointLimits = ({ checkpoints, checkpointSpacing }: ServerLayout): Readonly<Record<string, string>> => ({
  LLAMA_ARG_CTX_CHECKPOINTS: String(checkpoints),
  LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT: String(checkpointSpacing),
});

/** Embedding servers process their longest input as one batch. */
function contextArguments(slot: GgufSlot): readonly string[] {
  const { start } = roleOf(slot.name, slot.spec, slot.model);
  const { context, parallel } = chooseLayout(slot.name, slot.spec, slot.model);
  const size = context === undefined ? [] : ['--ctx-size', String(context)];
  if (start === 'generate') return parallel === undefined ? size : [...size, '--parallel', String(parallel)];
  return [...size, '--batch-size', String(context), '--ubatch-size', String(context)];
}

function deviceArguments({ spec, env = {}, options }: GgufSlot): readonly string[] {
  if (!usesGpu(spec)) return ['--n-gpu-layers', '0'];
  const { gpuLayers, cpuExperts } = typeof spec.model.offload === 'string' ? {} : spec.model.offload;
  return [
    '--n-gpu-layers',
    env[GPU_LAYERS] ?? gpuLayers?.toString() ?? allLayers(options),
    ...(cpuExperts === undefined ? [] : ['--n-cpu-moe', String(cpuExperts)]),
  ];
}

function roleArguments(slot: GgufSlot): readonly string[] {
  const role = roleOf(slot.name, slot.spec, slot.model);
  if (role.start === 'rerank') return ['--rerank'];
  if (role.start === 'embed') return ['--embeddings', '--pooling', role.pooling];
  const { projector } = slot.model;
  return projector === undefined || isEncoder(slot.model) ? [] : ['--mmproj', join(dirname(slot.modelPath), projector)];
}

function visibleDevices(spec: SlotSpec): Readonly<Record<string, string>> {
  const { gpus } = spec.resources;
  const variable = VISIBLE_DEVICES[spec.backend];
  if (gpus === undefined || variable === undefined) return {};
  return { [variable]: Array.from({ length: gpus }, (_, index) => index).join(',') };
}
