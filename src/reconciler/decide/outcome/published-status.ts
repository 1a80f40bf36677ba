/** What is published of a slot: its status, and which of its changes the timeline gets. Pure. */
import type { ModelId, Revision, WorkloadId } from '../../../schema/words/names.ts';
import { ANSWERING_STATES, type RecordedFailure, type SlotStatus, type TimelineEntry } from '../../../schema/status/slot-status.ts';
import { reuse } from '../../../schema/words/same-value.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { Attempt, Decision, Observed, PublishedSlot } from '../facts/facts.ts';
import { hashUnscaled } from '../facts/slot-edit.ts';

export type NewEntry = Omit<TimelineEntry, 'seq' | 'at' | 'slot'>;

/** What a status needs beyond the decision. */
export interface StatusFacts {
  /** The model that answers now, or the wanted one while none does. */
  readonly model: ModelId;
  readonly restarts: number;
  readonly failures: readonly Attempt[];
}

export function statusFacts(slot: DesiredSlot, { serving }: Decision, observed: Observed): StatusFacts {
  const origin = serving === undefined ? undefined : observed.histories.get(serving)?.origin;
  const { starts = 0, failures = NO_FAILURES } = observed.attempts.get(slot.name) ?? {};
  return { model: origin?.model.id ?? servedModel(slot, serving, observed), restarts: Math.max(0, starts - 1), failures };
}

/** A controller that has not started a server itself knows its model by the revision. */
function servedModel({ spec, rollout }: DesiredSlot, serving: WorkloadId | undefined, { runtime }: Observed): ModelId {
  const { accepted } = rollout ?? {};
  const workloads = accepted === undefined || serving === undefined || runtime.kind !== 'reachable' ? [] : runtime.facts.workloads;
  const isAccepted = workloads.some(({ id, revision }) => id === serving && revision === accepted?.revision);
  return (isAccepted && accepted !== undefined ? accepted.spec : spec).model.default;
}

const NO_FAILURES: readonly Attempt[] = [];

