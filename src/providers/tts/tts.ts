/** Provider for text-to-speech. */
import type { Provider, Endpoint, Health, ProbeIo, SlotContext, InferPlan, InferRequest, BackendVerdict } from '../provider.ts';
import { PROGRAMS, SAFE_FLAGS, serverCommand, serverMemory } from '../speech/decide/speech-command.ts';
import { openSpeechServer } from '../speech/speech-server.ts';
import { askHealth, askReadiness as askSpeech, judgeSpeech } from '../speech/speech-health.ts';
import { needsSample, voicesOf } from './decide/tts-model.ts';
import { ttsFormat } from './tts-format.ts';
import type { Capability, Backend } from '../../schema/slot/provider-kinds.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import type { Machine } from '../../schema/status/hardware.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';

/** Every model reads these letters in some way. */
const TEXT = 'Hello.';

/** A short text must not be silence. Models that imitate voices are only asked whether they are loaded. */
async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec, model }: Pick<SlotContext, 'spec' | 'model'>,
  signal: AbortSignal,
): Promise<Health> {
  if (needsSample(model)) return await askHealth(endpoint, io, undefined, signal);
  const body = JSON.stringify({ model: spec.model.default, input: TEXT, response_format: 'wav' });
  return await askSpeech(endpoint, io, { path: '/v1/audio/speech', body, judge: judgeSpeech }, signal);
}

function inferPath({ capability, path }: InferRequest, capabilities: readonly Capability[]): InferPlan {
  if (capability === 'speech' && capabilities.includes('speech') && path === '/v1/audio/speech') return { kind: 'forward', path };
  return { kind: 'refuse', message: `A slot for text-to-speech does not serve "${path}"; send the request to another slot` };
}

const NO_VULKAN = 'the speech engine computes with the CPU only: sherpa-onnx is not built for Vulkan';

/** A program that reports its backends is believed; otherwise devices and images decide. */
function rankTtsBackends(hardware: Machine | undefined): readonly BackendVerdict[] {
  const program = hardware?.programs.tts;
  return rankBackends('tts', hardware).map(({ backend, missing }) => {
    if (missing === undefined) return { backend };
    return { backend, missing: backend === 'vulkan' && program !== undefined ? NO_VULKAN : missing };
  });
}

const devicesOf = (backend: Backend): readonly string[] => (backend === 'vulkan' ? ['/dev/dri'] : []);
const usesDevice = ({ backend, resources }: SlotSpec): boolean => backend !== 'cpu' && resources.gpus !== 0;

export const tts: Provider = {
  kind: 'tts',
  program: PROGRAMS.tts,
  toolbox: { folder: 'speech', backends: ['cpu'] },
  containerPort: 8093,
  readyPath: '/health',
  safeFlags: SAFE_FLAGS,
  models: ttsFormat,
  openProgram: (host) => openSpeechServer('tts', host),
  rankBackends: rankTtsBackends,
  devices: devicesOf,
  buildEnv: () => ({}),
  startCmd: (slot) => serverCommand('tts', slot),
  estimateMemory: (_name, spec, { sizeBytes }) => serverMemory(sizeBytes, usesDevice(spec)),
  capabilities: () => ['speech'],
  voices: voicesOf,
  imitates: needsSample,
  health: askHealth,
  readiness: askReadiness,
  infer: inferPath,
};
