/** Where requests of a slot go: in, to wait, or away with a reason. Pure. */
import type { Endpoint } from '../../../providers/provider.ts';
import type { Admission, Target } from '../../board.ts';
import type { Roles } from './assign-roles.ts';
import type { Gate } from './checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** An endpoint that did not pass its last probe is left out while there is another one. The targets of before, where they are the same. */
export function targetsOf(serving: WorkloadView | undefined, before: readonly Target[] | undefined): readonly Target[] {
  if (serving === undefined) return NO_TARGETS;
  const { id, endpoints } = serving.fact;
  const failingEndpoints = serving.known.probe?.failingEndpoints ?? [];
  const passingEndpoints =
    failingEndpoints.length === 0 ? endpoints : endpoints.filter((endpoint) => !failingEndpoints.some((each) => isSame(each, endpoint)));
  const taken = passingEndpoints.length === 0 ? endpoints : passingEndpoints;
  const same =
    before?.length === taken.length && before.every(({ workload, endpoint }, index) => workload === id && isSame(endpoint, taken[index]));
  return same ? before : taken.map((endpoint) => ({ workload: id, endpoint }));
}

export function admissionOf(
  view: SlotView,
  roles: Roles,
  targets: readonly Target[],
  why: { readonly notWanted: Finding | undefined; readonly memoryGate: Gate | undefined; readonly gate: Gate | undefined },
): Admission {
  if (targets.length > 0) return OPEN;
  const never = neverAdmits(view);
  if (never !== undefined) return never;
  const { notWanted, memoryGate, gate } = why;
  const { name } = view.slot;
  if (notWanted === undefined && memoryGate?.kind === 'memory') {
    const message = `Free memory or lower what slot "${name}" needs: ${memoryGate.message}`;
    return { kind: 'refuse', code: 'slot.insufficient_memory', message };
  }
  if (gate?.kind !== 'stalled' || roles.starting !== undefined || roles.unprobed !== undefined) return PARK;
  return { kind: 'refuse', code: 'slot.stalled', message: `Mend slot "${name}" first: ${gate.message}` };
}

/** Of a slot that its spec keeps down: no request changes that. */
export function neverAdmits({ spec, slot: { name }, network }: SlotView): Admission | undefined {
  if (!spec.enabled) {
    return { kind: 'refuse', code: 'slot.disabled', message: `Enable slot "${name}" first ("svcctl slot load ${name}"): it is disabled` };
  }
  if (network !== 'pods' || spec.cluster.replicas > 0) return undefined;
  return { kind: 'refuse', code: 'slot.disabled', message: `Scale slot "${name}" up first (set "replicas" to 1 or more): it has none` };
}

const OPEN: Admission = { kind: 'open' };
const PARK: Admission = { kind: 'park' };
const NO_TARGETS: readonly Target[] = [];

function isSame(a: Endpoint, b: Endpoint | undefined): boolean {
  return a.host === b?.host && a.port === b.port;
}
