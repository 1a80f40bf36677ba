/** Command line and memory of the speech server in `toolboxes/speech`. Pure. */
import { serverAliases } from '../../decide/judge-status.ts';
import type { SlotContext, MemoryDemand } from '../../provider.ts';

export type SpeechTask = 'stt' | 'tts';

/** One name per task, so that workloads show what they do. */
export const PROGRAMS = { stt: 'svc-stt', tts: 'svc-tts' } as const satisfies Record<SpeechTask, string>;

/** The gateway applies its own limits first; these protect against other clients. */
const AUDIO_LIMIT_BYTES = String(2 ** 30);
const INPUT_LIMIT_CHARACTERS = String(2 ** 20);

/** None makes the server load code or read other files. */
export const SAFE_FLAGS: ReadonlySet<string> = new Set(['--threads', '--queue', '--timeout']);

export function serverCommand(task: SpeechTask, slot: SlotContext): readonly [string, ...string[]] {
  const { listen, modelPath, spec } = slot;
  return [
    PROGRAMS[task],
    '--task',
    task,
    '--model',
    modelPath,
    '--host',
    listen.host,
    '--port',
    String(listen.port),
    '--alias',
    serverAliases(spec),
    ...(task === 'stt' ? ['--limit', AUDIO_LIMIT_BYTES] : ['--max-input', INPUT_LIMIT_CHARACTERS]),
    ...spec.model.args,
  ];
}

const MIB = 2 ** 20;
/** Server and engine are Node.js processes. Measured with models of a few kilobytes: 205 to 211 MB together. */
const BASE_BYTES = 256 * MIB;
/** Buffers for a sentence, or a piece of a recording between two silences. */
const COMPUTE_BYTES = 128 * MIB;
/** ONNX Runtime keeps the weights of the file, and repacks matrices for the CPU. */
const WEIGHT_COPIES = 2;

export function serverMemory(weightsBytes: number, onDevice: boolean): MemoryDemand {
  const weights = WEIGHT_COPIES * weightsBytes;
  if (!onDevice) return { hostBytes: BASE_BYTES + COMPUTE_BYTES + weights, deviceBytes: 0 };
  return { hostBytes: BASE_BYTES, deviceBytes: COMPUTE_BYTES + weights };
}
