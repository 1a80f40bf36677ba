/** The command line of the speech server in `toolboxes/speech`, which serves either task. Pure. */
import { serverAliases } from '../../decide/server-aliases.ts';
import type { SlotContext, MemoryDemand } from '../../provider.ts';

export type SpeechTask = 'stt' | 'tts';

/** One name for each task, so that a workload shows what it does. */
export const PROGRAMS = { stt: 'svc-stt', tts: 'svc-tts' } as const satisfies Record<SpeechTask, string>;

/** The limits of the gateway come first (`SVC_AUDIO_LIMIT`, `SVC_SPEECH_LIMIT`); these only keep the server within bounds if somebody else reaches it. */
const AUDIO_LIMIT_BYTES = String(2 ** 30);
const INPUT_LIMIT_CHARACTERS = String(2 ** 20);

/** None of these makes the server load code or read other files. */
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

/** The memory of the speech server. ONNX Runtime keeps the weights as they are in the file, and repacks those of matrices for the CPU, so a model takes up to twice its size. Pure. */

const MIB = 2 ** 20;
/** The server and the process with the engine, which both are Node.js. Measured with models of a few kilobytes: 205 to 211 MB together. */
const BASE_BYTES = 256 * MIB;
/** Buffers for what is computed at once: a sentence, or a piece of a recording between two silences. */
const COMPUTE_BYTES = 128 * MIB;
const WEIGHT_COPIES = 2;

export function serverMemory(weightsBytes: number, onDevice: boolean): MemoryDemand {
  const weights = WEIGHT_COPIES * weightsBytes;
  if (!onDevice) return { hostBytes: BASE_BYTES + COMPUTE_BYTES + weights, deviceBytes: 0 };
  return { hostBytes: BASE_BYTES, deviceBytes: COMPUTE_BYTES + weights };
}
