/**
 * What one pass decides, in parts: track what was observed → plan → inspect → prepare what is published. The loop
 * pauses between the parts, so that requests are forwarded during a pass over thousands of slots. It publishes and acts
 * afterwards, all at once, if what was decided was not overtaken meanwhile. Apart from the first part, which changes
 * the tracker, nothing here has an effect.
 */
import { inspect } from './decide/inspect.ts';
import { changesWorld, type Action } from './decide/facts/actions.ts';
import type { Attempt, Observed, Plan, Objection } from './decide/facts/facts.ts';
import { isOvertaken, isTreatedOtherwise } from './decide/facts/recorded-failures.ts';
import { withoutBroken } from './decide/hold-up.ts';
import { planInParts, type plan } from './decide/plan.ts';
import { isAtRest } from './decide/rules/wanted.ts';
import { desire, rememberTemplating, templatingOf, type DesireDeps } from './remember/desire.ts';
import { observedFacts, trackObservation } from './remember/merge-observation.ts';
import type { Observation } from './observe.ts';
import type { Parts } from '../platform/decide/parse-json.ts';
import type { Clock, DesiredSlot, DesiredState, ModelStore, ObservedWorkload, Runtime, Traffic } from './ports.ts';
import { rememberSteps } from './remember/remember-plans.ts';
import type { Prepared, Reporter } from './report.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { Tracker } from './tracker.ts';
import type { Warmth } from './remember/warmth.ts';
import type { Log } from '../platform/log.ts';

export interface Decide {
  readonly plan: typeof plan;
  readonly inspect: typeof inspect;
}

interface PassPlannerDeps extends DesireDeps {
  readonly runtime: Pick<Runtime, 'traits'>;
  readonly traffic: Traffic;
  readonly clock: Clock;
  /** Replaces the planner. */
  readonly decide?: Decide;
  readonly tracker: Tracker;
  readonly reporter: Reporter;
  readonly warmth: Warmth;
}

export interface PassInput {
  readonly state: DesiredState;
  readonly seen: Observation;
  /** As last observed. */
  readonly models: Awaited<ReturnType<ModelStore['observe']>>;
  readonly leading: boolean;
  /** This controller begins to lead in this pass. */
  readonly takesOver: boolean;
  readonly recalled: ReadonlyMap<SlotName, readonly Attempt[]>;
  readonly now: number;
}

export interface PlannedPass {
  readonly observed: Observed;
  readonly objections: readonly Objection[];
  /** Undefined if nothing of the plan may be carried out. */
  readonly outcome: { readonly plan: Plan; readonly actions: readonly Action[]; readonly prepared: Prepared } | undefined;
}

