/**
 * A decision as conditions that Kubernetes tools understand (kstatus): `Reconciling` only while work is under way or
 * due, `Stalled` only where somebody must act; a slot that is at rest on purpose is neither. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import { AT_REST, type Condition, type ConditionType } from '../../../schema/status/slot-status.ts';
import { describeFallback } from '../../../schema/slot/fallback.ts';
import { formatProblem } from '../../../schema/slot/spec-problem.ts';
import type { ConditionInput } from '../facts/facts.ts';
import type { SlotView } from '../facts/view.ts';
import { isMemoryUnknown } from '../facts/workload.ts';
import { isAsleep, type Roles } from '../rules/assign-roles.ts';
import { describeTrial } from '../rules/evaluation.ts';
import type { Gate } from '../rules/gates.ts';
import { describeAltered, nextRepairAt } from '../rules/repair.ts';
import { ASLEEP } from '../rules/wanted.ts';
import { WAKING } from '../steps/plan-sleep.ts';
import { describeSilence, findShortage, findSilence, whySilent } from './list-findings.ts';

interface ConditionFacts {
  readonly view: SlotView;
  readonly roles: Roles;
  readonly unwanted: Finding | undefined;
  /** The most serious reason why nothing can be started; undefined where there is none. */
  readonly gate: Gate | undefined;
  /** Work is under way: a workload starts, ends or is updated. */
  readonly busy: boolean;
  /** Why a repair does not make the slot answer. */
  readonly unrepairable: Finding | undefined;
}

export function deriveConditions(facts: ConditionFacts): readonly ConditionInput[] {
  const basic = { ready: ready(facts), reconciling: reconciling(facts), stalled: stalled(facts) };
  const upToDate = deriveUpToDate(basic, facts);
  return [basic.ready, upToDate, basic.reconciling, basic.stalled, specValid(facts.view), driftDetected(facts), ...sleeping(facts)];
}

/** The conditions while the runtime is unreachable: nothing is known about what runs. */
export function unknownConditions(view: SlotView, message: string): readonly ConditionInput[] {
  const finding: Finding = { reason: 'RuntimeUnreachable', message };
  return [
    condition('Ready', 'Unknown', finding),
    condition('UpToDate', 'Unknown', finding),
    condition('Reconciling', 'True', finding),
    condition('Stalled', 'False', finding),
    specValid(view),
    condition('DriftDetected', 'Unknown', finding),
  ];
}

/** The conditions of a slot that is left as it is. */
export function heldUpConditions(view: SlotView, serves: boolean, because: Finding): readonly ConditionInput[] {
  return [
    serves ? condition('Ready', 'True', { reason: 'ProbePassed', message: 'The slot answers' }) : condition('Ready', 'False', because),
    condition('UpToDate', 'False', because),
    condition('Reconciling', 'False', AT_REST),
    condition('Stalled', 'True', because),
    specValid(view),
    condition('DriftDetected', 'Unknown', because),
  ];
}

/** Adds times: `lastTransitionAt` moves only with the status. An unchanged condition stays the same object. */
export function stampConditions(
  inputs: readonly ConditionInput[],
  published: readonly Condition[],
  generation: number,
  now: number,
): readonly Condition[] {
  return inputs.map((input) => {
    const before = published.find(({ type }) => type === input.type);
    if (before?.status !== input.status) return { ...input, lastTransitionAt: now, observedGeneration: generation };
    const same = before.reason === input.reason && before.message === input.message && before.observedGeneration === generation;
    return same ? before : { ...input, lastTransitionAt: before.lastTransitionAt, observedGeneration: generation };
  });
}

function condition(type: ConditionType, status: Condition['status'], { reason, message }: Finding): ConditionInput {
  return { type, status, reason, message };
}

