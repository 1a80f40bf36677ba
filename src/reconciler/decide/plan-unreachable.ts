/** The plan while the runtime is unreachable: no actions, and requests continue to go where they went before. Pure. */
import { PROVIDER_KINDS } from '../../schema/slot/provider-kinds.ts';
import type { Admission } from '../board.ts';
import { refuseForever } from './rules/admission.ts';
import { unknownConditions } from './outcome/conditions.ts';
import type { DesiredSlot } from '../ports.ts';
import type { Decision, Observed, Plan } from './facts/facts.ts';
import type { SlotView } from './facts/view.ts';

export function planUnreachable(views: readonly SlotView[], published: Observed['published'], why: string): Plan {
  const decisions = new Map(views.map((view) => [view.slot.name, decide(view, published.get(view.slot.name)?.decision, why)]));
  return { actions: [], decisions, orphans: new Map(), wakeAt: undefined };
}

function decide(view: SlotView, last: Decision | undefined, why: string): Decision {
  const { slot, spec, template } = view;
  const refused = refuseForever(view);
  const message = `Cannot reach the runtime: ${why}; start it, or correct its address`;
  return {
    ...(last ?? UNKNOWN),
    name: slot.name,
    generation: slot.generation,
    wanted: last?.wanted ?? spec.enabled,
    findings: [{ reason: 'RuntimeUnreachable', message }],
    conditions: unknownConditions(view, message),
    admission: refused ?? admissionBefore(slot, last),
    ...(refused === undefined ? {} : { targets: [] }),
    draining: [],
    memory: undefined,
    memoryBytes: template?.memoryBytes,
    revision: template?.revision,
    capabilities: template?.capabilities ?? last?.capabilities ?? PROVIDER_KINDS[spec.provider].serves,
    nextAttemptAt: undefined,
    lastFailure: view.failures.at(-1),
    waitsFor: [],
    progress: undefined,
    stable: false,
    drift: [],
    replicas: undefined,
  };
}

/** Decision for a slot that has none yet. */
const UNKNOWN = { state: 'offline', targets: [], serving: undefined, waitingReason: undefined } as const;

function admissionBefore(slot: DesiredSlot, last: Decision | undefined): Admission {
  if (last?.admission.kind === 'open' || last?.generation === slot.generation) return last.admission;
  // What was refused before an edit may be accepted after it.
  return { kind: 'park' };
}
