/** From what a look brought to the facts of a plan: keeps what is the same the same object, and enters what is new into the tracker. */
import type { ModelId, SlotName } from '../schema/names.ts';
import { isSameValue } from '../schema/same-value.ts';
import { exitId } from './decide/rules/workload-faults.ts';
import type { Desired, Observed } from './decide/facts/facts.ts';
import type { Met, Tracker } from './tracker.ts';
import type { Observation } from './observe.ts';
import type { DesiredSlot, DesiredState, ModelPresence, ObservedWorkload, RuntimeTraits, Traffic } from './ports.ts';
import type { Reporter } from './report.ts';

export interface Sightings {
  /** The same object for the same slot, and the same spec object for the same spec, so that what is computed from it is computed once. The generation would not do: a slot removed and made anew begins at 1. */
  settle(state: DesiredState): DesiredState;
  /** The same facts object for the same facts; the last ones when the store did not answer. */
  models(seen: ReadonlyMap<ModelId, ModelPresence> | undefined): ReadonlyMap<ModelId, ModelPresence>;
}

export function createSightings(): Sightings {
  let last: DesiredState | undefined;
  let settled: DesiredState = { slots: new Map(), refused: new Map() };
  let models: ReadonlyMap<ModelId, ModelPresence> = new Map();
  return {
    settle(state) {
      if (state === last) return settled;
      const next = new Map<SlotName, DesiredSlot>();
      for (const [name, slot] of state.slots) {
        const before = settled.slots.get(name);
        next.set(name, before === undefined ? slot : keepSlot(before, slot));
      }
      last = state;
      settled = { ...state, slots: next };
      return settled;
    },
    models(seen) {
      if (seen === undefined) return models;
      models = new Map([...seen].map(([id, presence]) => [id, keepPresence(models.get(id), presence)]));
      return models;
    },
  };
}

interface AbsorbInput {
  readonly tracker: Tracker;
  readonly sightings: Sightings;
  readonly reporter: Pick<Reporter, 'previous' | 'note'>;
  readonly traits: RuntimeTraits;
  /** Whether this controller carries plans out, and whether it did in the last pass. */
  readonly leads: boolean;
  readonly led: boolean;
  readonly traffic: ReturnType<Traffic['read']>;
  readonly desired: Desired;
  readonly seen: Observation;
  readonly now: number;
}

export function absorb(input: AbsorbInput): Observed {
  const { tracker, sightings, reporter, traits, leads, led, traffic, desired, seen, now } = input;
  const edited = new Set<SlotName>();
  for (const { name, generation, spec } of desired.slots.values()) if (tracker.turnTo(name, generation, spec)) edited.add(name);
  for (const name of tracker.attempts.keys()) if (!desired.slots.has(name)) tracker.forget(name);
  const workloads = seen.runtime.ok ? seen.runtime.value.workloads : [];
  if (seen.runtime.ok) {
    for (const { id, slot } of tracker.meet(
      workloads.map((workload) => metOf(workload, traits)),
      now,
    )) {
      // What another controller stops goes without a word.
      if (!desired.slots.has(slot) || !leads || !led) continue;
      const message = 'Its workload is gone, and nobody here stopped it';
      tracker.failed(slot, { kind: 'vanish', failure: { kind: 'retry', reason: 'Vanished', message }, workload: id }, now);
      reporter.note(slot, 'failure', message, now);
    }
  }
  const bySlot = Map.groupBy(workloads, ({ slot }) => slot);
  for (const slot of desired.slots.values()) {
    const at = lastActive(slot, edited.has(slot.name), tracker, traffic, bySlot.get(slot.name) ?? [], reporter, now, leads && !led);
    if (at !== undefined) tracker.lastActive.set(slot.name, at);
  }
  for (const name of tracker.lastActive.keys()) if (!desired.slots.has(name)) tracker.lastActive.delete(name);
  return {
    traits,
    leads,
    runtime: seen.runtime.ok
      ? { kind: 'reachable', facts: seen.runtime.value }
      : { kind: 'unreachable', message: seen.runtime.failure.message },
    models: sightings.models(seen.models),
    host: seen.host,
    activity: traffic.workloads,
    demand: traffic.demand,
    histories: tracker.histories,
    attempts: tracker.attempts,
    running: tracker.running(),
    lastActive: tracker.lastActive,
    takenPorts: tracker.takenPorts(now),
    previous: reporter.previous,
  };
}

/**
 * When the slot last was of use. Requests count, and those that only asked; so do an edit of a slot that is always to run, a load that has not
 * ended yet, and a workload that was found running: all these are reasons not to unload it for idleness yet.
 */
function lastActive(
  { name, spec }: DesiredSlot,
  edited: boolean,
  tracker: Tracker,
  traffic: ReturnType<Traffic['read']>,
  workloads: readonly ObservedWorkload[],
  reporter: Pick<Reporter, 'previous'>,
  now: number,
  takesOver: boolean,
): number | undefined {
  const before = tracker.lastActive.get(name);
  const demand = traffic.demand.get(name);
  let at = latest(before, demand?.lastAskedAt);
  if (demand !== undefined && demand.waiting > 0) at = latest(at, now);
  for (const { id } of workloads) {
    const activity = traffic.workloads.get(id);
    at = latest(at, activity !== undefined && activity.inFlight > 0 ? now : activity?.lastUsedAt);
  }
  if (spec.load === 'always' && edited) at = latest(at, now);
  const previous = reporter.previous.get(name);
  const state = previous?.state;
  const loading = state === 'pulling' || state === 'starting' || state === 'warming';
  const owed =
    spec.load === 'always' && state === 'offline' && previous?.wanted === true && (tracker.attempts.get(name)?.failures.length ?? 0) > 0;
  const found = (before === undefined || takesOver) && workloads.some(({ phase }) => phase === 'running' || phase === 'created');
  return loading || owed || found ? latest(at, now) : at;
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || (other !== undefined && other > one) ? other : one;
}

function metOf(workload: ObservedWorkload, { network }: RuntimeTraits): Met {
  const { id, slot, revision, phase, startedAt, waitingReason, fetching, exit, replicas } = workload;
  const pods = network === 'pods';
  const running = phase === 'running';
  return {
    id,
    slot,
    revision,
    // Pods come and go under one workload.
    startedAt: pods ? undefined : startedAt,
    exitId: phase === 'exited' || exit === undefined ? undefined : exitId(exit),
    alone: replicas === undefined || replicas.present <= 1,
    alive: phase === 'created' || running,
    running,
    counts: waitingReason === undefined && fetching === undefined && (running || !pods),
  };
}

function keepSlot(before: DesiredSlot, after: DesiredSlot): DesiredSlot {
  if (!isSameValue(before.spec, after.spec)) return after;
  const same = before.generation === after.generation && isSameValue(before.problems, after.problems);
  return same ? before : { ...after, spec: before.spec };
}

function keepPresence(before: ModelPresence | undefined, after: ModelPresence): ModelPresence {
  if (before?.kind !== 'present' || after.kind !== 'present') return after;
  return isSameValue(before.facts, after.facts) ? before : after;
}
