/** Provider for speech-to-text, which computes with the CPU only. */
import { rankBackends } from '../decide/rank-backends.ts';
import type { Provider, Endpoint, Health, ProbeIo, SlotContext, InferPlan, InferRequest } from '../provider.ts';
import { PROGRAMS, SAFE_FLAGS, serverCommand, serverMemory } from '../speech/decide/speech-command.ts';
import { openSpeechServer } from '../speech/speech-server.ts';
import { askHealth, askReadiness as askSpeech, judgeTranscription } from '../speech/speech-health.ts';
import { sttCapabilities, sttFormat } from './stt-format.ts';
import { PROBE_FORM_TYPE, probeForm } from '../speech/decide/probe-recording.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';

/** A second of sound must be transcribed without an error. */
async function askReadiness(endpoint: Endpoint, io: ProbeIo, { spec }: Pick<SlotContext, 'spec'>, signal: AbortSignal): Promise<Health> {
  const form = { body: probeForm(spec.model.default), contentType: PROBE_FORM_TYPE };
  return await askSpeech(endpoint, io, { path: '/v1/audio/transcriptions', ...form, judge: judgeTranscription }, signal);
}

const CAPABILITY_OF: Readonly<Partial<Record<string, Capability>>> = {
  '/v1/audio/transcriptions': 'transcription',
  '/v1/audio/translations': 'translation',
};

function inferPath({ capability, path }: InferRequest, capabilities: readonly Capability[]): InferPlan {
  const needed = Object.hasOwn(CAPABILITY_OF, path) ? CAPABILITY_OF[path] : undefined;
  if (needed === capability && capabilities.includes(capability)) return { kind: 'forward', path };
  const message =
    capability === 'translation'
      ? 'The model of this slot only transcribes; use one that translates, such as a multilingual Whisper'
      : `A slot for speech-to-text does not serve "${path}"; send the request to another slot`;
  return { kind: 'refuse', message };
}

export const stt: Provider = {
  kind: 'stt',
  program: PROGRAMS.stt,
  toolbox: { folder: 'speech', backends: ['cpu'] },
  containerPort: 8093,
  readyPath: '/health',
  safeFlags: SAFE_FLAGS,
  models: sttFormat,
  openProgram: (host) => openSpeechServer('stt', host),
  rankBackends: (hardware) => rankBackends('stt', hardware),
  devices: () => [],
  buildEnv: () => ({}),
  startCmd: (slot) => serverCommand('stt', slot),
  estimateMemory: (_name, _spec, { sizeBytes }) => serverMemory(sizeBytes, false),
  capabilities: (_name, _spec, model) => sttCapabilities(model),
  health: askHealth,
  readiness: askReadiness,
  infer: inferPath,
};
