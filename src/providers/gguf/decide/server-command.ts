/** The argument vector and environment of llama-server for a slot. Pure. */
import type { SlotContext } from '../../provider.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import { isEncoder, roleOf } from './model-role.ts';
import { cacheRamMiB, contextOf } from './server-memory.ts';

export const PROGRAM = 'llama-server';

/** Below this the work is too small to share out: threads that wait for each other made such a model a hundred times slower. */
const ONE_THREAD_BYTES = 32 * 2 ** 20;

/** Seconds between the pings of a stream; a server that is asked to end notices it at the next one. */
const PING_SECONDS = '2';

export function serverCommand(slot: SlotContext): readonly [string, ...string[]] {
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
    aliases(spec),
    ...contextArguments(slot),
    ...deviceArguments(spec),
    ...(model.sizeBytes < ONE_THREAD_BYTES ? ['--threads', '1'] : []),
    ...roleArguments(slot),
    // without these it shows a page of its own, everybody's prompts, and may fetch models by itself
    '--no-ui',
    '--no-slots',
    '--offline',
    ...spec.model.args,
  ];
}

/**
 * What older and newer builds need not both know goes into the environment, where an unknown name is no error. The slot's own
 * `[env]` lies over it.
 */
export function serverEnvironment(slot: SlotContext): Readonly<Record<string, string>> {
  const { spec, model } = slot;
  return {
    // by default any web page may read answers from a loopback port
    LLAMA_ARG_CORS_ORIGINS: 'localhost',
    LLAMA_ARG_SSE_PING_INTERVAL: PING_SECONDS,
    LLAMA_ARG_CACHE_RAM: String(cacheRamMiB(slot.name, spec, model)),
    ...visibleDevices(spec),
  };
}

/** Device nodes, or CDI names, that a container needs. */
export function devicesOf(backend: SlotSpec['backend']): readonly string[] {
  switch (backend) {
    case 'vulkan':
      return ['/dev/dri'];
    case 'rocm':
      return ['/dev/kfd', '/dev/dri'];
    case 'cuda':
      return ['nvidia.com/gpu=all'];
    case 'cpu':
    case 'npu':
      return [];
    default:
      return backend satisfies never;
  }
}

/** The first name is what answers carry. A comma would split one. */
function aliases(spec: SlotSpec): string {
  return [spec.model.default, ...spec.model.aliases.filter((alias) => !alias.includes(','))].join(',');
}

/** An embedding server must take its longest input as one batch, so that its context is always said. */
function contextArguments(slot: SlotContext): readonly string[] {
  const { start } = roleOf(slot.name, slot.spec, slot.model);
  if (start === 'generate') return slot.spec.model.context === undefined ? [] : ['--ctx-size', String(slot.spec.model.context)];
  const context = String(contextOf(slot.name, slot.spec, slot.model));
  return ['--ctx-size', context, '--batch-size', context, '--ubatch-size', context];
}

function deviceArguments(spec: SlotSpec): readonly string[] {
  return usesGpu(spec) ? ['--n-gpu-layers', 'all'] : ['--n-gpu-layers', '0'];
}

function roleArguments(slot: SlotContext): readonly string[] {
  const role = roleOf(slot.name, slot.spec, slot.model);
  if (role.start === 'rerank') return ['--rerank'];
  const projector = slot.projectorPath === undefined || isEncoder(slot.model) ? [] : ['--mmproj', slot.projectorPath];
  return role.start === 'embed' ? ['--embeddings', '--pooling', role.pooling] : projector;
}

/** With a number of GPUs named, the first ones; without one, all that the server finds. */
function visibleDevices(spec: SlotSpec): Readonly<Record<string, string>> {
  const { gpus } = spec.resources;
  if (gpus === undefined || !usesGpu(spec)) return {};
  const list = Array.from({ length: gpus }, (_, index) => index).join(',');
  switch (spec.backend) {
    case 'vulkan':
      return { GGML_VK_VISIBLE_DEVICES: list };
    case 'rocm':
      return { ROCR_VISIBLE_DEVICES: list };
    case 'cuda':
      return { CUDA_VISIBLE_DEVICES: list };
    case 'cpu':
    case 'npu':
      return {};
    default:
      return spec.backend satisfies never;
  }
}

function usesGpu(spec: SlotSpec): boolean {
  return spec.backend !== 'cpu' && spec.resources.gpus !== 0;
}
