/**
 * Desired state from the SlotSpecs of a namespace. A resource's name is the slot's name; one that is being deleted is no longer desired; a bad
 * one keeps its last good spec. Each reading takes the whole copy, and computes only what changed in it.
 */
import type { KubeObject, OwnerReference, Reflector } from '../client/ports.ts';
import type { DesiredSlot, DesiredState, SlotSource } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { SlotName } from '../../schema/names.ts';
import { isSameValue } from '../../schema/same-value.ts';
import { SLOT_RESOURCE } from '../../schema/slot-resource.ts';
import type { SpecProblem } from '../../schema/slot-spec.ts';
import type { SlotStatus } from '../../schema/slot-status.ts';
import { formatProblem } from '../../schema/spec-problem.ts';
import { readSlotResource, type SlotReading } from './decide/read-slot-resource.ts';
import { readStatus } from '../status/decide/slot-resource-status.ts';
import type { SourceLog } from '../../platform/log.ts';

export interface SlotResources extends SlotSource {
  /** Who owns what is made for the slot; undefined: there is no such resource, or it is being deleted. */
  ownerOf(slot: SlotName): OwnerReference | undefined;
  /** The generation that the last reading saw, of a refused slot too. */
  generationOf(slot: SlotName): number | undefined;
  /** What the replica that leads wrote; undefined: nothing that can be believed. */
  statusOf(slot: SlotName): SlotStatus | undefined;
  statuses(): ReadonlyMap<SlotName, SlotStatus>;
}

interface SlotResourcesOptions {
  readonly slots: Pick<Reflector, 'items' | 'health' | 'changes'>;
  readonly log: SourceLog;
  /** Unix milliseconds. Default: the system's clock. */
  readonly now?: () => number;
}

/** A copy as old as this may be far from the truth; until then a restart of the API server is nobody's business. */
const PATIENCE_MS = 60_000;

/** What was seen under a resource's name: its reading, or why it is none. */
interface Seen {
  readonly object: KubeObject;
  readonly slot: { readonly name: SlotName; readonly reading: SlotReading } | undefined;
  readonly problem: SpecProblem | undefined;
}

interface ReadBack {
  readonly object: KubeObject;
  readonly status: SlotStatus | undefined;
}

export function createSlotResources(options: SlotResourcesOptions): SlotResources {
  const { slots, log } = options;
  const now = options.now ?? Date.now;
  let seen: ReadonlyMap<string, Seen> = new Map();
  let state: DesiredState = { slots: new Map(), refused: new Map(), problems: [] };
  let said: ReadonlySet<string> = new Set();
  const readBack = new Map<string, ReadBack>();

  const readNow = (): DesiredState => {
    const items = slots.items();
    const next = new Map<string, Seen>();
    let changed = items.size !== seen.size;
    for (const [name, object] of items) {
      const before = seen.get(name);
      const present = before?.object === object ? before : look(name, object, before);
      changed ||= !saysTheSame(before, present);
      next.set(name, present);
    }
    seen = next;
    if (changed) {
      state = gather(next.values());
      said = sayNew(log, said, problemsOf(state));
    }
    return state;
  };
  const statusIn = (name: string, object: KubeObject): SlotStatus | undefined => {
    const before = readBack.get(name);
    if (before?.object === object) return before.status;
    const slot = SlotName.safeParse(name);
    const status = slot.success ? readStatus(slot.data, object['status']) : undefined;
    readBack.set(name, { object, status });
    return status;
  };

  return {
    async read() {
      const stale = whyStale(slots.health(), now());
      if (stale !== undefined) return stale;
      return ok(readNow());
    },
    changes: (wake, signal) => slots.changes(wake, signal),
    ownerOf(slot) {
      const object = slots.items().get(slot);
      return object === undefined ? undefined : ownerReference(object);
    },
    generationOf: (slot) => seen.get(slot)?.slot?.reading.generation,
    statusOf(slot) {
      const object = slots.items().get(slot);
      return object === undefined ? undefined : statusIn(slot, object);
    },
    statuses() {
      const items = slots.items();
      const statuses = new Map<SlotName, SlotStatus>();
      for (const name of readBack.keys()) if (!items.has(name)) readBack.delete(name);
      for (const [name, object] of items) {
        const status = statusIn(name, object);
        if (status !== undefined) statuses.set(status.name, status);
      }
      return statuses;
    },
  };
}

function look(name: string, object: KubeObject, before: Seen | undefined): Seen {
  if (object.metadata.deletionTimestamp !== undefined) return { object, slot: undefined, problem: undefined };
  const slot = SlotName.safeParse(name);
  if (slot.success) {
    const reading = readSlotResource(slot.data, object, before?.slot?.reading);
    return { object, slot: reading === before?.slot?.reading ? before.slot : { name: slot.data, reading }, problem: undefined };
  }
  const message = `Delete this SlotSpec and create it under another name. ${slot.error.issues[0]?.message ?? ''}`;
  return { object, slot: undefined, problem: { path: [], file: `${SLOT_RESOURCE.kind}/${name}`, message } };
}

function saysTheSame(before: Seen | undefined, after: Seen): boolean {
  return before === after || (before !== undefined && before.slot === after.slot && isSameValue(before.problem, after.problem));
}

function gather(all: Iterable<Seen>): DesiredState {
  const slots = new Map<SlotName, DesiredSlot>();
  const refused = new Map<SlotName, readonly SpecProblem[]>();
  const problems: SpecProblem[] = [];
  for (const { slot, problem } of all) {
    if (problem !== undefined) problems.push(problem);
    if (slot === undefined) continue;
    const { outcome } = slot.reading;
    if (outcome.kind === 'desired') slots.set(slot.name, outcome.slot);
    else refused.set(slot.name, outcome.problems);
  }
  return { slots, refused, problems };
}

/** One line for each problem. */
function problemsOf(state: DesiredState): ReadonlySet<string> {
  const bad = [...[...state.slots.values()].map(({ name, problems }) => [name, problems] as const), ...state.refused];
  const lines = bad.flatMap(([name, problems]) => problems.map((problem) => `${SLOT_RESOURCE.kind}/${name}: ${formatProblem(problem)}`));
  return new Set([...lines, ...(state.problems ?? []).map((problem) => formatProblem(problem))]);
}

function sayNew(log: SourceLog, said: ReadonlySet<string>, lines: ReadonlySet<string>): ReadonlySet<string> {
  for (const line of lines) if (!said.has(line)) log.warn({}, line);
  return lines;
}

function whyStale(health: ReturnType<Reflector['health']>, now: number): Result<never> | undefined {
  if (health.kind === 'starting') return fail('retry', 'SlotsUnreadable', 'Wait for the first list of SlotSpecs: it has not come yet');
  if (health.kind !== 'unreachable') return undefined;
  const awayMs = now - health.sinceMs;
  if (awayMs < PATIENCE_MS) return undefined;
  const message = `Make the API server answer: SlotSpecs have not been read for ${Math.round(awayMs / 1000)} s (${health.message})`;
  return fail('retry', 'SlotsUnreadable', message);
}

function ownerReference({ metadata }: KubeObject): OwnerReference | undefined {
  if (metadata.uid === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  // Without "blockOwnerDeletion": it asks for a right on finalizers, and nobody waits for the slot's objects to go.
  return { apiVersion: SLOT_RESOURCE.apiVersion, kind: SLOT_RESOURCE.kind, name: metadata.name, uid: metadata.uid, controller: true };
}