function ready({ view, roles, unwanted, gate }: ConditionFacts): ConditionInput {
  const { serving, starting, draining } = roles;
  if (roles.sleeping !== undefined) return condition('Ready', 'True', ASLEEP);
  const silence = findSilence(serving);
  if (silence !== undefined) return condition('Ready', 'Unknown', silence);
  const trial = describeTrial(view, starting);
  const why =
    alteredStart(view, roles) ?? trial ?? (isAsleep(starting) ? (roles.waitsFor ?? WAKING) : undefined) ?? hindrance(starting) ?? gate;
  if (serving?.standing === 'outdated') {
    const message = `The previous version still answers: ${why?.message ?? 'the new workload is being started'}`;
    return condition('Ready', 'True', { reason: 'PreviousServes', message });
  }
  if (serving !== undefined) {
    return condition('Ready', 'True', { reason: 'ProbePassed', message: findShortage(serving, view)?.message ?? 'The slot answers' });
  }
  const finding = (unwanted && notLoadable(unwanted, gate)) ?? why ?? draining[0]?.because ?? roles.waitsFor;
  if (finding !== undefined) return condition('Ready', 'False', finding);
  const message = describeSilence((starting ?? roles.unprobed)?.known.probe);
  return condition('Ready', 'False', { reason: view.workloads.length === 0 ? 'Starting' : 'Warming', message });
}

/** Only of slots whose server can sleep. */
function sleeping({ view, roles }: ConditionFacts): readonly ConditionInput[] {
  if (view.circumstances.providers[view.spec.provider]?.sleep === undefined) return [];
  if (view.workloads.some((workload) => isAsleep(workload)))
    return [condition('Sleeping', 'True', roles.sleeping === undefined ? WAKING : ASLEEP)];
  return [condition('Sleeping', 'False', { reason: 'Awake', message: 'No server of the slot sleeps' })];
}

/** A slot that is off also says what would keep it from being loaded. */
function notLoadable(unwanted: Finding, gate: Gate | undefined): Finding {
  if (unwanted.reason !== 'Disabled' || gate?.kind !== 'stalled') return unwanted;
  return { reason: unwanted.reason, message: `${unwanted.message}; it could not be loaded: ${gate.message}` };
}

/** The workload that should answer soon was altered, which may be why it does not. */
function alteredStart(view: SlotView, { starting }: Roles): Finding | undefined {
  if (starting?.standing !== 'altered' || view.spec.lifecycle.drift === 'ignore') return undefined;
  return describeAltered(starting, view);
}

/** A repair is due, now or after a pause. */
function repair(view: SlotView, { serving, starting }: Roles): Finding | undefined {
  const altered = [serving, starting].find((workload) => workload?.standing === 'altered');
  return altered === undefined || nextRepairAt(view) === undefined ? undefined : describeAltered(altered, view);
}

/** What delays a new workload, though it has not failed. */
function hindrance(starting: Roles['starting']): Finding | undefined {
  if (starting === undefined) return undefined;
  const { waitingReason, fetching, phase, endpoints, exit } = starting.fact;
  const passedBefore = phase === 'running' && endpoints.length === 0 && starting.known.probe?.passed === true;
  const crashed = phase === 'created' && exit !== undefined;
  return waitingReason !== undefined || fetching !== undefined || crashed || passedBefore ? whySilent(starting) : undefined;
}

function reconciling({ view, roles, unwanted, gate, busy }: ConditionFacts): ConditionInput {
  const waits = unwanted === undefined && (gate?.kind === 'waiting' || gate?.kind === 'pulling' || roles.waitsFor !== undefined);
  const trial = roles.starting === undefined ? undefined : describeTrial(view, roles.starting);
  const delay = trial ?? repair(view, roles) ?? hindrance(roles.starting) ?? findShortage(roles.serving, view);
  if (!busy && !waits && delay === undefined) return condition('Reconciling', 'False', AT_REST);
  const finding = roles.draining[0]?.because ?? delay ?? (waits ? (gate ?? roles.waitsFor) : undefined);
  return condition('Reconciling', 'True', finding ?? { reason: 'Progressing', message: 'The slot is loading' });
}

