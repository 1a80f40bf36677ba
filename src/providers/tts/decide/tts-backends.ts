/** With what text-to-speech computes: with the CPU, or with Vulkan where a server that can use it is provided. Pure. */
import { rankBackends } from '../../decide/rank-backends.ts';
import type { BackendVerdict } from '../../provider.ts';
import type { Machine } from '../../../schema/status/hardware.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

const NO_VULKAN = 'the speech engine computes with the CPU only: sherpa-onnx is not built for Vulkan';

/** A program that says what it can is believed; otherwise the devices of the machine decide, and whether there is an image for the backend. */
export function rankTtsBackends(hardware: Machine | undefined): readonly BackendVerdict[] {
  const program = hardware?.programs.tts;
  return rankBackends('tts', hardware).map(({ backend, missing }) => {
    if (missing === undefined) return { backend };
    return { backend, missing: backend === 'vulkan' && program !== undefined ? NO_VULKAN : missing };
  });
}

export function devicesOf(backend: Backend): readonly string[] {
  return backend === 'vulkan' ? ['/dev/dri'] : [];
}

export function usesDevice({ backend, resources }: SlotSpec): boolean {
  return backend !== 'cpu' && resources.gpus !== 0;
}
