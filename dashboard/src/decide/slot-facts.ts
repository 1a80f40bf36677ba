/** What the page shows of slots, pods and profiles, and the actions it offers. Pure. */
import type { StalledReason } from '../../../src/schema/status/reasons.ts';
import type { AT_REST_REASONS } from '../../../src/schema/status/slot-reasons.ts';
import { isTable } from './patch.ts';
import type { Condition, Pod, ProfileEntry, Slot, SlotState, TimelineEntry } from '../types.ts';

/** The condition that requires action by the user, if any. */
export function needsAttention(slot: Slot): Condition | undefined {
  const { conditions } = slot.status;
  const is = (type: string, status: string) => conditions.find((condition) => condition.type === type && condition.status === status);
  return is('Stalled', 'True') ?? is('SpecValid', 'False');
}

/** Slots that cannot answer before a user does something come last. */
export function ableFirst(names: readonly string[], of: (name: string) => Slot | undefined): readonly string[] {
  const rank = (slot: Slot | undefined): number => (slot !== undefined && isEnabled(slot) && needsAttention(slot) === undefined ? 0 : 1);
  return names.toSorted((a, b) => rank(of(a)) - rank(of(b)));
}

/** What a user does about an alarm. Default: reads the explanation. */
const FIXES: Readonly<Partial<Record<StalledReason, 'edit' | 'licence' | 'model' | 'restart'>>> = {
  SpecInvalid: 'edit',
  ArgumentsRefused: 'edit',
  LicenseNotAccepted: 'licence',
  ModelMissing: 'model',
  ModelUnusable: 'model',
  ModelUnsuitable: 'model',
  ModelGated: 'model',
  ModelTooLarge: 'model',
  ModelHashMismatch: 'model',
  DeviceTooSmall: 'model',
  ModelAnswersNonsense: 'model',
  DiskFull: 'restart',
  StartFailed: 'restart',
  CrashLoop: 'restart',
};

export function fixOf(alarm: Pick<Condition, 'type' | 'reason'> | undefined): 'edit' | 'licence' | 'model' | 'restart' | 'explain' {
  if (alarm?.type === 'SpecValid') return 'edit';
  return Object.entries(FIXES).find(([reason]) => reason === alarm?.reason)?.[1] ?? 'explain';
}

/** The problem that the controller is working on, if any. */
export function pendingProblem(slot: Slot): Condition | undefined {
  if (!isEnabled(slot) || whyOff(slot) !== undefined) return undefined;
  const failing = slot.status.conditions.find(({ type, status }) => type === 'Ready' && status === 'False');
  const drift = slot.status.conditions.find(({ type, status }) => type === 'DriftDetected' && status === 'True');
  return failing !== undefined && failing.message !== '' ? failing : drift;
}

/** Why a slot is off, or rests until its next request. */
export function whyOff(slot: Slot): string | undefined {
  const { state, conditions } = slot.status;
  const off = conditions.find(({ type, status }) => type === 'Ready' && status === 'False');
  return off !== undefined && state === 'offline' && Object.hasOwn(AT_REST, off.reason) ? off.message : undefined;
}

/** Off until its next request, as it was declared. */
export const restsOnDemand = (slot: Slot): boolean => isEnabled(slot) && whyOff(slot) !== undefined && needsAttention(slot) === undefined;

/** Conditions whose desired status is "True". */
const GOOD_IF_TRUE: ReadonlySet<Condition['type']> = new Set(['Ready', 'UpToDate', 'SpecValid']);

/** Whether the condition says anything that a user may want to know. */
export function isNotable(condition: Pick<Condition, 'type' | 'status'>): boolean {
  return condition.type === 'Reconciling' ? condition.status !== 'False' : toneOf(condition) !== 'good';
}

interface ConditionGroup extends Pick<Condition, 'reason' | 'message'> {
  readonly types: readonly Pick<Condition, 'type' | 'status'>[];
}

/** Several conditions have one cause, which is told once. */
export function groupConditions(conditions: readonly Condition[]): readonly ConditionGroup[] {
  const groups = Map.groupBy(conditions, ({ reason, message }) => `${reason} ${message}`);
  return [...groups.values()].flatMap((types) =>
    types[0] === undefined ? [] : { reason: types[0].reason, message: types[0].message, types },
  );
}

/** CSS class of a condition's tag. `Reconciling` is neither good nor bad. */
export function toneOf({ type, status }: Pick<Condition, 'type' | 'status'>): 'good' | 'bad' | '' {
  if (type === 'Reconciling' || status === 'Unknown') return '';
  return (status === 'True') === GOOD_IF_TRUE.has(type) ? 'good' : 'bad';
}

export function isEnabled(slot: Slot): boolean {
  return slot.spec !== null && slot.spec['enabled'] !== false;
}

/** Reasons why a healthy slot is not running. A request, more replicas or an edit would start it. */
const AT_REST: Readonly<Record<keyof typeof AT_REST_REASONS, true>> = {
  Disabled: true,
  NoReplicas: true,
  NotAskedFor: true,
  GaveWay: true,
  IdleTimedOut: true,
};

interface Actions {
  readonly change: 'load' | 'unload';
  readonly other: 'restart' | 'disable' | undefined;
}

/** A resting slot can be loaded before its next request. It has nothing to unload, so it offers `disable`. */
export function actionsOf(slot: Slot): Actions {
  if (!isEnabled(slot)) return { change: 'load', other: undefined };
  return whyOff(slot) !== undefined ? { change: 'load', other: 'disable' } : { change: 'unload', other: 'restart' };
}

