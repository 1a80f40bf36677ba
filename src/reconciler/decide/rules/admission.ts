/** What happens to requests of a slot: they are let in, they wait, or they are refused. Pure. */
import { hideHostText, type Finding } from '../../../schema/words/failure.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Admission, Target } from '../../board.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { isAmong } from '../facts/workload-history.ts';
import type { Roles } from './assign-roles.ts';
import type { Gate } from './gates.ts';

/** Leaves out an endpoint whose last probe failed, or that was never probed, while another one passes. */
export function targetsOf(serving: WorkloadView | undefined): readonly Target[] {
  if (serving === undefined) return [];
  const { id, endpoints } = serving.fact;
  const { failingEndpoints = [], passedEndpoints = [] } = serving.known.probe ?? {};
  const notFailing = endpoints.filter((endpoint) => !isAmong(endpoint, failingEndpoints));
  const passing = notFailing.filter((endpoint) => isAmong(endpoint, passedEndpoints));
  const best = [passing, notFailing, endpoints].find((some) => some.length > 0) ?? [];
  return best.map((endpoint) => ({ workload: id, endpoint }));
}

/** `stuck`: what prevents a start of a slot that should run, memory first. */
export function admissionOf(view: SlotView, roles: Roles, targets: readonly Target[], stuck: Gate | undefined): Admission {
  if (targets.length > 0) return { kind: 'open' };
  const refused = refuseForever(view);
  if (refused !== undefined) return refused;
  const waiting = roles.starting?.fact.waitingReason?.reason ?? '';
  if (UNUSABLE.has(waiting) && roles.starting?.known.probe?.passed !== true) {
    const { name } = view.slot;
    return refuse(
      'slot.loading',
      `Slot "${name}" cannot use its server on another machine (${waiting}): "svcctl explain ${name}" says why`,
    );
  }
  const mayCome = (roles.starting ?? roles.unprobed ?? roles.sleeping) !== undefined;
  if (stuck?.kind === 'memory' || (stuck?.kind === 'stalled' && !mayCome)) return refuseStalled(view.slot.name, stuck);
  if (stuck?.kind === 'waiting' && !mayCome && FETCHES.has(stuck.reason)) {
    return refuse('slot.loading', `Slot "${view.slot.name}" cannot load: ${hideHostText(stuck.message)}; it is tried again`);
  }
  return stuck === undefined ? { kind: 'park' } : { kind: 'park', because: hideHostText(stuck.message) };
}

/**
 * Only a user can correct these, unless the server could be used before: then it may be restarting. Clients of models
 * are not told the address.
 */
const UNUSABLE: ReadonlySet<string> = new Set(['RemoteUntrusted', 'RemoteRefuses', 'RemoteUnusable', 'RemoteLacksModel']);

/** Nothing that a client waits for changes while these fail, and the next attempts are further and further apart. */
const FETCHES: ReadonlySet<string> = new Set(['ModelPullFailed', 'ImagePullFailed', 'EngineInstallFailed']);

/**
 * Refuses the requests of a slot that its spec keeps down; undefined where a request may start it. One that loads on
 * demand and is scaled to zero waits for an autoscaler, which must see requests wait to scale it up.
 */
export function refuseForever({ spec, slot: { name }, network }: SlotView): Admission | undefined {
  if (!spec.enabled) return refuse('slot.disabled', `Slot "${name}" is off; load it with "svcctl slot load ${name}"`);
  if (network !== 'pods' || spec.cluster.replicas > 0 || spec.load === 'on-demand') return undefined;
  const message = `Slot "${name}" has no replicas, and with "load" set to "always" requests do not wait for them; set "replicas" to 1 or more`;
  return refuse('slot.disabled', message);
}

function refuse(code: Extract<Admission, { kind: 'refuse' }>['code'], message: string): Admission {
  return { kind: 'refuse', code, message };
}

/** Refuses the requests of a stalled slot, as waiting would not help them. Clients of models see no logs and paths. */
export function refuseStalled(name: SlotName, { reason, message: found }: Finding): Admission {
  const message = hideHostText(found);
  if (reason === 'InsufficientMemory')
    return refuse('slot.insufficient_memory', `Not enough memory for slot "${name}": ${message}; free memory, or lower its needs`);
  return refuse('slot.stalled', `Slot "${name}" is stalled: ${message}`);
}
