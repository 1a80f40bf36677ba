/**
 * Converts a slot's status to the `status` of its resource, and back. Pure.
 *
 * kstatus judges it: in progress while `observedGeneration` lags behind or `Reconciling` is true; failed while
 * `Stalled` is true; in progress while `Ready` is present and not true; otherwise current. So a slot that is off has no
 * `Ready` at all.
 */
import { z } from 'zod';
import { ModelId, ProviderName, type SlotName } from '../../../schema/words/names.ts';
import { defined, LABELS } from '../../../schema/pod/kube-fields.ts';
import { BACKENDS } from '../../../schema/slot/provider-kinds.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { SlotResourceStatus } from '../../../schema/slot/slot-resource.ts';
import { isAtRestReason, parseReason, type Reason } from '../../../schema/status/reasons.ts';
import {
  ANSWERING_STATES,
  AT_REST,
  CONDITION_TYPES,
  CRASH_KINDS,
  SLOT_STATES,
  type Condition,
  type ConditionType,
  type SlotStatus,
} from '../../../schema/status/slot-status.ts';
import { formatProblem, type SpecProblem } from '../../../schema/slot/spec-problem.ts';
import { slotObjectName } from '../../workloads/decide/object-names.ts';
import { kubeTime } from '../../client/decide/object-fields.ts';
import type { Failure } from '../../../schema/words/failure.ts';

type ResourceCondition = NonNullable<SlotResourceStatus['conditions']>[number];

const LONGEST_MESSAGE = 32_768;
const MOST_RESTARTS = 2_147_483_647;

/** `present`: the status on the server. Unchanged states and conditions keep their times. */
export function toResourceStatus(status: SlotStatus, namespace: string, present: SlotResourceStatus | undefined): SlotResourceStatus {
  const { name, replicas, progress: _progress, rollout: _rollout, failures, ...same } = status;
  return {
    ...same,
    summary: summarize(status.conditions),
    conditions: withoutReadyAtRest(status.conditions).map((condition) => toResourceCondition(condition, present)),
    endpoint: serviceUrl(status, namespace),
    memoryBytes: status.memoryBytes === undefined ? undefined : Math.round(status.memoryBytes),
    restarts: Math.min(status.restarts, MOST_RESTARTS),
    since: keepSince(present, status.state) ?? kubeTime(status.since),
    failures: failures?.map(({ at, ...failure }) => ({ at: kubeTime(at), ...failure })),
    replicas: replicas?.present,
    readyReplicas: replicas?.ready,
    // At rest it selects no pod, and an autoscaler needs one all the same.
    selector: replicas?.selector ?? selectorOf(name),
  };
}

/** The status of a slot that never had a valid spec. `at`: when the spec was refused, in Unix milliseconds. */
export function refusedResourceStatus(
  slot: { readonly name: SlotName; readonly generation: number; readonly problems: readonly SpecProblem[]; readonly at: number },
  present: SlotResourceStatus | undefined,
): SlotResourceStatus {
  const message = slot.problems.map((problem) => formatProblem(problem, 'camelCase')).join('; ');
  const rest = { reason: 'SpecInvalid', message, lastTransitionAt: slot.at, observedGeneration: slot.generation } as const;
  const types = ['Ready', 'UpToDate', 'Reconciling', 'Stalled', 'SpecValid'] as const;
  const conditions = types.map((type): Condition => ({ type, status: type === 'Stalled' ? 'True' : 'False', ...rest }));
  return {
    state: 'offline',
    summary: summarize(conditions),
    observedGeneration: slot.generation,
    conditions: conditions.map((condition) => toResourceCondition(condition, present)),
    since: keepSince(present, 'offline') ?? kubeTime(slot.at),
    selector: selectorOf(slot.name),
  };
}

export const isSameStatus = (next: SlotResourceStatus, present: SlotResourceStatus | undefined): boolean =>
  present !== undefined && isSameValue(comparable(next), comparable(present));

