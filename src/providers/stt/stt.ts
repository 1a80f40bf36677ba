/** The provider for speech-to-text. It computes with the CPU and nothing else. */
import { rankBackends } from '../decide/rank-backends.ts';
import type { Provider } from '../provider.ts';
import { PROGRAMS, SAFE_FLAGS, serverCommand } from '../speech/decide/server-command.ts';
import { serverMemory } from '../speech/decide/server-memory.ts';
import { openSpeechServer } from '../speech/host-program.ts';
import { askHealth } from '../speech/ask-health.ts';
import { askReadiness } from './ask-readiness.ts';
import { inferPath } from './decide/infer-path.ts';
import { sttCapabilities } from './decide/stt-model.ts';
import { sttFormat } from './stt-format.ts';

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
