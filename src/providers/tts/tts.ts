/** The provider for text-to-speech. */
import type { Provider } from '../provider.ts';
import { PROGRAMS, SAFE_FLAGS, serverCommand } from '../speech/decide/server-command.ts';
import { serverMemory } from '../speech/decide/server-memory.ts';
import { openSpeechServer } from '../speech/host-program.ts';
import { askHealth } from '../speech/ask-health.ts';
import { askReadiness } from './ask-readiness.ts';
import { inferPath } from './decide/infer-path.ts';
import { devicesOf, rankTtsBackends, usesDevice } from './decide/tts-backends.ts';
import { needsSample, voicesOf } from './decide/tts-model.ts';
import { ttsFormat } from './tts-format.ts';

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
