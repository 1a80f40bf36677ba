/** Health of ComfyUI: whether it responds and lists the model. Drawing an image would take seconds. */
import { judgeAlive, PASSING } from '../decide/judge-status.ts';
import type { Endpoint, Health, ProbeIo, ProbeResponse, SlotContext } from '../provider.ts';
import { describesClass, listsFile, loaderOf } from './decide/image-command.ts';
import { userWorkflow } from './decide/user-workflow.ts';

/** ComfyUI is written in Python: it responds late while it loads a model. */
const ALIVE_TIMEOUT_MS = 10_000;
const LIST_TIMEOUT_MS = 30_000;

export const READY_PATH = '/system_stats';

export async function askHealth(
  endpoint: Endpoint,
  io: ProbeIo,
  slot: Pick<SlotContext, 'name' | 'spec' | 'model'>,
  signal: AbortSignal,
): Promise<Health> {
  const alive = judgeAlive(await io.request(endpoint, { method: 'GET', path: READY_PATH, timeoutMs: ALIVE_TIMEOUT_MS, signal }));
  const loader = loaderOf(slot);
  if (alive !== undefined || loader === undefined) return alive ?? PASSING;
  const { className, checkpoint } = loader;
  const { status, body, error = 'no response' } = await askClass(endpoint, io, className, signal);
  if (status === 0) return { kind: 'loading', message: `The server is busy: ${error}` };
  if (status !== 200) return { kind: 'failing', message: `The server does not list its models: "${className}" has status ${status}` };
  if (listsFile(body, checkpoint)) return PASSING;
  return {
    kind: 'failing',
    message: `The server does not list the model "${checkpoint}": it may be incomplete, or the server looks elsewhere`,
  };
}

/** Also checks that the server has every node of a user's workflow. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  slot: Pick<SlotContext, 'name' | 'spec' | 'model'>,
  signal: AbortSignal,
): Promise<Health> {
  const health = await askHealth(endpoint, io, slot, signal);
  const workflow = userWorkflow(slot.model);
  if (health.kind !== 'passing' || workflow === undefined) return health;
  for (const className of workflow.classes) {
    const { status, body } = await askClass(endpoint, io, className, signal);
    if (status === 0) return { kind: 'loading', message: 'The server is busy' };
    if (status !== 200 || !describesClass(body, className))
      return {
        kind: 'failing',
        message: `The server has no node "${className}", which the workflow "${workflow.name}" needs: nodes of other authors are not loaded`,
      };
  }
  return health;
}

async function askClass(endpoint: Endpoint, io: ProbeIo, className: string, signal: AbortSignal): Promise<ProbeResponse> {
  const path = `/object_info/${encodeURIComponent(className)}`;
  return io.request(endpoint, { method: 'GET', path, timeoutMs: LIST_TIMEOUT_MS, signal });
}
