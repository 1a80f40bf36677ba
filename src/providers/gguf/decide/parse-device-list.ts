/** Reads what `llama-server --list-devices` prints: `  CUDA0: NVIDIA RTX A2000 (12044 MiB, 11893 MiB free)`, one device a line. Pure. */
import type { Backend } from '../../../schema/slot/provider-kinds.ts';

/** By the name that llama.cpp gives to the devices of a backend, followed by a number. https://github.com/ggml-org/llama.cpp/tree/master/ggml/src */
const BACKEND_OF_DEVICE: Readonly<Record<string, Backend>> = { CUDA: 'cuda', ROCm: 'rocm', Vulkan: 'vulkan' };

/** The line that precedes the devices. Without it, the program does not know the option. */
const HEAD = /^available devices:/im;

/** Undefined if this is not a list of devices. */
export function parseDeviceList(output: string): readonly Backend[] | undefined {
  if (!HEAD.test(output)) return undefined;
  const names = [...output.matchAll(/^\s+([A-Za-z]+)\d+:\s/gm)].map(([, name = '']) => name);
  return [...new Set(names.flatMap((name) => BACKEND_OF_DEVICE[name] ?? []))];
}
