/**
 * Converts a slot's status to the `status` of its resource, and back. Fields with the same name and meaning are passed through. Pure.
 *
 * How kstatus judges it: in progress while `observedGeneration` lags behind or `Reconciling` is true; failed while `Stalled` is true; in progress while
 * `Ready` is present and not true; otherwise current. Therefore a slot that is not wanted has no `Ready` at all: it is current.
 */
import { z } from 'zod';
import { isTable } from '../../../schema/key-case.ts';
import { ModelId, type SlotName } from '../../../schema/names.ts';
import { LABELS } from '../../../schema/object-labels.ts';
import { BACKENDS, PROVIDER_KIND_NAMES } from '../../../schema/provider-kinds.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import type { SlotResourceStatus } from '../../../schema/slot-resource.ts';
import { CONDITION_TYPES, SLOT_STATES, type Condition, type SlotStatus } from '../../../schema/slot-status.ts';
import { formatProblem, type SpecProblem } from '../../../schema/spec-problem.ts';
import { slotObjectName } from '../../workloads/decide/kube-names.ts';
import { kubeTime } from './kube-time.ts';

type ResourceCondition = NonNullable<SlotResourceStatus['conditions']>[number];

/** Reasons of a `Ready` that is false because nobody wants the slot to run now. Named after the reconciler's rules for that. */
const AT_REST_REASONS: ReadonlySet<string> = new Set(['Disabled', 'NoReplicas', 'NotAskedFor', 'IdleTimedOut']);

/** The reconciler's own words for `Reconciling` being false. */
const AT_REST = { reason: 'AtRest', message: 'There is nothing to do' } as const;

/** Limits in the schema of the resource. */
const LONGEST_MESSAGE = 32_768;
const MOST_RESTARTS = 2_147_483_647;

/**
 * `present` is the status on the server. An unchanged condition keeps its transition time, and an unchanged state its time, so that a new leader does not
 * write what is already there.
 */
export function toResourceStatus(status: SlotStatus, namespace: string, present: unknown): SlotResourceStatus {
  const { name, replicas, progress: _progress, ...same } = status;
  return {
    ...same,
    conditions: withoutReadyAtRest(status.conditions).map((condition) => toResourceCondition(condition, present)),
    endpoint: serviceUrl(status, namespace),
    memoryBytes: status.memoryBytes === undefined ? undefined : Math.round(status.memoryBytes),
    restarts: Math.min(status.restarts, MOST_RESTARTS),
    since: sinceOf(present, status.state) ?? kubeTime(status.since),
    replicas: replicas?.present,
    readyReplicas: replicas?.ready,
    selector: selectorOf(name),
  };
}

/** The status of a slot that never had a valid spec. `at`: when the spec was refused, in Unix milliseconds. */
export function refusedResourceStatus(
  slot: { readonly name: SlotName; readonly generation: number; readonly problems: readonly SpecProblem[]; readonly at: number },
  present: unknown,
): SlotResourceStatus {
  const message = slot.problems.map((problem) => formatProblem(problem, 'camelCase')).join('; ');
  const rest = { reason: 'SpecInvalid', message, lastTransitionAt: slot.at, observedGeneration: slot.generation };
  const conditions: readonly Condition[] = [
    { type: 'Ready', status: 'False', ...rest },
    { type: 'Reconciling', status: 'False', ...rest },
    { type: 'Stalled', status: 'True', ...rest },
    { type: 'SpecValid', status: 'False', ...rest },
  ];
  return {
    state: 'offline',
    observedGeneration: slot.generation,
    conditions: conditions.map((condition) => toResourceCondition(condition, present)),
    since: sinceOf(present, 'offline') ?? kubeTime(slot.at),
    selector: selectorOf(slot.name),
  };
}

// ---- how the wanted status compares to the one on the server ----

/** Whether the server has exactly this status. The order of conditions does not matter. */
export function isSameStatus(next: SlotResourceStatus, present: unknown): boolean {
  return isTable(present) && isSameValue(comparable(next), comparable(present));
}

/** Whether users and tools wait for the difference. Effects of requests, counters and messages can be published later. */
export function isUrgent(next: SlotResourceStatus, present: unknown): boolean {
  return !isTable(present) || !isSameValue(urgentPart(next), urgentPart(present));
}

/** Whether another status will follow soon. */
export function isTransitional(next: SlotResourceStatus): boolean {
  return next.conditions?.some(({ type, status }) => type === 'Reconciling' && status === 'True') === true;
}

/** Whether a slot that was ready is being started again, although its spec did not change. */
export function isSetback(next: SlotResourceStatus, present: unknown): boolean {
  if (!isTransitional(next) || !isTable(present) || present['observedGeneration'] !== next.observedGeneration) return false;
  return conditionIn(present, 'Ready')?.['status'] === 'True';
}

function comparable(status: Readonly<Record<string, unknown>>): unknown {
  const conditions = conditionsIn(status);
  return { ...status, conditions: Object.fromEntries(conditions.map((condition) => [String(condition['type']), condition])) };
}

