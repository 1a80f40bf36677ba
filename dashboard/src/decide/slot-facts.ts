/** What a card shows of a slot, and what can be done with it now. Pure. */
import type { AT_REST_REASONS } from '../../../src/schema/slot-reasons.ts';
import type { Condition, Pod, ProfileEntry, Slot, SlotState, TimelineEntry } from '../types.ts';

/** Conditions for which a person must act come first: they are shown on top of the card. */
export function needsPerson(slot: Slot): Condition | undefined {
  const { conditions } = slot.status;
  const is = (type: string, status: string) => conditions.find((condition) => condition.type === type && condition.status === status);
  return is('Stalled', 'True') ?? is('SpecValid', 'False');
}

/** What is wrong or awaited, though the controller works on it. */
export function waitsFor(slot: Slot): Condition | undefined {
  if (!isWanted(slot)) return undefined;
  const failing = slot.status.conditions.find(({ type, status }) => type === 'Ready' && status === 'False');
  const drift = slot.status.conditions.find(({ type, status }) => type === 'DriftDetected' && status === 'True');
  return failing !== undefined && failing.message !== '' ? failing : drift;
}

/** Of these, "True" is what is wanted. */
const WANTED_TRUE: ReadonlySet<Condition['type']> = new Set(['Ready', 'UpToDate', 'SpecValid']);

/** The class of a condition's tag. That the controller works on a slot is neither good nor bad. */
export function toneOf({ type, status }: Pick<Condition, 'type' | 'status'>): 'good' | 'bad' | '' {
  if (type === 'Reconciling' || status === 'Unknown') return '';
  return (status === 'True') === WANTED_TRUE.has(type) ? 'good' : 'bad';
}

export function isWanted(slot: Slot): boolean {
  return slot.spec !== null && slot.spec['enabled'] !== false;
}

/** Why nothing runs though the slot is enabled, and nothing is wrong: a request, or more replicas, would start it. */
const RESTING: Readonly<Record<Exclude<keyof typeof AT_REST_REASONS, 'Disabled'>, true>> = {
  NoReplicas: true,
  NotAskedFor: true,
  GaveWay: true,
  IdleTimedOut: true,
};

/** What can be done with a slot now. One at rest has nothing to unload: it can only be kept from loading again. */
export function offersOf(slot: Slot): { readonly change: 'load' | 'unload' | 'disable'; readonly restart: boolean } {
  if (!isWanted(slot)) return { change: 'load', restart: false };
  const { state, conditions } = slot.status;
  const ready = conditions.find(({ type }) => type === 'Ready');
  const rests = state === 'offline' && ready?.status === 'False' && Object.hasOwn(RESTING, ready.reason);
  return rests ? { change: 'disable', restart: false } : { change: 'unload', restart: true };
}

/** A slot without a document is one whose workload is being removed. */
export function canEdit(slot: Slot): boolean {
  return slot.spec !== null;
}

const BUSY: ReadonlySet<SlotState> = new Set(['pulling', 'starting', 'warming', 'unloading']);

/** Its progress is asked for, because the stream of events has no entry for each piece of a download. */
export function isMoving(state: SlotState): boolean {
  return BUSY.has(state);
}

/** The slot as an event leaves it. Events of the past, which a stream repeats at its begin, change nothing. */
export function afterEntry(slot: Slot, { to, at }: Pick<TimelineEntry, 'to' | 'at'>): Slot {
  const { since, state } = slot.status;
  if (to === null || to === state || (at !== null && since !== null && Date.parse(at) < Date.parse(since))) return slot;
  return { ...slot, status: { ...slot.status, state: to, since: at } };
}

/** Slots that need a person first, then in the order of names. */
export function orderSlots(slots: readonly Slot[]): readonly string[] {
  const rank = (slot: Slot): number => (needsPerson(slot) === undefined ? 1 : 0);
  return slots.toSorted((one, other) => rank(one) - rank(other) || (one.name < other.name ? -1 : 1)).map(({ name }) => name);
}

export interface Summary {
  readonly needPerson: number;
  /** In the order of the states, without those that no slot is in. */
  readonly states: readonly { readonly state: SlotState; readonly count: number }[];
  readonly memoryBytes: number;
}

const STATES: readonly SlotState[] = ['serving', 'ready', 'idle', 'warming', 'starting', 'pulling', 'unloading', 'offline'];

/** Memory is that of slots that run: the others would only need theirs. */
export function summarize(slots: readonly Slot[]): Summary {
  return {
    needPerson: slots.filter((slot) => needsPerson(slot) !== undefined).length,
    states: STATES.map((state) => ({ state, count: slots.filter(({ status }) => status.state === state).length })).filter(
      ({ count }) => count > 0,
    ),
    memoryBytes: slots.reduce((sum, { status }) => sum + (status.state === 'offline' ? 0 : (status.memory_bytes ?? 0)), 0),
  };
}

/** Whether a slot is found by what a user typed: its name, its model or its state. */
export function matchesSearch(slot: Slot, search: string): boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const text = [slot.name, slot.status.model ?? '', slot.status.state, slot.status.backend ?? ''].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Whether an entry of a timeline is found by what a user typed. */
export function matchesEntry({ slot, kind, message, cause }: TimelineEntry, search: string): boolean {
  const text = [slot, kind, message, cause ?? ''].join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** How a pod is, in one word; `tone` is the class of its tag. */
export function describePod({ terminating, ready, reason, phase }: Pod): { readonly word: string; readonly tone: 'good' | 'bad' | '' } {
  if (terminating) return { word: 'Terminating', tone: '' };
  if (ready) return { word: 'Ready', tone: 'good' };
  if (reason !== null) return { word: reason, tone: 'bad' };
  return { word: phase, tone: phase === 'Failed' ? 'bad' : '' };
}

type Judged = Pick<ProfileEntry, 'name' | 'active' | 'problems' | 'slots'>;

/** Names of the slots that a switch would change. */
export function differentSlots({ slots }: Pick<Judged, 'slots'>): readonly string[] {
  return slots.filter(({ result }) => result !== 'unchanged').map(({ name }) => name);
}

/** The profile to show: the one that is in force, else the one that differs in the fewest slots. Undefined without profiles. */
export function nearestProfile<Profile extends Judged>(profiles: readonly Profile[]): Profile | undefined {
  const active = profiles.find((profile) => profile.active);
  const usable = profiles.filter(({ problems }) => problems.length === 0);
  const [nearest] = usable.toSorted((left, right) => differentSlots(left).length - differentSlots(right).length);
  return active ?? nearest ?? profiles[0];
}
