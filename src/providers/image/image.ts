/** Provider for image models, which ComfyUI draws with. */
import type { InferPlan, InferRequest, Provider, ServedSlot } from '../provider.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { askHealth, askReadiness, READY_PATH, openComfyUi } from './image-server.ts';
import {
  imageMemory,
  leastDeviceBytes,
  capabilitiesOf,
  objectionTo,
  devicesOf,
  PROGRAM,
  SAFE_FLAGS,
  serverCommand,
  serverEnvironment,
} from './decide/image-command.ts';
import { imageFormat } from './image-format.ts';
import { translateEdit, translateGeneration } from './translate-images.ts';

export const image: Provider = {
  kind: 'image',
  program: PROGRAM,
  toolbox: { folder: 'image', backends: ['rocm'] },
  containerPort: 8188,
  readyPath: READY_PATH,
  safeFlags: SAFE_FLAGS,
  models: imageFormat,
  openProgram: openComfyUi,
  rankBackends: (hardware) => rankBackends('image', hardware),
  devices: devicesOf,
  buildEnv: serverEnvironment,
  startCmd: serverCommand,
  estimateMemory: (_name, spec, model) => imageMemory(spec, model),
  leastDeviceBytes: (_name, spec, model) => leastDeviceBytes(spec, model),
  objection: (_name, _spec, model) => objectionTo(model),
  capabilities: (_name, _spec, model) => capabilitiesOf(model),
  health: askHealth,
  readiness: askReadiness,
  infer: planRequest,
};

function planRequest({ path, capability }: InferRequest, capabilities: readonly Capability[], slot?: ServedSlot): InferPlan {
  if (capability !== 'image' || !capabilities.includes('image'))
    return { kind: 'refuse', message: `An image model does not serve "${path}"; send the request to a slot with another model` };
  if (path === '/v1/images/generations') return { kind: 'translate', run: translateGeneration(slot?.model) };
  if (path === '/v1/images/edits') return { kind: 'translate', run: translateEdit(slot?.model) };
  return { kind: 'refuse', message: `An image slot does not serve "${path}"; use "/v1/images/generations" or "/v1/images/edits"` };
}