const ACTIVE_STATES: ReadonlySet<unknown> = new Set(['ready', 'serving', 'idle']);

function urgentPart({
  since: _since,
  restarts: _restarts,
  memoryBytes: _memoryBytes,
  ...status
}: Readonly<Record<string, unknown>>): unknown {
  const conditions = conditionsIn(status).map(({ type, status: value, reason }) => [String(type), [value, reason]] as const);
  const { state } = status;
  return { ...status, state: ACTIVE_STATES.has(state) ? 'active' : state, conditions: Object.fromEntries(conditions) };
}

// ---- back ----

const Count = z.number().catch(0);
/** Unix milliseconds; 0 if it is not a time. */
const Time = z
  .string()
  .transform((text) => Date.parse(text))
  .pipe(z.number())
  .catch(0);

const PublishedStatus = z.object({
  state: z.enum(SLOT_STATES),
  observedGeneration: Count,
  provider: z.enum(PROVIDER_KIND_NAMES),
  backend: z.enum(BACKENDS),
  model: ModelId,
  endpoint: z.string().optional().catch(undefined),
  memoryBytes: z.number().optional().catch(undefined),
  restarts: Count,
  since: Time,
  replicas: z.number().optional().catch(undefined),
  readyReplicas: Count,
});

const PublishedCondition = z
  .object({
    type: z.enum(CONDITION_TYPES),
    status: z.enum(['True', 'False', 'Unknown']),
    reason: z.string().catch('Unknown'),
    message: z.string().catch(''),
    lastTransitionTime: Time,
    observedGeneration: Count,
  })
  .transform(({ lastTransitionTime: lastTransitionAt, ...same }) => ({ ...same, lastTransitionAt }));

/** Returns a status that this or another replica published; undefined for any other or incomplete one. A damaged field gets a default. */
export function parseResourceStatus(name: SlotName, status: unknown): SlotStatus | undefined {
  const published = PublishedStatus.safeParse(status).data;
  if (published === undefined) return undefined;
  const { endpoint, memoryBytes, replicas, readyReplicas, ...same } = published;
  const conditions = CONDITION_TYPES.flatMap((type) => PublishedCondition.safeParse(conditionIn(status, type)).data ?? []);
  return {
    name,
    ...same,
    conditions: withReadyAtRest(conditions),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(replicas === undefined ? {} : { replicas: { present: replicas, ready: readyReplicas } }),
  };
}

// ---- conditions ----

/** Removes `Ready` from a slot at rest; `Reconciling` then explains why it rests. */
function withoutReadyAtRest(conditions: readonly Condition[]): readonly Condition[] {
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True' || !AT_REST_REASONS.has(ready.reason)) return conditions;
  const { reason, message } = ready;
  return conditions
    .filter((condition) => condition !== ready)
    .map((condition) => (condition.type === 'Reconciling' && condition.status === 'False' ? { ...condition, reason, message } : condition));
}

/** The inverse of `withoutReadyAtRest`. */
function withReadyAtRest(conditions: readonly Condition[]): readonly Condition[] {
  const reconciling = conditions.find(({ type }) => type === 'Reconciling');
  if (reconciling === undefined || conditions.some(({ type }) => type === 'Ready')) return conditions;
  const rested = conditions.map((condition) =>
    condition === reconciling && condition.status === 'False' ? { ...condition, ...AT_REST } : condition,
  );
  return [{ ...reconciling, type: 'Ready', status: 'False' }, ...rested];
}

function toResourceCondition({ lastTransitionAt, ...same }: Condition, present: unknown): ResourceCondition {
  const before = conditionIn(present, same.type);
  const keptTime = before?.['status'] === same.status ? before['lastTransitionTime'] : undefined;
  return {
    ...same,
    lastTransitionTime: typeof keptTime === 'string' ? keptTime : kubeTime(lastTransitionAt),
    reason: same.reason === '' ? 'Unknown' : same.reason,
    message: same.message.slice(0, LONGEST_MESSAGE),
  };
}

function conditionIn(status: unknown, type: string): Readonly<Record<string, unknown>> | undefined {
  return conditionsIn(status).find((condition) => condition['type'] === type);
}

function conditionsIn(status: unknown): readonly Readonly<Record<string, unknown>>[] {
  const list = isTable(status) ? status['conditions'] : undefined;
  return Array.isArray(list) ? list.filter((value) => isTable(value)) : [];
}

// ---- values ----

/** URL of the Service of the slot; the endpoint in the status is the address of one pod. */
function serviceUrl({ name, endpoint }: SlotStatus, namespace: string): string | undefined {
  const port = endpoint === undefined ? undefined : /:(\d+)\/?$/.exec(endpoint)?.[1];
  return port === undefined ? undefined : `http://${slotObjectName(name)}.${namespace}.svc:${port}`;
}

function selectorOf(slot: SlotName): string {
  return `${LABELS.slot}=${slot}`;
}

function sinceOf(present: unknown, state: string): string | undefined {
  if (!isTable(present) || present['state'] !== state) return undefined;
  return typeof present['since'] === 'string' ? present['since'] : undefined;
}
