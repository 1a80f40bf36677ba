/** The plan while the runtime is unreachable: no actions, and requests continue to go where they went before. Pure. */
import { PROVIDER_KINDS } from '../../../schema/provider-kinds.ts';
import type { Admission } from '../../board.ts';
import { refuseForever } from '../rules/admission.ts';
import { unknownConditions } from '../outcome/conditions.ts';
import type { Decision, Plan } from '../facts/facts.ts';
import type { SlotView } from '../facts/view.ts';

export function planUnreachable(views: readonly SlotView[], why: string): Plan {
  const decisions = new Map(views.map((view) => [view.slot.name, decide(view, why)]));
  return { actions: [], decisions, orphans: new Map(), wakeAt: undefined };
}

function decide(view: SlotView, why: string): Decision {
  const { previous, slot, spec } = view;
  const refused = refuseForever(view);
  const message = `Start the runtime again, or correct its address: ${why}`;
  return {
    name: slot.name,
    generation: slot.generation,
    state: previous?.state ?? 'offline',
    wanted: previous?.wanted ?? spec.enabled,
    findings: [{ reason: 'RuntimeUnreachable', message }],
    conditions: unknownConditions(view, message),
    admission: refused ?? admissionBefore(view),
    targets: refused === undefined ? (previous?.targets ?? []) : [],
    serving: previous?.serving,
    draining: [],
    memory: undefined,
    memoryBytes: view.template?.memoryBytes,
    revision: view.template?.revision,
    capabilities: view.template?.capabilities ?? previous?.capabilities ?? PROVIDER_KINDS[spec.provider].serves,
    nextAttemptAt: undefined,
    lastFailure: view.failures.at(-1),
    waitsFor: [],
    progress: undefined,
    stable: false,
    drift: [],
    waitingReason: previous?.waitingReason,
    replicas: undefined,
  };
}

function admissionBefore({ previous, slot }: SlotView): Admission {
  if (previous?.admission.kind === 'open' || previous?.generation === slot.generation) return previous.admission;
  // What was refused before an edit may be accepted after it.
  return { kind: 'park' };
}