function stalled({ view, unwanted, gate, unrepairable }: ConditionFacts): ConditionInput {
  const stuck = gate?.kind === 'stalled' || gate?.kind === 'memory' ? gate : undefined;
  if (stuck !== undefined && (unwanted === undefined || unwanted === gate)) return condition('Stalled', 'True', stuck);
  if (unrepairable !== undefined) return condition('Stalled', 'True', unrepairable);
  const { rollout } = view.slot;
  const failed = rollout?.rolledBack ?? (rollout?.verdict?.outcome === 'held' ? rollout : undefined);
  const trial = failed === undefined ? undefined : describeTrial(view, undefined);
  if (trial !== undefined) return condition('Stalled', 'True', trial);
  const spec = specValid(view);
  if (spec.status === 'False') return condition('Stalled', 'True', spec);
  return condition('Stalled', 'False', { reason: 'NotStalled', message: 'No action needed' });
}

function specValid({ slot: { problems }, spec: { fallback }, aliasConflicts, fallbackProblems }: SlotView): ConditionInput {
  const notes = [...aliasConflicts, ...fallbackProblems];
  if (problems.length === 0 && notes.length > 0) {
    const reason = aliasConflicts.length > 0 ? 'AliasConflict' : 'FallbackUnusable';
    return condition('SpecValid', 'True', { reason, message: notes.join('; ') });
  }
  const declared = fallback === undefined ? '' : `; requests fall back ${describeFallback(fallback)}`;
  if (problems.length === 0) return condition('SpecValid', 'True', { reason: 'Parsed', message: `The spec is valid${declared}` });
  const message = `${problems.map((problem) => formatProblem(problem)).join('; ')}; the last valid spec stays in force`;
  return condition('SpecValid', 'False', { reason: 'SpecInvalid', message });
}

function driftDetected({ view }: ConditionFacts): ConditionInput {
  const drift = view.workloads.flatMap((workload) => (workload.alive ? workload.drift : []));
  if (drift.length === 0 || view.spec.lifecycle.drift === 'ignore') {
    return condition('DriftDetected', 'False', { reason: 'AsApplied', message: 'The workload runs as applied' });
  }
  return condition('DriftDetected', 'True', describeAltered({ drift }, view));
}

/**
 * The condition `UpToDate`: the answering server matches the newest spec. Derived from the other conditions, so waiting
 * for this one alone is enough: it is true only if nothing is stalled or under way, and the slot answers or rests on
 * purpose. Pure.
 */
function deriveUpToDate(
  { ready, reconciling, stalled }: Readonly<Record<'ready' | 'reconciling' | 'stalled', ConditionInput>>,
  { unwanted, gate, view }: ConditionFacts,
): ConditionInput {
  if (stalled.status === 'True') return condition('UpToDate', 'False', stalled);
  if (ready.status === 'Unknown') return condition('UpToDate', 'Unknown', ready);
  if (view.slot.paused?.waits === true) return condition('UpToDate', 'False', { reason: 'Paused', message: EDIT_WAITS });
  if (ready.status === 'True') {
    // `PreviousServes` says more than the progress of the replacement.
    if (reconciling.status !== 'False') return condition('UpToDate', 'False', ready.reason === 'PreviousServes' ? ready : reconciling);
    const unknown = isMemoryUnknown(view.template) ? `; ${MEMORY_UNKNOWN}` : '';
    const paused = view.slot.paused === undefined ? '' : '; rollouts are paused, and the next edit waits';
    return condition('UpToDate', 'True', { reason: 'SpecInForce', message: `The newest spec is in force${paused}${unknown}` });
  }
  if (reconciling.status !== 'False') return condition('UpToDate', 'False', ready);
  // The next request would load the slot, and nothing could answer it.
  const isStuck = gate?.kind === 'stalled' || gate?.kind === 'memory';
  if (isStuck && unwanted?.reason !== 'Disabled' && unwanted?.reason !== 'NoReplicas') return condition('UpToDate', 'False', gate);
  // A slot that should run, does not answer and for which nothing is under way, is one about which too little is known.
  return condition('UpToDate', unwanted === undefined ? 'Unknown' : 'True', ready);
}

const EDIT_WAITS = 'Rollouts are paused, and an edit waits: "svcctl rollout resume" lets it take effect';
const MEMORY_UNKNOWN =
  'how much memory it needs is not known, since the gateway cannot read its model, and none is reserved: set "resources.memory"';
