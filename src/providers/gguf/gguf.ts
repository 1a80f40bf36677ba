/** The provider for models in GGUF files, which llama-server of llama.cpp serves. */
import type { Provider } from '../provider.ts';
import { askHealth, askReadiness } from './ask-health.ts';
import { inferPath } from './decide/infer-path.ts';
import { roleOf } from './decide/model-role.ts';
import { SAFE_FLAGS } from './decide/safe-flags.ts';
import { devicesOf, PROGRAM, serverCommand, serverEnvironment } from './decide/server-command.ts';
import { serverMemoryBytes } from './decide/server-memory.ts';

export const gguf: Provider = {
  kind: 'gguf',
  program: PROGRAM,
  containerPort: 8080,
  readyPath: '/health',
  safeFlags: SAFE_FLAGS,
  devices: devicesOf,
  buildEnv: serverEnvironment,
  startCmd: serverCommand,
  estimateMemoryBytes: (spec, model) => serverMemoryBytes('', spec, model),
  capabilities: (name, spec, model) => roleOf(name, spec, model).capabilities,
  health: askHealth,
  readiness: askReadiness,
  infer: inferPath,
};
