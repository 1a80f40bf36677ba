/** The provider for models in GGUF files, which llama-server of llama.cpp serves. */
import type { Provider, SlotContext } from '../provider.ts';
import { askHealth, askReadiness } from './ask-health.ts';
import { inferPath } from './decide/infer-path.ts';
import { ggufModel } from './decide/gguf-model.ts';
import { objectionTo, roleOf } from './decide/model-role.ts';
import { SAFE_FLAGS } from './decide/safe-flags.ts';
import { devicesOf, PROGRAM, serverCommand, serverEnvironment, type GgufSlot } from './decide/server-command.ts';
import { serverMemory } from './decide/server-layout.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import { ggufFormat } from './gguf-format.ts';
import { openLlamaServer } from './host-program.ts';

export const gguf: Provider = {
  kind: 'gguf',
  program: PROGRAM,
  toolbox: { folder: 'gguf', backends: ['vulkan', 'rocm', 'cuda', 'cpu'], byBackend: true },
  containerPort: 8080,
  readyPath: '/health',
  safeFlags: SAFE_FLAGS,
  models: ggufFormat,
  openProgram: openLlamaServer,
  rankBackends: (hardware) => rankBackends('gguf', hardware),
  devices: devicesOf,
  buildEnv: (slot) => serverEnvironment(ggufSlot(slot)),
  startCmd: (slot) => serverCommand(ggufSlot(slot)),
  estimateMemory: (name, spec, model) => serverMemory(name, spec, ggufModel(model)),
  objection: (_name, spec, model) => objectionTo(spec, ggufModel(model)),
  capabilities: (name, spec, model) => roleOf(name, spec, ggufModel(model)).capabilities,
  health: askHealth,
  readiness: askReadiness,
  infer: inferPath,
};

function ggufSlot(slot: SlotContext): GgufSlot {
  return { ...slot, model: ggufModel(slot.model) };
}
