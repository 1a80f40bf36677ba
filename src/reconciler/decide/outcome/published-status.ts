/** What is published of a slot: its status, and which of its changes the timeline gets. Pure. */
import type { ModelId } from '../../../schema/words/names.ts';
import type { RecordedFailure, SlotState, SlotStatus, TimelineEntry } from '../../../schema/status/slot-status.ts';
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

export function statusFacts({ name, spec }: DesiredSlot, { serving }: Decision, observed: Observed): StatusFacts {
  const origin = serving === undefined ? undefined : observed.histories.get(serving)?.origin;
  const { starts = 0, failures = NO_FAILURES } = observed.attempts.get(name) ?? {};
  return { model: origin?.model.id ?? spec.model.default, restarts: Math.max(0, starts - 1), failures };
}

const NO_FAILURES: readonly Attempt[] = [];

export function statusOf(
  { name, spec, generation }: DesiredSlot,
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
    ...(endpoint === undefined ? {} : { endpoint: `http://${endpoint.host}:${endpoint.port}` }),
    ...(replicas === undefined ? {} : { replicas }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    restarts: facts.restarts,
    ...(failures.length === 0 ? {} : { failures, failedSpec: hashUnscaled(spec) }),
    since,
    ...(progress === undefined ? {} : { progress }),
  };
}

/** `last` is undefined for a slot that was not published before. */
export function describeChanges({ decision, conditions }: PublishedSlot, last: PublishedSlot | undefined): readonly NewEntry[] {
  const before = last?.decision;
  const { generation, waitingReason } = decision;
  return [
    ...(before?.generation === generation ? [] : [{ kind: 'spec' as const, message: `Generation ${generation} is in force` }]),
    ...stateChange(decision, before),
    ...(waitingReason === undefined || waitingReason.kind === before?.waitingReason?.kind
      ? []
      : [{ kind: 'failure' as const, message: waitingReason.message, cause: waitingReason.reason }]),
    ...conditionChanges(conditions, last?.conditions),
  ];
}

/** Between these a slot moves with each request, which would fill its timeline. */
const ANSWERING: ReadonlySet<SlotState> = new Set(['ready', 'serving', 'idle']);

function stateChange({ state, findings }: Decision, before: Decision | undefined): readonly NewEntry[] {
  if (before?.state === state) return [];
  const finding = findings[0];
  const cause = finding === undefined ? {} : { cause: `${finding.reason}: ${finding.message}` };
  if (before === undefined) return [{ kind: 'state', message: `The slot is "${state}"`, to: state, ...cause }];
  if (ANSWERING.has(before.state) && ANSWERING.has(state)) return [];
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
    return [{ kind, message: `${type} is ${status}: ${message}`, cause: reason }];
  });
}
