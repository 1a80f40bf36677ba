/**
 * Between an observation and a plan: `trackObservation` records in the tracker what the observation shows, and
 * `observedFacts` then puts together everything that a plan may look at. The loop calls them in this order, once a
 * pass; a preview calls the second one only.
 */
import type { SlotName } from '../../schema/words/names.ts';
import type { Attempt, Observed } from '../decide/facts/facts.ts';
import type { SlotEdit } from '../decide/facts/slot-edit.ts';
import { seenWorkload } from '../decide/facts/workload-history.ts';
import { measure } from '../decide/facts/measured-memory.ts';
import { deriveLastActive, lastRequestAt } from '../decide/rules/wanted.ts';
import type { Observation } from '../observe.ts';
import type { DesiredSlot, ModelStore, ObservedWorkload, RuntimeTraits, Traffic } from '../ports.ts';
import type { Tracker } from '../tracker.ts';
import type { Vanished } from './workload-histories.ts';

interface TrackInput {
  readonly slots: ReadonlyMap<SlotName, DesiredSlot>;
  readonly seen: Observation;
  readonly traffic: ReturnType<Traffic['read']>;
  readonly traits: RuntimeTraits;
  readonly published: Observed['published'];
  /** This controller begins to lead in this pass. */
  readonly takesOver: boolean;
  /** Failures that earlier controllers recorded; empty but for the pass in which this one begins to act. */
  readonly recalled: ReadonlyMap<SlotName, readonly Attempt[]>;
  readonly now: number;
}

/** Changes the tracker. Returns the workloads that disappeared without a stop action. */
export function trackObservation(tracker: Tracker, input: TrackInput): readonly Vanished[] {
  const { slots, seen, traffic, traits, published, takesOver, recalled, now } = input;
  const edits = new Map<SlotName, SlotEdit>();
  for (const slot of slots.values()) {
    const edit = tracker.attempts.followEdit(slot);
    if (edit !== 'unchanged') edits.set(slot.name, edit);
  }
  for (const [name, failures] of recalled) tracker.attempts.recall(name, failures);
  tracker.keepOnly(slots);
  const workloads = seen.runtime.ok ? seen.runtime.value.workloads : [];
  const all = workloads.map((workload) => seenWorkload(workload, traits));
  const vanished = seen.runtime.ok ? tracker.observe(all, now) : [];
  for (const workload of workloads) {
    const used =
      workload.memoryBytes === undefined || !slots.has(workload.slot) ? undefined : measure(tracker.measured.get(workload.slot), workload);
    if (used !== undefined) tracker.measured.set(workload.slot, used);
  }
  const bySlot = Map.groupBy(workloads, ({ slot }) => slot);
  const gone = Map.groupBy(vanished, ({ slot }) => slot);
  for (const [name, slot] of slots) {
    const at = deriveLastActive({
      slot,
      now,
      before: tracker.lastActive.get(name),
      traffic,
      workloads: bySlot.get(name) ?? NO_WORKLOADS,
      vanished: gone.get(name),
      published: published.get(name),
      edit: edits.get(name) ?? 'unchanged',
      takesOver,
      hasFailures: (tracker.attempts.all.get(name)?.failures.length ?? 0) > 0,
    });
    if (at !== undefined) tracker.lastActive.set(name, at);
    const requestAt = lastRequestAt(name, bySlot.get(name) ?? NO_WORKLOADS, traffic);
    if (requestAt !== undefined) tracker.requestAt.set(name, requestAt);
  }
  return vanished;
}

const NO_WORKLOADS: readonly ObservedWorkload[] = [];

interface FactsInput extends Pick<TrackInput, 'seen' | 'traffic' | 'traits' | 'published' | 'now'> {
  /** The models as the store last showed them. */
  readonly models: Awaited<ReturnType<ModelStore['observe']>>;
  readonly leads: boolean;
  readonly warmth: Pick<Observed, 'warm' | 'warmSoon' | 'warmChangesAt'>;
}

export function observedFacts(tracker: Tracker, input: FactsInput): Observed {
  const { seen, models, traffic, traits, leads, published, warmth, now } = input;
  const { runtime, host } = seen;
  return {
    traits,
    leads,
    runtime: runtime.ok ? { kind: 'reachable', facts: runtime.value } : { kind: 'unreachable', message: runtime.failure.message },
    models,
    host,
    activity: traffic.workloads,
    demand: traffic.demand,
    ...tracker.facts(now),
    ...warmth,
    published,
  };
}
