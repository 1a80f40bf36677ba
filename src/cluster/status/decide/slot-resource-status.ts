/**
 * What is known of a slot as the `status` of its resource, and back. kstatus reads it so: in progress while `observedGeneration` lags behind or
 * `Reconciling` is true, failed while `Stalled` is true, else current unless there is a `Ready` that is not true. Therefore a slot that is not wanted
 * has no `Ready` at all: it is as it shall be. Pure.
 */
import { isTable } from '../../../schema/key-case.ts';
import { ModelId, type SlotName } from '../../../schema/names.ts';
import { LABELS } from '../../../schema/object-labels.ts';
import { BACKENDS, PROVIDER_KIND_NAMES } from '../../../schema/provider-kinds.ts';
import { isAtRestReason, parseReason } from '../../../schema/reasons.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import type { SlotResourceStatus } from '../../../schema/slot-resource.ts';
import { AT_REST, CONDITION_TYPES, SLOT_STATES, type Condition, type SlotStatus } from '../../../schema/slot-status.ts';
import { formatProblem, type SpecProblem } from '../../../schema/spec-problem.ts';

type ResourceCondition = NonNullable<SlotResourceStatus['conditions']>[number];

const LONGEST_MESSAGE = 32_768;
const MOST_RESTARTS = 2_147_483_647;

/**
 * `present` is the status that the server has: a condition that says the same keeps its time, and so does the state, so that a replica that
 * takes over writes nothing that is there already.
 */
export function describeStatus(status: SlotStatus, namespace: string, present: unknown): SlotResourceStatus {
  const conditions = restingConditions(status.conditions).map((condition) => describeCondition(condition, present));
  const endpoint = serviceUrl(status, namespace);
  return {
    state: status.state,
    observedGeneration: status.observedGeneration,
    conditions,
    provider: status.provider,
    backend: status.backend,
    model: status.model,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(status.memoryBytes === undefined ? {} : { memoryBytes: Math.round(status.memoryBytes) }),
    restarts: Math.min(status.restarts, MOST_RESTARTS),
    since: sinceOf(present, status.state) ?? timeText(status.since),
    ...(status.replicas === undefined ? {} : { replicas: status.replicas.present, readyReplicas: status.replicas.ready }),
    selector: selectorOf(status.name),
  };
}

/** Of a slot whose text never was good: a person must act. */
export function describeRefusal(
  slot: { readonly name: SlotName; readonly generation: number; readonly problems: readonly SpecProblem[] },
  present: unknown,
  now: number,
): SlotResourceStatus {
  const message = slot.problems.map((problem) => formatProblem(problem, 'camelCase')).join('; ');
  const conditionOf = (type: Condition['type'], status: Condition['status']): ResourceCondition =>
    describeCondition(
      { type, status, reason: 'SpecInvalid', message, lastTransitionAt: now, observedGeneration: slot.generation },
      present,
    );
  return {
    state: 'offline',
    observedGeneration: slot.generation,
    conditions: [
      conditionOf('Ready', 'False'),
      conditionOf('Reconciling', 'False'),
      conditionOf('Stalled', 'True'),
      conditionOf('SpecValid', 'False'),
    ],
    since: sinceOf(present, 'offline') ?? timeText(now),
    selector: selectorOf(slot.name),
  };
}

/** Whether the server has exactly this. Conditions are a map: their order means nothing. */
export function isSameStatus(next: SlotResourceStatus, present: unknown): boolean {
  return isTable(present) && isSameValue(comparable(next), comparable(present));
}

/** Whether people and tools wait for the difference. What requests do to a slot, counters and wordings may come later. */
export function isUrgent(next: SlotResourceStatus, present: unknown): boolean {
  if (!isTable(present)) return true;
  return !isSameValue(gist(next), gist(present));
}

/** Whether more will follow soon. */
export function isTransitional(next: SlotResourceStatus): boolean {
  return next.conditions?.some(({ type, status }) => type === 'Reconciling' && status === 'True') === true;
}

/** Whether a slot that was well goes back to being brought up, though nobody asked for anything else. */
export function isSetback(next: SlotResourceStatus, present: unknown): boolean {
  if (!isTransitional(next) || !isTable(present) || present['observedGeneration'] !== next.observedGeneration) return false;
  return conditionTable(present, 'Ready')?.['status'] === 'True';
}

