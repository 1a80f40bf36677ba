/** The memory of the speech server. ONNX Runtime keeps the weights as they are in the file, and repacks those of matrices for the CPU, so a model takes up to twice its size. Pure. */
import type { MemoryDemand } from '../../provider.ts';

const MIB = 2 ** 20;
/** The server and the process with the engine, each with Node.js and one with the libraries of sherpa-onnx. */
const BASE_BYTES = 192 * MIB;
/** Buffers for what is computed at once: a sentence, or a piece of a recording between two silences. */
const COMPUTE_BYTES = 128 * MIB;
const WEIGHT_COPIES = 2;

export function serverMemory(weightsBytes: number, onDevice: boolean): MemoryDemand {
  const weights = WEIGHT_COPIES * weightsBytes;
  if (!onDevice) return { hostBytes: BASE_BYTES + COMPUTE_BYTES + weights, deviceBytes: 0 };
  return { hostBytes: BASE_BYTES, deviceBytes: COMPUTE_BYTES + weights };
}