/** Whether users and tools wait for the difference. Counters, messages and effects of requests can be late. */
export const isUrgent = (next: SlotResourceStatus, present: SlotResourceStatus | undefined): boolean =>
  present === undefined || !isSameValue(urgentPart(next), urgentPart(present));

export const isTransitional = (next: SlotResourceStatus | undefined): boolean => conditionOf(next, 'Reconciling')?.status === 'True';

/** Whether a start goes on that the status already shows. */
export const isFurtherStep = (next: SlotResourceStatus, present: SlotResourceStatus | undefined): boolean =>
  present?.observedGeneration === next.observedGeneration && isTransitional(next) && isTransitional(present);

/** Whether a slot that was ready is being started again, although its spec did not change. */
export function isSetback(next: SlotResourceStatus, present: SlotResourceStatus | undefined): boolean {
  const isSameSpec = present?.observedGeneration === next.observedGeneration;
  return isSameSpec && isTransitional(next) && conditionOf(present, 'Ready')?.status === 'True';
}

function comparable(status: SlotResourceStatus): unknown {
  return { ...status, conditions: Object.fromEntries((status.conditions ?? []).map((condition) => [condition.type, condition])) };
}

/** A last good spec changes together with the generation. */
function urgentPart(resource: SlotResourceStatus): unknown {
  const { since: _since, restarts: _restarts, memoryBytes: _memoryBytes, lastGood: _lastGood, summary, ...status } = resource;
  const conditions = (status.conditions ?? []).map(({ type, status: value, reason }) => [type, [value, reason]] as const);
  const state = status.state !== undefined && ANSWERING_STATES.has(status.state) ? 'active' : status.state;
  return { ...status, state, summary: [summary?.ready, summary?.reason], conditions: Object.fromEntries(conditions) };
}

const Count = z.number().catch(0);
/** Unix milliseconds; 0 if it is not a time. */
const Time = z.string().transform(Date.parse).pipe(z.number()).catch(0);
const toReason = (text: string): Reason => parseReason(text) ?? 'Unknown';

const PublishedCondition = z
  .object({
    type: z.enum(CONDITION_TYPES),
    status: z.enum(['True', 'False', 'Unknown']),
    reason: z.string().catch('').transform(toReason),
    message: z.string().catch(''),
    lastTransitionTime: Time,
    observedGeneration: Count,
  })
  .transform(({ lastTransitionTime: lastTransitionAt, ...same }) => ({ ...same, lastTransitionAt }));

const PublishedFailure = z.object({ at: Time, kind: z.enum(CRASH_KINDS), reason: z.string().transform(toReason), message: z.string() });

const PublishedStatus = z.object({
  state: z.enum(SLOT_STATES),
  observedGeneration: Count,
  conditions: z.array(PublishedCondition.optional().catch(undefined)).catch([]),
  provider: ProviderName,
  backend: z.enum(BACKENDS).optional(),
  model: ModelId,
  endpoint: z.string().optional().catch(undefined),
  memoryBytes: z.number().optional().catch(undefined),
  restarts: Count,
  since: Time,
  failures: z.array(PublishedFailure).optional().catch(undefined),
  failedSpec: z.string().optional().catch(undefined),
  replicas: z.number().optional().catch(undefined),
  readyReplicas: Count,
});

/** The status that a replica published; undefined for an incomplete one. A damaged field gets a default. */
export function parseResourceStatus(name: SlotName, status: unknown): SlotStatus | undefined {
  const published = PublishedStatus.safeParse(status).data;
  if (published === undefined) return undefined;
  const { conditions, backend, endpoint, memoryBytes, replicas, readyReplicas, failures, failedSpec, ...same } = published;
  return {
    name,
    ...same,
    conditions: withReadyAtRest(CONDITION_TYPES.flatMap((type) => conditions.find((each) => each?.type === type) ?? [])),
    ...defined({ backend, endpoint, memoryBytes, failures, failedSpec }),
    ...(replicas === undefined ? {} : { replicas: { present: replicas, ready: readyReplicas } }),
  };
}

