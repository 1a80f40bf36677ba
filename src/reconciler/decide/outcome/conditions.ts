/**
 * What was decided, as conditions that tools of Kubernetes understand (kstatus): `Reconciling` only while work is under way or due, `Stalled`
 * only where a person must act; a slot that is at rest because it shall be is neither. Pure.
 */
import { formatProblem } from '../../../schema/spec-problem.ts';
import type { Condition } from '../../../schema/slot-status.ts';
import type { Roles } from '../rules/assign-roles.ts';
import { whySilent, type Gate } from '../rules/checks.ts';
import type { ConditionInput, Finding } from '../facts/facts.ts';
import { findShortage } from './list-findings.ts';
import type { SlotView } from '../facts/view.ts';

export interface ConditionFacts {
  readonly view: SlotView;
  readonly roles: Roles;
  readonly unwanted: Finding | undefined;
  /** The gravest reason why nothing can be started; undefined: nothing hinders. */
  readonly gate: Gate | undefined;
  /** Work is under way: something comes, leaves, is pulled or started. */
  readonly busy: boolean;
}

export function deriveConditions(facts: ConditionFacts): readonly ConditionInput[] {
  return [ready(facts), reconciling(facts), stalled(facts), specValid(facts.view), driftDetected(facts)];
}

/** Conditions when the runtime cannot be asked: nothing is known of what runs. */
export function unknownConditions(view: SlotView, message: string): readonly ConditionInput[] {
  const reason = 'RuntimeUnreachable';
  return [
    { type: 'Ready', status: 'Unknown', reason, message },
    { type: 'Reconciling', status: 'True', reason, message },
    { type: 'Stalled', status: 'False', reason, message },
    specValid(view),
    { type: 'DriftDetected', status: 'Unknown', reason, message },
  ];
}

/** Conditions with their times: `lastTransitionAt` moves only when the status does. One that says the same stays the same object. */
export function stampConditions(
  inputs: readonly ConditionInput[],
  previous: readonly Condition[],
  generation: number,
  now: number,
): readonly Condition[] {
  return inputs.map((input) => {
    const before = previous.find((condition) => condition.type === input.type);
    if (before?.status !== input.status) return { ...input, lastTransitionAt: now, observedGeneration: generation };
    const same = before.reason === input.reason && before.message === input.message && before.observedGeneration === generation;
    return same ? before : { ...input, lastTransitionAt: before.lastTransitionAt, observedGeneration: generation };
  });
}

function ready({ view, roles, unwanted, gate }: ConditionFacts): ConditionInput {
  const { serving, starting, draining } = roles;
  if (serving !== undefined) {
    const current = serving.standing !== 'outdated';
    const message = findShortage(serving, view)?.message ?? 'It answers';
    if (current) return { type: 'Ready', status: 'True', reason: 'ProbePassed', message };
    const why = hindrance(starting)?.message ?? gate?.message ?? 'the new one is on its way';
    return { type: 'Ready', status: 'True', reason: 'PreviousServes', message: `What ran before the edit still answers: ${why}` };
  }
  const finding = unwanted ?? hindrance(starting) ?? gate ?? draining[0]?.because ?? roles.waitsFor;
  if (finding !== undefined) return { type: 'Ready', status: 'False', reason: finding.reason, message: finding.message };
  const probe = (starting ?? roles.unprobed)?.known.probe;
  const message = probe === undefined ? 'It was started' : `It does not answer yet: ${probe.message}`;
  return { type: 'Ready', status: 'False', reason: view.workloads.length === 0 ? 'Starting' : 'Warming', message };
}

/** What keeps a new workload from getting on, though nothing of it failed. */
function hindrance(starting: Roles['starting']): Finding | undefined {
  if (starting === undefined) return undefined;
  const { waitingReason, fetching, phase, endpoints, exit } = starting.fact;
  const passedBefore = phase === 'running' && endpoints.length === 0 && starting.known.probe?.passed === true;
  const crashed = phase === 'created' && exit !== undefined;
  return waitingReason !== undefined || fetching !== undefined || crashed || passedBefore ? whySilent(starting) : undefined;
}

function reconciling({ view, roles, unwanted, gate, busy }: ConditionFacts): ConditionInput {
  const waits = unwanted === undefined && (gate?.kind === 'waiting' || gate?.kind === 'pulling' || roles.waitsFor !== undefined);
  const held = hindrance(roles.starting) ?? findShortage(roles.serving, view);
  if (!busy && !waits && held === undefined)
    return { type: 'Reconciling', status: 'False', reason: 'AtRest', message: 'There is nothing to do' };
  const finding = roles.draining[0]?.because ?? held ?? (waits ? (gate ?? roles.waitsFor) : undefined);
  return finding === undefined
    ? { type: 'Reconciling', status: 'True', reason: 'Progressing', message: 'It is being loaded' }
    : { type: 'Reconciling', status: 'True', reason: finding.reason, message: finding.message };
}

function stalled({ view, unwanted, gate }: ConditionFacts): ConditionInput {
  const stuck = gate?.kind === 'stalled' || gate?.kind === 'memory' ? gate : undefined;
  if (stuck !== undefined && (unwanted === undefined || unwanted === gate)) {
    return { type: 'Stalled', status: 'True', reason: stuck.reason, message: stuck.message };
  }
  const problems = specValid(view);
  if (problems.status === 'False') return { ...problems, type: 'Stalled', status: 'True' };
  return { type: 'Stalled', status: 'False', reason: 'NotStalled', message: 'Nothing needs a person' };
}

function specValid({ slot }: SlotView): ConditionInput {
  if (slot.problems.length === 0) return { type: 'SpecValid', status: 'True', reason: 'Parsed', message: 'Its text is valid' };
  const message = `The last good text stays in force: ${slot.problems.map((problem) => formatProblem(problem)).join('; ')}`;
  return { type: 'SpecValid', status: 'False', reason: 'SpecInvalid', message };
}

function driftDetected({ view }: ConditionFacts): ConditionInput {
  const altered = view.workloads.flatMap((workload) => (workload.alive ? workload.drift : []));
  if (altered.length === 0 || view.spec.lifecycle.drift === 'ignore') {
    return { type: 'DriftDetected', status: 'False', reason: 'AsApplied', message: 'It runs as it was started' };
  }
  return {
    type: 'DriftDetected',
    status: 'True',
    reason: 'WorkloadAltered',
    message: `It was altered from outside: ${altered.join('; ')}`,
  };
}
