/** Runs speech models without containers: with an installed program, otherwise with the speech server here. */
import { z } from 'zod';
import { findProgram, programOrEngine } from '../host-program.ts';
import { toolboxSources, type Engine } from '../install-engine.ts';
import type { Endpoint, Health, HostProgram, ProbeIo, ProbeResponse, ProgramHost, Provider } from '../provider.ts';
import { PROGRAMS, SAFE_FLAGS, serverCommand, type SpeechTask } from './decide/speech-command.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { judgeAlive, judgeStatus, PASSING, quoteError } from '../decide/judge-status.ts';

export const SPEECH_ENGINE: Engine = {
  name: 'the speech engine',
  sources: toolboxSources('speech'),
  download: 'about 11 MB',
  instead: 'use containers',
};

const openSpeechServer = (task: SpeechTask, host: ProgramHost): HostProgram => ({
  ...programOrEngine(PROGRAMS[task], SPEECH_ENGINE, 'speech-engine', host),
  /** The prebuilt libraries compute on the CPU only. Another program of that name does not say. */
  async reportBackends() {
    const installed = await findProgram(PROGRAMS[task], host.env['PATH']);
    return installed === undefined ? { name: SPEECH_ENGINE.name, backends: ['cpu'] } : undefined;
  },
});

/** The server responds within milliseconds, from another process than the one that computes. */
const ALIVE_TIMEOUT_MS = 3_000;
/** The first request may wait for hundreds of megabytes to be read from the disk. */
const PROBE_TIMEOUT_MS = 30_000;

interface SpeechCheck {
  readonly path: string;
  readonly body: string | Uint8Array;
  readonly contentType?: string;
  judge(response: ProbeResponse): Health;
}

const Ready = z.object({ status: z.enum(['ready', 'ok']) });
const Transcription = z.object({ text: z.string() });
/** The header of a WAV file has 44 bytes, or a few more. */
const WAV_HEADER_CHARACTERS = 128;

/** Asks for nothing that is computed: a recording of an hour occupies the engine for minutes. */
export async function askHealth(endpoint: Endpoint, io: ProbeIo, _slot: unknown, signal: AbortSignal): Promise<Health> {
  const response = await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal });
  const failed = judgeBusy(response) ?? judgeAlive(response);
  if (failed !== undefined) return failed;
  if (Ready.safeParse(parseJson(response.body)).success) return PASSING;
  return { kind: 'failing', message: 'The response to "/health" does not say that the server is ready' };
}

/** The check must pass before the server gets requests. */
export async function askReadiness(endpoint: Endpoint, io: ProbeIo, check: SpeechCheck, signal: AbortSignal): Promise<Health> {
  const { judge, ...request } = check;
  const alive = await askHealth(endpoint, io, undefined, signal);
  if (alive.kind !== 'passing') return alive;
  const response = await io.request(endpoint, { method: 'POST', ...request, timeoutMs: PROBE_TIMEOUT_MS, signal });
  return judgeBusy(response) ?? judgeStatus(response) ?? judge(response);
}

/** Any text passes: a sound model understands nothing in a tone. */
export function judgeTranscription({ body }: ProbeResponse): Health {
  if (Transcription.safeParse(parseJson(body)).success) return PASSING;
  return { kind: 'failing', message: 'The transcription of a second of sound has no "text"' };
}

/** The body is the start of a WAV file, read as if it were text: zero bytes are preserved. */
export function judgeSpeech({ body }: ProbeResponse): Health {
  if (!body.startsWith('RIFF') || body.length <= WAV_HEADER_CHARACTERS)
    return { kind: 'failing', message: 'The response to a short text is not a WAV file with sound' };
  // Samples of zero are silence.
  if (/[^\0]/.test(body.slice(WAV_HEADER_CHARACTERS))) return PASSING;
  return { kind: 'nonsense', message: 'The model answers nonsense: complete silence for a short text' };
}

const judgeBusy = ({ status, body }: ProbeResponse): Health | undefined =>
  status === 429 ? { kind: 'loading', message: `The server is busy: ${quoteError(body)}` } : undefined;

export const speechProvider = <Task extends SpeechTask>(task: Task) =>
  ({
    kind: task,
    program: PROGRAMS[task],
    toolbox: { folder: 'speech', backends: ['cpu'] },
    containerPort: 8093,
    readyPath: '/health',
    safeFlags: SAFE_FLAGS,
    openProgram: (host) => openSpeechServer(task, host),
    buildEnv: () => ({}),
    startCmd: (slot) => serverCommand(task, slot),
    health: askHealth,
  }) satisfies Partial<Provider>;