export function createPassPlanner(deps: PassPlannerDeps) {
  const { tracker, reporter, traffic, clock, runtime, decide, warmth } = deps;
  const { traits } = runtime;
  const templating = rememberTemplating(templatingOf(deps));
  const plans = rememberSteps();
  let workloads: readonly ObservedWorkload[] = [];

  /** Nothing is awaited here: what is tracked and what is planned come from the same moment. */
  function track({ state, seen, models, leading, takesOver, recalled, now }: PassInput): Observed {
    const { published } = reporter;
    if (seen.runtime.ok) ({ workloads } = seen.runtime.value);
    const use = traffic.read();
    const vanished = trackObservation(tracker, { slots: state.slots, seen, traffic: use, traits, published, takesOver, recalled, now });
    for (const { id, slot } of vanished) {
      // A workload that another controller stopped is not worth a report.
      if (!state.slots.has(slot) || !leading || takesOver) continue;
      const message = 'The workload disappeared without being stopped';
      tracker.attempts.failed(slot, { kind: 'vanish', failure: { kind: 'retry', reason: 'Vanished', message }, workload: id }, now);
      reporter.note(slot, { kind: 'failure', message }, clock.wallNow());
    }
    const times = { now, wallNow: clock.wallNow() };
    // A follower does not see all requests.
    if (leading) {
      const atRest = (slot: DesiredSlot): boolean =>
        isAtRest(slot, { published: published.get(slot.name), lastActiveAt: tracker.lastActive.get(slot.name), now }, use);
      warmth.track(state.slots, { requestAt: tracker.requestAt, atRest }, times);
    }
    const facts = warmth.facts(state.slots, times);
    return observedFacts(tracker, { seen, models, traffic: use, traits, leads: leading, published, warmth: facts, now });
  }

  return {
    /** As observed last. */
    workloads: () => workloads,
    /** Repeating it in the same pass is harmless. */
    *plan(input: PassInput): Parts<PlannedPass> {
      const { state, seen, leading, now } = input;
      const observed = track(input);
      yield;
      const desired = desire(deps, state, seen.host, templating);
      yield;
      const made =
        decide === undefined ? yield* planInParts(desired, observed, now, plans.steps) : decide.plan(desired, observed, now, plans.steps);
      plans.keepOnly(state.slots);
      templating.keepOnly(state.slots, seen.runtime.ok ? seen.runtime.value.workloads : []);
      yield;
      const { plan: sound, objections } = withoutBroken(made, { desired, observed, now }, decide?.inspect ?? inspect);
      yield;
      if (sound === undefined) return { observed, objections, outcome: undefined };
      const actions = leading ? sound.actions : sound.actions.filter((action) => !changesWorld(action));
      const shown = { ...observed, attempts: withoutOld(observed, sound) };
      const prepared = yield* reporter.prepare({ ...sound, actions }, state, shown, clock.wallNow());
      return { observed, objections, outcome: { plan: sound, actions, prepared } };
    },
    /** Whether a slot that the plan changes is no longer as it was when the plan was begun. */
    isOvertaken({ observed, outcome }: PlannedPass): boolean {
      if (outcome === undefined) return false;
      const { prepared, actions } = outcome;
      const moved = prepared.changes.filter(({ before, after }) => isTreatedOtherwise(before?.decision, after.decision));
      const changed = new Set([...moved.map(({ after }) => after.decision.name), ...actions.map(({ slot }) => slot)]);
      const { workloads, demand } = traffic.read();
      return isOvertaken(changed, observed, { ...tracker.facts(clock.now()), activity: workloads, demand });
    },
  };
}

/** Records what follows from a plan that is carried out. */
export function trackPlan(tracker: Tracker, made: Plan, observed: Observed, now: number): void {
  if (observed.runtime.kind === 'unreachable') return;
  tracker.markDraining(new Set([...made.decisions.values().flatMap(({ draining }) => draining), ...made.orphans.keys()]), now);
  const { attempts } = tracker;
  // What has failed since the look at a slot is not forgotten.
  for (const name of findStable(observed, made)) if (attempts.all.get(name) === observed.attempts.get(name)) attempts.clearFailures(name);
}

/** Slots whose failures a plan forgets; none while the runtime does not answer. */
function* findStable({ runtime, attempts }: Observed, { decisions }: Plan): Generator<SlotName> {
  if (runtime.kind === 'unreachable') return;
  for (const [name, { failures, repairs }] of attempts)
    if ((failures.length > 0 || repairs !== undefined) && decisions.get(name)?.stable === true) yield name;
}

/** As the tracker knows them once the plan takes effect. */
function withoutOld(observed: Observed, plan: Plan): Observed['attempts'] {
  const stable = [...findStable(observed, plan)];
  if (stable.length === 0) return observed.attempts;
  const after = new Map(observed.attempts);
  for (const name of stable) {
    const before = after.get(name);
    if (before !== undefined) after.set(name, { ...before, failures: [], repairs: undefined });
  }
  return after;
}

/** Logs objections to plans once, not in each pass that finds them again. */
export function createObjectionLog(log: Pick<Log, 'error'>): (objections: readonly Objection[]) => void {
  let last = '';
  return (objections) => {
    const text = objections.map(({ message }) => message).join('; ');
    if (text === last) return;
    last = text;
    if (text !== '') log.error({ objections }, 'A plan violated its rules, and the violating part is not executed; report this as a bug');
  };
}