/** A status that was written here or by another replica; undefined where it is none of ours, or not whole. */
export function readStatus(name: SlotName, status: unknown): SlotStatus | undefined {
  if (!isTable(status)) return undefined;
  const state = SLOT_STATES.find((known) => known === status['state']);
  const provider = PROVIDER_KIND_NAMES.find((known) => known === status['provider']);
  const backend = BACKENDS.find((known) => known === status['backend']);
  const model = ModelId.safeParse(status['model']);
  if (state === undefined || provider === undefined || backend === undefined || !model.success) return undefined;
  const { endpoint, memoryBytes, replicas, readyReplicas } = status;
  return {
    name,
    state,
    conditions: wakingConditions(conditionsIn(status)),
    observedGeneration: numberOr(status['observedGeneration'], 0),
    provider,
    backend,
    model: model.data,
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
    ...(typeof memoryBytes === 'number' ? { memoryBytes } : {}),
    restarts: numberOr(status['restarts'], 0),
    ...(typeof replicas === 'number' ? { replicas: { present: replicas, ready: numberOr(readyReplicas, 0) } } : {}),
    since: timeOf(status['since']) ?? 0,
  };
}

// ---- conditions ----

/** Why the slot rests then stands where one would look for what is going on. */
function restingConditions(conditions: readonly Condition[]): readonly Condition[] {
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True' || !isAtRestReason(ready.reason)) return conditions;
  const { reason, message } = ready;
  return conditions
    .filter((condition) => condition !== ready)
    .map((condition) => (condition.type === 'Reconciling' && condition.status === 'False' ? { ...condition, reason, message } : condition));
}

/** The other way round. */
function wakingConditions(conditions: readonly Condition[]): readonly Condition[] {
  const reconciling = conditions.find(({ type }) => type === 'Reconciling');
  if (reconciling === undefined || conditions.some(({ type }) => type === 'Ready')) return conditions;
  const rests = (condition: Condition): Condition =>
    condition === reconciling && condition.status === 'False' ? { ...condition, ...AT_REST } : condition;
  return [{ ...reconciling, type: 'Ready', status: 'False' }, ...conditions.map(rests)];
}

function describeCondition(condition: Condition, present: unknown): ResourceCondition {
  const { type, status, observedGeneration } = condition;
  const before = conditionTable(present, type);
  const kept = before?.['status'] === status ? before['lastTransitionTime'] : undefined;
  return {
    type,
    status,
    observedGeneration,
    lastTransitionTime: typeof kept === 'string' ? kept : timeText(condition.lastTransitionAt),
    reason: condition.reason,
    message: condition.message.slice(0, LONGEST_MESSAGE),
  };
}

function conditionsIn(status: Readonly<Record<string, unknown>>): readonly Condition[] {
  return CONDITION_TYPES.flatMap((type): readonly Condition[] => {
    const table = conditionTable(status, type);
    const value = (['True', 'False', 'Unknown'] as const).find((known) => known === table?.['status']);
    if (table === undefined || value === undefined) return [];
    const { reason, message } = table;
    return [
      {
        type,
        status: value,
        reason: parseReason(reason) ?? 'Unknown',
        message: typeof message === 'string' ? message : '',
        lastTransitionAt: timeOf(table['lastTransitionTime']) ?? 0,
        observedGeneration: numberOr(table['observedGeneration'], 0),
      },
    ];
  });
}

function conditionTable(status: unknown, type: string): Readonly<Record<string, unknown>> | undefined {
  return tablesIn(isTable(status) ? status['conditions'] : undefined).find((condition) => condition['type'] === type);
}

function tablesIn(list: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(list) ? list.filter((value) => isTable(value)) : [];
}

// ---- what is compared ----

function comparable(status: Readonly<Record<string, unknown>>): unknown {
  const conditions = tablesIn(status['conditions']);
  return { ...status, conditions: Object.fromEntries(conditions.map((condition) => [String(condition['type']), condition])) };
}

const ACTIVE_STATES: ReadonlySet<unknown> = new Set(['ready', 'serving', 'idle']);

function gist(status: Readonly<Record<string, unknown>>): unknown {
  const { state, observedGeneration, provider, backend, model, endpoint, replicas, readyReplicas, selector } = status;
  const conditions = tablesIn(status['conditions']).map(({ type, status: value, reason }) => [String(type), [value, reason]] as const);
  return {
    observedGeneration,
    provider,
    backend,
    model,
    endpoint,
    replicas,
    readyReplicas,
    selector,
    state: ACTIVE_STATES.has(state) ? 'active' : state,
    conditions: Object.fromEntries(conditions),
  };
}

// ---- values ----

/** The Service in front of the slot's pods; what the status knows is the address of one of them. */
function serviceUrl({ name, endpoint }: SlotStatus, namespace: string): string | undefined {
  const port = endpoint === undefined ? undefined : /:(\d+)\/?$/.exec(endpoint)?.[1];
  return port === undefined ? undefined : `http://svc-slot-${name}.${namespace}.svc:${port}`;
}

function selectorOf(slot: SlotName): string {
  return `${LABELS.slot}=${slot}`;
}

function sinceOf(present: unknown, state: string): string | undefined {
  if (!isTable(present) || present['state'] !== state) return undefined;
  return typeof present['since'] === 'string' ? present['since'] : undefined;
}

/** Whole seconds, as Kubernetes writes times. */
function timeText(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

function timeOf(text: unknown): number | undefined {
  const at = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
