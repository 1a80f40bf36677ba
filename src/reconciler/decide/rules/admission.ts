/** Where requests of a slot go: in, to wait, or away with a reason. Pure. */
import type { Admission, Target } from '../../board.ts';
import type { Roles } from './assign-roles.ts';
import type { Gate } from './checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** An endpoint that did not pass its last probe is left out while there is another one. */
export function targetsOf(serving: WorkloadView | undefined): readonly Target[] {
  if (serving === undefined) return [];
  const { id, endpoints } = serving.fact;
  const failing = serving.known.probe?.failingEndpoints ?? [];
  const passing = endpoints.filter((endpoint) => !failing.some(({ host, port }) => host === endpoint.host && port === endpoint.port));
  return (passing.length === 0 ? endpoints : passing).map((endpoint) => ({ workload: id, endpoint }));
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