/** Where `UpToDate` is false, it says more than `Ready`. A slot always has both. */
function summarize(conditions: readonly Condition[]): SlotResourceStatus['summary'] {
  const ready = conditions.find(({ type }) => type === 'Ready');
  const upToDate = conditions.find(({ type }) => type === 'UpToDate');
  const telling = upToDate?.status === 'False' ? upToDate : ready;
  if (ready === undefined || telling === undefined) return undefined;
  return { ready: ready.status, reason: telling.reason, message: telling.message.slice(0, LONGEST_MESSAGE) };
}

/** Removes `Ready` from a slot at rest; `Reconciling` then explains why it rests. */
function withoutReadyAtRest(conditions: readonly Condition[]): readonly Condition[] {
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True' || !isAtRestReason(ready.reason)) return conditions;
  const { reason, message } = ready;
  return conditions
    .filter((condition) => condition !== ready)
    .map((condition) => (condition.type === 'Reconciling' && condition.status === 'False' ? { ...condition, reason, message } : condition));
}

function withReadyAtRest(conditions: readonly Condition[]): readonly Condition[] {
  const reconciling = conditions.find(({ type }) => type === 'Reconciling');
  if (reconciling === undefined || conditions.some(({ type }) => type === 'Ready')) return conditions;
  const rested = conditions.map((condition) =>
    condition === reconciling && condition.status === 'False' ? { ...condition, ...AT_REST } : condition,
  );
  return [{ ...reconciling, type: 'Ready', status: 'False' }, ...rested];
}

function toResourceCondition({ lastTransitionAt, ...same }: Condition, present: SlotResourceStatus | undefined): ResourceCondition {
  const before = conditionOf(present, same.type);
  return {
    ...same,
    lastTransitionTime: before?.status === same.status ? before.lastTransitionTime : kubeTime(lastTransitionAt),
    message: same.message.slice(0, LONGEST_MESSAGE),
  };
}

const conditionOf = (status: SlotResourceStatus | undefined, type: ConditionType): ResourceCondition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);

/** The endpoint in the status is the address of one pod. */
function serviceUrl({ name, endpoint }: SlotStatus, namespace: string): string | undefined {
  const port = endpoint === undefined ? undefined : /:(\d+)\/?$/.exec(endpoint)?.[1];
  return port === undefined ? undefined : `http://${slotObjectName(name)}.${namespace}.svc:${port}`;
}

const selectorOf = (slot: SlotName): string => `${LABELS.slot}=${slot}`;

const keepSince = (present: SlotResourceStatus | undefined, state: SlotStatus['state']): string | undefined =>
  present?.state === state ? present.since : undefined;

/** `failed to create typed patch object (…): .status.lastGood: field not declared in schema`, once for each field. */
const UNDECLARED = /\.status\.(\w+)[^:\s]*: field not declared in schema/g;

/**
 * Fields that an older definition on the server lacks: Helm never upgrades one. A server-side apply with such a field
 * is rejected as a whole, so that not even the conditions would be published.
 */
export const findUndeclared = ({ message }: Failure): readonly string[] => [
  ...new Set([...message.matchAll(UNDECLARED)].flatMap(([, field]) => field ?? [])),
];

export const describeOlder = (fields: readonly string[]): string =>
  `The CustomResourceDefinition on the server is older and has no ${fields.map((field) => `"${field}"`).join(', ')}: apply the one of this version with "kubectl apply --server-side -k crds"`;

export function withoutFields<Status extends object>(status: Status, fields: ReadonlySet<string>): Partial<Status> {
  if (!Object.keys(status).some((field) => fields.has(field))) return status;
  const kept: Partial<Status> = { ...status };
  for (const field of Object.keys(kept)) if (fields.has(field)) Reflect.deleteProperty(kept, field);
  return kept;
}
