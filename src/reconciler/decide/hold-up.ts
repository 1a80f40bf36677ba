/** Leaves a slot as it is, and says why, while its plan cannot be made or breaks a rule. Pure. */
import type { Finding } from '../../schema/words/failure.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { servesOf } from '../../schema/slot/provider-kinds.ts';
import type { SlotState } from '../../schema/status/slot-status.ts';
import type { Decision, Desired, Observed, Plan, Objection } from './facts/facts.ts';
import { gather } from './facts/gather.ts';
import { slotFactsOf } from './facts/slot-facts.ts';
import { viewWithoutTemplate, type SlotView, type WorkloadView } from './facts/view.ts';
import type { inspect } from './inspect.ts';
import { heldUpConditions, unknownConditions } from './outcome/conditions.ts';
import { refuseForever, refuseStalled, targetsOf } from './rules/admission.ts';
import { deriveState, stateFactsOf } from './rules/derive-state.ts';
import type { Admission } from '../board.ts';
import type { DesiredSlot } from '../ports.ts';

/** `last`: what the last pass decided. */
export function holdUp(view: SlotView, last: Decision | undefined, problem: string): Decision {
  const { slot, spec, workloads, lastCapabilities } = view;
  const because: Finding = {
    reason: 'InternalError',
    message: `Cannot plan this slot, so it is left as it is: ${problem}; report this as a bug`,
  };
  const serving = workloads.find((workload) => isStillServing(workload, last));
  const targets = targetsOf(serving);
  return {
    name: slot.name,
    generation: slot.generation,
    state: stateOf(view, serving),
    wanted: spec.enabled,
    findings: [because],
    conditions: heldUpConditions(view, serving !== undefined, because),
    admission: targets.length > 0 ? { kind: 'open' } : (refuseForever(view) ?? refuseStalled(slot.name, because)),
    targets,
    serving: serving?.fact.id,
    ...nothingUnderWay(view),
    memoryBytes: last?.memoryBytes,
    revision: last?.revision,
    servedModel: last?.servedModel,
    capabilities: lastCapabilities ?? servesOf(spec),
    waitingReason: undefined,
    replicas: serving?.fact.replicas,
  };
}

/** The valid parts of a plan; `plan` is undefined if a violated rule concerns no single slot. */
export function withoutBroken(
  made: Plan,
  { desired, observed, now }: { readonly desired: Desired; readonly observed: Observed; readonly now: number },
  look: typeof inspect,
): { readonly plan: Plan | undefined; readonly objections: readonly Objection[] } {
  const objections = look(made, desired, observed, now);
  if (objections.length === 0) return { plan: made, objections };
  if (objections.some(({ slot }) => slot === undefined)) return { plan: undefined, objections };
  const plan = withoutSlots(made, objections, { desired, observed, now });
  const more = look(plan, desired, observed, now);
  return { plan: more.length === 0 ? plan : undefined, objections: [...objections, ...more] };
}

function withoutSlots(
  made: Plan,
  objections: readonly Objection[],
  { desired, observed, now }: { readonly desired: Desired; readonly observed: Observed; readonly now: number },
): Plan {
  const gathered = gather(desired, observed, now);
  const problems = Map.groupBy(objections, ({ slot }) => slot);
  const decisions = new Map<SlotName, Decision>();
  for (const [name, decision] of made.decisions) {
    const slot = desired.slots.get(name);
    const problem = problems
      .get(name)
      ?.map(({ message }) => message)
      .join('; ');
    const held = slot === undefined || problem === undefined ? undefined : viewWithoutTemplate(slotFactsOf(slot, gathered), now, problem);
    const last = observed.published.get(name)?.decision;
    decisions.set(name, held === undefined || problem === undefined ? decision : holdUp(held, last, problem));
  }
  return { ...made, actions: made.actions.filter(({ slot }) => !problems.has(slot)), decisions };
}

function isStillServing({ fact, alive }: WorkloadView, last: Decision | undefined): boolean {
  const served = last?.targets.some(({ workload }) => workload === fact.id) === true;
  return served && alive && fact.phase === 'running' && fact.endpoints.length > 0;
}

/** What is the same for every slot about which nothing is decided. */
function nothingUnderWay({ failures }: SlotView) {
  const nothing = {
    draining: [],
    memory: undefined,
    nextAttemptAt: undefined,
    waitsFor: [],
    progress: undefined,
    stable: false,
    drift: [],
  };
  return { ...nothing, lastFailure: failures.at(-1) };
}

/** One that the table of moves allows after any other. */
function stateOf(view: SlotView, serving: WorkloadView | undefined): SlotState {
  const facts = stateFactsOf(view, { serving, starting: undefined, draining: [] });
  return deriveState({ ...facts, fetching: false, applying: false, pulling: false });
}

/** The plan while the runtime is unreachable: no actions, and requests continue to go where they went before. Pure. */
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
    ...nothingUnderWay(view),
    memoryBytes: template?.memoryBytes,
    revision: template?.revision,
    capabilities: template?.capabilities ?? last?.capabilities ?? servesOf(spec),
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