export function statusOf(
  { name, uid, generation, spec, rollout }: DesiredSlot,
  facts: StatusFacts,
  published: PublishedSlot,
  failures: readonly RecordedFailure[],
): SlotStatus {
  const { decision, since, conditions } = published;
  const { state, replicas, memoryBytes, progress } = decision;
  const endpoint = decision.targets[0]?.endpoint;
  return {
    name,
    state,
    conditions,
    observedGeneration: generation,
    provider: spec.provider,
    ...(decision.backend === undefined ? {} : { backend: decision.backend }),
    model: facts.model,
    ...(endpoint === undefined ? {} : { endpoint: endpoint.link?.url ?? `http://${endpoint.host}:${endpoint.port}` }),
    ...(replicas === undefined ? {} : { replicas }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    restarts: facts.restarts,
    ...(failures.length === 0 ? {} : { failures, failedSpec: hashUnscaled(spec, uid) }),
    since,
    ...(progress === undefined ? {} : { progress }),
    ...rolloutOf(rollout),
  };
}

/** What is said of the last edit, where its model failed. */
function rolloutOf(rollout: DesiredSlot['rollout']): Pick<SlotStatus, 'rollout'> {
  const verdict = rollout?.rolledBack?.verdict ?? rollout?.verdict;
  if (verdict === undefined || verdict.outcome === 'passed') return {};
  const { outcome, because, misses, score = null } = verdict;
  return { rollout: { outcome, because, misses, score } };
}

/** `last` is undefined for a slot that was not published before. */
export function describeChanges({ decision, conditions }: PublishedSlot, last: PublishedSlot | undefined): readonly NewEntry[] {
  const before = last?.decision;
  const { generation, waitingReason } = decision;
  return [
    ...(before?.generation === generation ? [] : [{ kind: 'spec' as const, message: `Change applied (generation ${generation})` }]),
    ...stateChange(decision, before),
    ...(waitingReason === undefined || waitingReason.kind === before?.waitingReason?.kind
      ? []
      : [{ kind: 'failure' as const, message: waitingReason.message, cause: waitingReason.reason }]),
    ...conditionChanges(conditions, last?.conditions),
  ];
}

function stateChange({ state, findings }: Decision, before: Decision | undefined): readonly NewEntry[] {
  if (before?.state === state) return [];
  const finding = findings[0];
  const cause = finding === undefined ? {} : { cause: `${finding.reason}: ${finding.message}` };
  if (before === undefined) return [{ kind: 'state', message: `The slot is "${state}"`, to: state, ...cause }];
  // Each request would fill the timeline.
  if (ANSWERING_STATES.has(before.state) && ANSWERING_STATES.has(state)) return [];
  return [{ kind: 'state', message: `From "${before.state}" to "${state}"`, from: before.state, to: state, ...cause }];
}

/** `Ready`, `UpToDate` and `Reconciling` change with the state, which has an entry of its own. */
function conditionChanges(conditions: PublishedSlot['conditions'], before: PublishedSlot['conditions'] | undefined): readonly NewEntry[] {
  return conditions.flatMap(({ type, status, reason, message }) => {
    if (type === 'Ready' || type === 'UpToDate' || type === 'Reconciling') return [];
    const last = before?.find((condition) => condition.type === type);
    const isNormal = (status === 'True') === (type === 'SpecValid');
    if (status === last?.status || (last === undefined && isNormal)) return [];
    const kind = type === 'DriftDetected' && status === 'True' ? 'drift' : 'condition';
    return [{ kind, message: `${type} is ${status}${isNormal ? '' : `: ${message}`}`, cause: reason }];
  });
}

/** What is remembered of a slot between passes. */
export interface SwapProgress {
  /** Undefined before anything has answered, and while the slot is at rest. */
  readonly answered: Answering | undefined;
  /** The revision whose swap has been announced. */
  readonly announced: Revision | undefined;
}

interface Answering {
  /** Undefined for one from before an edit that this controller found so. */
  readonly revision: Revision | undefined;
  readonly model: ModelId;
}

export const NO_SWAP: SwapProgress = { answered: undefined, announced: undefined };

/**
 * Answers the question: has a swap begun or ended? Compares which revision answered last with the one that is wanted
 * and the one that answers now. Restarts of one revision, updates in place, and slots that were at rest in between are
 * no swaps.
 *
 *     answered last   wanted   answers now    entry
 *     a               a        a, or nothing  none
 *     a               b        a, or nothing  the swap has begun, once for each b
 *     a               b        b              the swap has ended
 * `model`: the one that answers now; while none does, the wanted one.
 */
export function followSwap(
  before: SwapProgress,
  decision: Decision,
  model: { readonly now: ModelId; readonly wanted: ModelId },
): { readonly progress: SwapProgress; readonly entries: readonly NewEntry[] } {
  const { wanted, revision, serving, conditions } = decision;
  if (!wanted) return { progress: NO_SWAP, entries: [] };
  const ready = conditions.find(({ type }) => type === 'Ready');
  const isHeldUp = conditions.some(({ type, reason }) => type === 'Stalled' && reason === 'InternalError');
  if (revision === undefined || isHeldUp) return { progress: before, entries: [] };
  if (serving !== undefined && ready?.reason === 'ProbePassed') {
    const ended = before.answered !== undefined && before.answered.revision !== revision;
    const progress = { answered: { revision, model: model.now }, announced: undefined };
    return { progress: reuse(before, progress), entries: ended ? [endOf(before.answered.model, model.now)] : [] };
  }
  const foundSo = serving !== undefined && ready?.reason === 'PreviousServes' ? { revision: undefined, model: model.now } : undefined;
  const answered = before.answered ?? foundSo;
  if (answered === undefined || answered.revision === revision || before.announced === revision) return { progress: before, entries: [] };
  return { progress: { answered, announced: revision }, entries: [beginningOf(answered.model, model.wanted)] };
}

function beginningOf(old: ModelId, next: ModelId): NewEntry {
  const message = old === next ? `A new server of model "${next}" replaces the present one` : `Model "${next}" replaces model "${old}"`;
  return { kind: 'swap', message, cause: 'SwapStarted' };
}

function endOf(old: ModelId, next: ModelId): NewEntry {
  const message = old === next ? `A new server of model "${next}" answers now` : `Model "${next}" answers now instead of model "${old}"`;
  return { kind: 'swap', message, cause: 'SwapFinished' };
}
