/** A provider for tests that need one without caring what it does: no model is of its format, it serves everything under the same path, and its server passes every probe. */
import { fail, ok } from '../../src/schema/words/failure.ts';
import type { Provider } from '../../src/providers/provider.ts';

export const PLAIN_PROVIDER: Provider = {
  kind: 'gguf',
  program: 'none',
  containerPort: 1,
  readyPath: '/health',
  models: {
    kind: 'gguf',
    recognize: () => undefined,
    filesOf: (name) => [name],
    read: async () => ({ kind: 'unusable', message: 'No file is of this provider' }),
    contentsFrom: (stated) => stated,
  },
  openProgram: () => ({
    resolve: async () => fail('stalled', 'ProgramMissing', 'Nothing provides this program'),
    describe: async () => ok({ name: 'none' }),
  }),
  rankBackends: () => [{ backend: 'vulkan' }, { backend: 'cpu' }],
  devices: () => [],
  buildEnv: () => ({}),
  startCmd: () => ['none'],
  estimateMemory: () => ({ hostBytes: 0, deviceBytes: 0 }),
  capabilities: () => [],
  health: async () => ({ kind: 'passing' }),
  infer: ({ path }) => ({ kind: 'forward', path }),
};
