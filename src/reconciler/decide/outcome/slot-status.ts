/** What is published of a slot: its status, and which of its changes the timeline gets. Pure. */
import type { ModelId } from '../../../schema/names.ts';
import type { SlotStatus, TimelineEntry } from '../../../schema/slot-status.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { Decision, Observed, PublishedSlot } from '../facts/facts.ts';

export type NewEntry = Omit<TimelineEntry, 'seq' | 'at' | 'slot'>;

/** What a status needs beyond the decision. */
export interface StatusFacts {
  /** The model that answers now, or the wanted one while none does. */
  readonly model: ModelId;
  readonly restarts: number;
}

export function statusFacts({ name, spec }: DesiredSlot, { serving }: Decision, observed: Observed): StatusFacts {
  const origin = serving === undefined ? undefined : observed.histories.get(serving)?.origin;
  const starts = observed.attempts.get(name)?.starts ?? 0;
  return { model: origin?.model.id ?? spec.model.default, restarts: Math.max(0, starts - 1) };
}

export function statusOf({ name, spec, generation }: DesiredSlot, facts: StatusFacts, published: PublishedSlot): SlotStatus {
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

function stateChange({ state, findings }: Decision, before: Decision | undefined): readonly NewEntry[] {
  if (before?.state === state) return [];
  const finding = findings[0];
  const cause = finding === undefined ? {} : { cause: `${finding.reason}: ${finding.message}` };
  if (before === undefined) return [{ kind: 'state', message: `Found "${state}"`, to: state, ...cause }];
  return [{ kind: 'state', message: `"${before.state}" to "${state}"`, from: before.state, to: state, ...cause }];
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
