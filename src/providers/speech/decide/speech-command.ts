/** The command line of the speech server in `toolboxes/speech`, which serves either task. Pure. */
import { serverAliases } from '../../decide/server-aliases.ts';
import type { SlotContext } from '../../provider.ts';

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
