/** Asks ComfyUI for its health: whether it answers, and whether its loader lists the model of the slot. Drawing an image would take seconds, and wait behind those of clients. */
import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { describesClass, listsFile, loaderOf } from './decide/image-command.ts';
import { userWorkflow } from './decide/user-workflow.ts';

/** It is written in Python: while it loads a model, it answers late. */
const ALIVE_TIMEOUT_MS = 10_000;
const LIST_TIMEOUT_MS = 30_000;

export const READY_PATH = '/system_stats';

export async function askHealth(
  endpoint: Endpoint,
  io: ProbeIo,
  slot: Pick<SlotContext, 'name' | 'spec' | 'model'>,
  signal: AbortSignal,
): Promise<Health> {
  const alive = await io.request(endpoint, { method: 'GET', path: READY_PATH, timeoutMs: ALIVE_TIMEOUT_MS, signal });
  if (alive.status === 0) return { kind: 'silent', message: `The server does not respond: ${alive.error ?? 'no response'}` };
  if (alive.status === 503) return { kind: 'loading', message: 'The server is still starting' };
  if (alive.status !== 200) return { kind: 'failing', message: `A health probe failed with HTTP status ${alive.status}` };
  const loader = loaderOf(slot);
  if (loader === undefined) return { kind: 'passing' };
  const { className, checkpoint } = loader;
  const path = `/object_info/${encodeURIComponent(className)}`;
  const list = await io.request(endpoint, { method: 'GET', path, timeoutMs: LIST_TIMEOUT_MS, signal });
  if (list.status === 0) return { kind: 'loading', message: `The server is busy: ${list.error ?? 'no response'}` };
  if (list.status !== 200) return { kind: 'failing', message: `The server does not list its models: "${path}" answers ${list.status}` };
  if (!listsFile(list.body, checkpoint))
    return {
      kind: 'failing',
      message: `The server does not list the model "${checkpoint}": it may be incomplete, or the server looks elsewhere`,
    };
  return { kind: 'passing' };
}

/** Also asks whether the server has every node of a user's workflow. */
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
    const path = `/object_info/${encodeURIComponent(className)}`;
    const { status, body } = await io.request(endpoint, { method: 'GET', path, timeoutMs: LIST_TIMEOUT_MS, signal });
    if (status === 0) return { kind: 'loading', message: 'The server is busy' };
    if (status !== 200 || !describesClass(body, className))
      return {
        kind: 'failing',
        message: `The server has no node "${className}", which the workflow "${workflow.name}" needs: nodes of other authors are not loaded`,
      };
  }
  return health;
}