/** False for a deleted slot whose workload is still being removed. */
export function canEdit(slot: Slot): boolean {
  return slot.spec !== null;
}

const BUSY: ReadonlySet<SlotState> = new Set(['pulling', 'starting', 'warming', 'unloading']);

/** Slots in these states are polled, because the event stream does not report progress. */
export function isMoving(state: SlotState): boolean {
  return BUSY.has(state);
}

/** Applies an event. A stream begins with past events, which change nothing. */
export function afterEntry(slot: Slot, { to, at }: Pick<TimelineEntry, 'to' | 'at'>): Slot {
  const { since, state } = slot.status;
  if (to === null || to === state || (at !== null && since !== null && Date.parse(at) < Date.parse(since))) return slot;
  return { ...slot, status: { ...slot.status, state: to, since: at } };
}

/** Slots that the events, oldest first, leave in another state. */
export function movedBy(
  entries: readonly Pick<TimelineEntry, 'slot' | 'to' | 'at'>[],
  of: (name: string) => Slot | undefined,
): readonly Slot[] {
  const after = new Map<string, Slot>();
  for (const entry of entries) {
    const slot = after.get(entry.slot) ?? of(entry.slot);
    if (slot !== undefined) after.set(entry.slot, afterEntry(slot, entry));
  }
  return [...after.values()].filter((slot) => slot.status.state !== of(slot.name)?.status.state);
}

/** Names of the slots: those that need attention first, then by name. */
export function orderSlots(slots: readonly Slot[]): readonly string[] {
  const ranked = slots.map((slot) => ({ name: slot.name, rank: needsAttention(slot) === undefined ? 1 : 0 }));
  return ranked.toSorted((one, other) => one.rank - other.rank || (one.name < other.name ? -1 : 1)).map(({ name }) => name);
}

export interface Summary {
  readonly needAttention: number;
  /** Only states with slots, in a fixed order. */
  readonly states: readonly { readonly state: SlotState | 'resting'; readonly count: number }[];
  readonly memoryBytes: number;
}

const STATES = ['serving', 'ready', 'idle', 'resting', 'warming', 'starting', 'pulling', 'unloading', 'offline'] as const;

/** The state, or "resting" for a slot that is off as it was declared. */
export const toneOfSlot = (slot: Slot): SlotState | 'resting' => (restsOnDemand(slot) ? 'resting' : slot.status.state);

/** Counts the memory of running slots only. */
export function summarize(slots: readonly Slot[]): Summary {
  const groups = Map.groupBy(slots, toneOfSlot);
  return {
    needAttention: slots.filter((slot) => needsAttention(slot) !== undefined).length,
    states: STATES.map((state) => ({ state, count: groups.get(state)?.length ?? 0 })).filter(({ count }) => count > 0),
    memoryBytes: slots.reduce((sum, { status }) => sum + (status.state === 'offline' ? 0 : (status.memory_bytes ?? 0)), 0),
  };
}

/** How many cases the rejected model and the former one have passed, and which share the rejected one needed. */
export function scoresOf({ spec, status: { rollout } }: Slot) {
  if (rollout === null || rollout.score === null) return [];
  const { cases, passed, before } = rollout.score;
  const rules = isTable(spec?.['rollout']) ? spec['rollout'] : {};
  const pass = Number(rules['pass'] ?? 1);
  const worst = before === null ? 0 : before.passed / Math.max(1, before.cases) - Number(rules['tolerance'] ?? 0);
  const score = { model: 'rejected', cases, passed, needed: Math.max(pass, worst) } as const;
  return before === null ? [score] : [score, { ...before, model: 'former', needed: score.needed } as const];
}

/** Matches name, model, state, backend and "needs attention"; each word must occur. */
export function matchesSearch(slot: Slot, search: string): boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const { model, state, backend } = slot.status;
  const attention = needsAttention(slot) === undefined ? '' : 'needs attention';
  const text = [slot.name, model ?? '', state, toneOfSlot(slot), backend ?? '', attention].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Matches slot, kind, message and cause; each word must occur. */
export function matchesEntry({ slot, kind, message, cause }: TimelineEntry, search: string): boolean {
  const text = [slot, kind, message, cause ?? ''].join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Status of a pod as in kubectl; `tone` is the CSS class of its tag. */
export function describePod({ terminating, ready, reason, phase }: Pod): { readonly word: string; readonly tone: 'good' | 'bad' | '' } {
  if (terminating) return { word: 'Terminating', tone: '' };
  if (ready) return { word: 'Ready', tone: 'good' };
  if (reason !== null) return { word: reason, tone: 'bad' };
  return { word: phase, tone: phase === 'Failed' ? 'bad' : '' };
}

type Judged = Pick<ProfileEntry, 'name' | 'active' | 'problems' | 'slots'>;

/** Names of the slots that switching to the profile would change. */
export function differentSlots({ slots }: Pick<Judged, 'slots'>): readonly string[] {
  return slots.filter(({ result }) => result !== 'unchanged').map(({ name }) => name);
}

/** The active profile, else the one that differs in the fewest slots. Undefined without profiles. */
export function nearestProfile<Profile extends Judged>(profiles: readonly Profile[]): Profile | undefined {
  const active = profiles.find((profile) => profile.active);
  const usable = profiles.filter(({ problems }) => problems.length === 0);
  const [nearest] = usable.toSorted((left, right) => differentSlots(left).length - differentSlots(right).length);
  return active ?? nearest ?? profiles[0];
}
