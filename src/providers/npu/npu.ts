/** Provider for AMD NPUs, on which FastFlowLM computes chats, embeddings and transcriptions in one process. */
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import type { InferPlan, InferRequest, ModelFormat, Provider, ServedSlot } from '../provider.ts';
import type { Translate } from '../translation.ts';
import { askHealth, askReadiness, READY_PATH, openFlm } from './npu-server.ts';
import { describeContents, parseModelList } from './decide/npu-models.ts';
import {
  capabilitiesOf,
  devicesOf,
  LIST_ARGUMENTS,
  PROGRAM,
  SAFE_FLAGS,
  serverCommand,
  serverEnvironment,
  serverMemory,
} from './decide/npu-command.ts';
import { translateChat, translateEmbedding, translateTranscription } from './translate-requests.ts';

/** No file of the store is a model of this provider. */
const npuFormat: ModelFormat = {
  kind: 'npu',
  recognize: () => undefined,
  filesOf: (name) => [name],
  contentsFrom: (stated) => stated,
  read: async ({ id }) => ({
    kind: 'unusable',
    message: `The NPU cannot run "${id}", nor any other file of the store; choose a model that FastFlowLM lists`,
  }),
  describe: describeContents,
};

export const npu: Provider = {
  kind: 'npu',
  program: PROGRAM,
  toolbox: { folder: 'npu', backends: ['npu'] },
  containerPort: 8086,
  readyPath: READY_PATH,
  safeFlags: SAFE_FLAGS,
  models: npuFormat,
  ownModels: { listArguments: LIST_ARGUMENTS, parse: parseModelList },
  openProgram: openFlm,
  rankBackends: (hardware) => rankBackends('npu', hardware),
  devices: devicesOf,
  buildEnv: serverEnvironment,
  startCmd: serverCommand,
  estimateMemory: (_name, spec, model) => serverMemory(spec, model),
  capabilities: (_name, spec, model) => capabilitiesOf(spec, model),
  health: askHealth,
  readiness: askReadiness,
  infer: planRequest,
};

function planRequest({ path, capability }: InferRequest, capabilities: readonly Capability[], slot?: ServedSlot): InferPlan {
  const model = slot?.model?.id ?? slot?.spec.model.default;
  const run = model === undefined || !capabilities.includes(capability) ? undefined : translationOf(path, capability, model);
  if (run !== undefined) return { kind: 'translate', run, maxJsonBytes: MAX_JSON_BYTES };
  const message = `The model of this slot does not serve "${path}", or the weights for it are missing; send the request to another slot`;
  return { kind: 'refuse', message };
}

/** Chats contain images. */
const MAX_JSON_BYTES = 64 * 2 ** 20;

function translationOf(path: string, capability: Capability, model: string): Translate | undefined {
  if (path === '/v1/chat/completions' && capability === 'chat') return translateChat(model);
  if (path === '/v1/embeddings' && capability === 'embedding') return translateEmbedding;
  return path === '/v1/audio/transcriptions' && capability === 'transcription' ? translateTranscription : undefined;
}
