/**
 * The reconcile loop: one pass at a time, each of them
 *
 *     wake → read what is desired → observe → track → plan → inspect → publish → begin actions → wait for the next wake
 *
 * `main.ts` starts it. The pacer calls `pass` when a port wakes it, when an action has ended, when the plan's `wakeAt` comes, and at the latest
 * after `SVC_RESYNC`. A wake carries no data: each pass reads and observes everything. Actions run outside the pass; the executor records their
 * results in the tracker, where the next pass finds them as facts. Everything that is decided is decided in `decide/`.
 */
import type { HostFacts } from '../schema/hardware.ts';
import type { FailureRecords } from '../schema/failure-records.ts';
import type { ProbeIo, ProviderRegistry } from '../providers/provider.ts';
import type { SlotName } from '../schema/names.ts';
import type { Backend, ProviderKind } from '../schema/provider-kinds.ts';
import type { Settings } from '../schema/settings.ts';
import type { SlotDocument } from '../schema/slot-spec.ts';
import type { Board } from './board.ts';
import { changesWorld, type Action } from './decide/facts/actions.ts';
import { passResult } from './decide/outcome/pass-result.ts';
import type { Change } from './decide/outcome/explain.ts';
import type { EarlierStatus } from './decide/outcome/resume-times.ts';
import type { NewEntry } from './decide/outcome/slot-status.ts';
import type { Attempt, Observed, Plan } from './decide/facts/facts.ts';
import { recallFailures } from './decide/facts/recorded-failures.ts';
import { withoutBroken } from './decide/hold-up.ts';
import type { Objection } from './decide/facts/inspection.ts';
import { inspect } from './decide/inspect.ts';
import { plan } from './decide/plan.ts';
import { createDeadline } from './deadline.ts';
import { createObjectionLog } from './log-objections.ts';
import { createExecutor, type Outcome } from './execute.ts';
import { createTracker } from './tracker.ts';
import { desire, rememberBackends, rememberTemplating, templatingOf } from './desire.ts';
import { observedFacts, trackObservation } from './merge-observation.ts';
import { observe, readDesired, readRecords, type Observation, type Senses } from './observe.ts';
import { createPacer, type Passed } from './pacer.ts';
import type {
  Clock,
  DesiredState,
  HostProbe,
  ImageReference,
  ModelStore,
  Runtime,
  SlotSource,
  StatusSink,
  Traffic,
  Wake,
} from './ports.ts';
import { preview } from './preview.ts';
import { rememberSteps } from './remember-plans.ts';
import { createReporter } from './report.ts';
import type { Log } from '../platform/log.ts';

/** Every method is cheap and never throws. State changes and drift are counted from the reports that sinks get. */
export interface LoopMetrics {
  passFinished(pass: { readonly seconds: number; readonly result: string }): void;
  actionFinished(action: { readonly action: string; readonly result: string }): void;
  bytesPulled(pulled: { readonly what: 'model' | 'image'; readonly bytes: number }): void;
}

export interface LoopDeps {
  readonly source: SlotSource;
  readonly runtime: Runtime;
  readonly models: ModelStore;
  readonly traffic: Traffic;
  readonly host: HostProbe;
  readonly clock: Clock;
  readonly providers: ProviderRegistry;
  /** The image in which a provider runs; undefined if none is known. Asked again in each pass. */
  readonly images: (kind: ProviderKind, backend: Backend) => ImageReference | undefined;
  readonly probeIo: ProbeIo;
  readonly sinks: readonly StatusSink[];
  readonly board: Board;
  readonly settings: Pick<Settings, 'SVC_RESYNC' | 'SVC_PORT_RANGE' | 'SVC_MEMORY_BUDGET'>;
  readonly log: Log;
  readonly metrics?: LoopMetrics;
  /** Whether this controller carries out its plans, where several controllers observe one world. A follower begins probes only. Default: it leads. */
  readonly leadership?: { leads(): boolean; changes(wake: Wake, signal: AbortSignal): void };
  /** What earlier controllers recorded; read before this one begins to act. Default: nothing. */
  readonly records?: FailureRecords;
  /** `seq` of the newest timeline entry that an earlier process wrote. Default 0. */
  readonly lastSeq?: number;
  /** What an earlier process published of each slot. Default: nothing. */
  readonly earlier?: ReadonlyMap<SlotName, EarlierStatus>;
  /** Replaces the planner; the simulation uses this to prove that it would notice a broken one. */
  readonly decide?: { readonly plan: typeof plan; readonly inspect: typeof inspect };
}

export interface Loop {
  /** Runs until the signal aborts; resolves when every action under way has ended. Workloads keep running. */
  start(signal: AbortSignal): Promise<void>;
  readonly wake: Wake;
  /** Resolves when no pass is due and no action is under way. Waiting for a time (a back-off, the next probe) does not count. */
  idle(): Promise<void>;
  /** Plans as if these documents replaced the present ones (undefined removes the slot), and carries nothing out. */
  preview(
    overlay: ReadonlyMap<SlotName, SlotDocument | undefined>,
  ): Promise<{ readonly text: string; readonly changes: readonly Change[] }>;
  /** Adds an entry to the timeline of a slot, with the next pass. */
  note(slot: SlotName, entry: NewEntry): void;
  /** When the last pass ended, in milliseconds of the clock's `now()`; undefined before the first. */
  lastPassAt(): number | undefined;
}

export function createLoop(deps: LoopDeps): Loop {
  const { clock, runtime, traffic, log, metrics } = deps;
  const { traits } = runtime;
  const within = createDeadline(clock);
  const give = rememberBackends();
  const senses: Senses = { ...deps, within, give };
  const tracker = createTracker();
  const reporter = createReporter(deps.lastSeq ?? 0, deps.earlier);
  const templating = rememberTemplating(templatingOf(deps));
  const plans = rememberSteps();
  const logObjections = createObjectionLog(log);
  const leads = (): boolean => deps.leadership?.leads() ?? true;
  const memory: LoopMemory = {
    desired: undefined,
    models: new Map(),
    hardware: undefined,
    plan: NO_PLAN,
    passedAt: undefined,
    led: leads(),
  };

  const pacer = createPacer(clock, deps.settings.SVC_RESYNC, () => tracker.underWay.size === 0, pass);
  const executor = createExecutor({
    ...deps,
    within,
    tracker,
    waitingFor: (key) => [...memory.plan.decisions.values()].filter(({ waitsFor }) => waitsFor.includes(key)).map(({ name }) => name),
    onProgress(what, bytes) {
      metrics?.bytesPulled({ what, bytes });
      pacer.wake(PROGRESS_WITHIN_MS);
    },
  });

  async function pass(signal: AbortSignal): Promise<Passed> {
    const beganAt = clock.now();
    tracker.beginObservation();
    const read = await readDesired(senses, signal);
    if (signal.aborted) return NOT_PASSED;
    if (read.ok) memory.desired = read.value;
    else log.warn({ reason: read.failure.reason }, read.failure.message);
    if (memory.desired === undefined) {
      metrics?.passFinished({ seconds: (clock.now() - beganAt) / 1000, result: 'unreadable' });
      return NOT_PASSED;
    }
    const seen = await observe(senses, memory.desired.slots, signal);
    const records = memory.passedAt === undefined || (leads() && !memory.led) ? await recall(signal) : undefined;
    if (signal.aborted) return NOT_PASSED;
    const seenAt = clock.now();
    const recalled = records && recallFailures(records, memory.desired.slots, { now: seenAt, wallNow: clock.wallNow() });
    const concluded = conclude(memory.desired, seen, recalled, seenAt);
    const result = passResult({ readable: read.ok, reachable: seen.runtime.ok, accepted: concluded !== undefined });
    metrics?.passFinished({ seconds: (clock.now() - beganAt) / 1000, result });
    return { wakeAt: concluded?.wakeAt, busyMs: clock.now() - seenAt };
  }

  async function recall(signal: AbortSignal): ReturnType<FailureRecords['read']> {
    const read = await readRecords({ records: deps.records, within }, signal);
    if (read.ok) return read.value;
    log.warn({ reason: read.failure.reason }, `Earlier failures are not known, so crashes are counted from zero: ${read.failure.message}`);
    return new Map();
  }

  /** Nothing is awaited from here until the last action has begun: no request can slip in between what was counted and what is published. */
  function conclude(state: DesiredState, seen: Observation, recalled: Recalled | undefined, now: number): Pick<Plan, 'wakeAt'> | undefined {
    // A leader acts once it knows what the leader before it recorded, which the next pass reads.
    const leading = leads() && (memory.led || recalled !== undefined);
    const takesOver = leading && !memory.led;
    if (leading !== memory.led) changeLeadership(leading);
    memory.models = seen.models ?? memory.models;
    memory.hardware = seen.host.hardware ?? memory.hardware;
    const { observed, plan: next, objections } = decideNext(state, seen, { leading, takesOver, recalled: recalled ?? new Map(), now });
    memory.led = leading;
    memory.passedAt = now;
    logObjections(objections);
    if (next === undefined) return undefined;
    memory.plan = next;
    trackPlan(next, observed, now);
    const actions = leading ? next.actions : next.actions.filter((action) => !changesWorld(action));
    deps.board.publish(reporter.publish({ ...next, actions }, state, observed, clock.wallNow()));
    for (const action of actions) begin(action);
    const report = reporter.report(clock.wallNow());
    if (report !== undefined) for (const sink of deps.sinks) sink.write(report);
    return next;
  }

  function decideNext(
    state: DesiredState,
    seen: Observation,
    {
      leading,
      takesOver,
      recalled,
      now,
    }: { readonly leading: boolean; readonly takesOver: boolean; readonly recalled: Recalled; readonly now: number },
  ): { readonly observed: Observed; readonly plan: Plan | undefined; readonly objections: readonly Objection[] } {
    const decide = deps.decide ?? { plan, inspect };
    const { published } = reporter;
    const use = traffic.read();
    const vanished = trackObservation(tracker, { slots: state.slots, seen, traffic: use, traits, published, takesOver, recalled, now });
    for (const { id, slot } of vanished) {
      // A workload that another controller stopped is not worth a report.
      if (!state.slots.has(slot) || !leading || takesOver) continue;
      const message = 'Its workload is gone, and nobody here stopped it';
      tracker.attempts.failed(slot, { kind: 'vanish', failure: { kind: 'retry', reason: 'Vanished', message }, workload: id }, now);
      reporter.note(slot, { kind: 'failure', message }, clock.wallNow());
    }
    const desired = desire({ ...deps, give }, state, { ...seen.host, hardware: memory.hardware }, templating);
    const observed = observedFacts(tracker, { seen, models: memory.models, traffic: use, traits, leads: leading, published, now });
    const made = decide.plan(desired, observed, now, plans.steps);
    plans.keepOnly(state.slots);
    templating.keepOnly(state.slots, seen.runtime.ok ? seen.runtime.value.workloads : []);
    return { observed, ...withoutBroken(made, { desired, observed, now }, decide.inspect) };
  }

  /** What this controller learned of failures belongs to its own term as the leader. */
  function changeLeadership(leading: boolean): void {
    log.info({}, leading ? 'This controller now carries out plans' : 'Another controller carries out plans from now on');
    if (leading) return reporter.renew();
    executor.abandon();
    for (const name of tracker.attempts.all.keys()) tracker.attempts.clearFailures(name);
  }

  function trackPlan(next: Plan, observed: Observed, now: number): void {
    if (observed.runtime.kind === 'unreachable') return;
    tracker.markDraining(new Set([...next.decisions.values().flatMap(({ draining }) => draining), ...next.orphans.keys()]), now);
    for (const { name, stable } of next.decisions.values()) if (stable) tracker.attempts.clearFailures(name);
  }

  function begin(action: Action): void {
    reporter.begun(action, clock.wallNow());
    if (changesWorld(action)) log.debug({ slot: action.slot, action: action.name, because: action.because.reason }, action.because.message);
    executor.begin(action, ended);
  }

  function ended(action: Action, outcome: Outcome): void {
    reporter.ended(action, outcome, clock.wallNow());
    metrics?.actionFinished({ action: action.name, result: outcome.kind === 'none' ? 'cancelled' : outcome.kind });
    if (outcome.kind === 'failed')
      log.debug({ slot: action.slot, action: action.name, reason: outcome.failure.reason }, outcome.failure.message);
    pacer.wake(outcome.kind === 'done' && outcome.asBefore === true ? NOTHING_NEW_WITHIN_MS : 0);
  }

  return {
    wake: pacer.wake,
    note: (slot, entry) => reporter.note(slot, entry, clock.wallNow()),
    idle: pacer.idle,
    lastPassAt: () => memory.passedAt,
    async start(signal) {
      for (const port of [deps.source, runtime, deps.models, traffic]) port.changes(pacer.wake, signal);
      deps.leadership?.changes(() => {
        if (!leads()) executor.abandon();
        pacer.wake();
      }, signal);
      await pacer.run(signal, (error) => log.error({ error: String(error) }, 'Report this as a bug: a pass threw'));
      await executor.close();
    },
    async preview(overlay) {
      const { published } = reporter;
      const observedOf = (seen: Observation, now: number): Observed =>
        observedFacts(tracker, { seen, models: seen.models ?? new Map(), traffic: traffic.read(), traits, leads: leads(), published, now });
      return await preview({ senses, deps, clock, overlay, known: memory.desired, observedOf });
    },
  };
}

type Recalled = ReadonlyMap<SlotName, readonly Attempt[]>;

/** What a pass leaves for later ones and for those who ask in between. */
interface LoopMemory {
  /** As last read; stays in force while the source cannot be read. */
  desired: DesiredState | undefined;
  /** As last observed; stays in force while the store does not answer. */
  models: Awaited<ReturnType<ModelStore['observe']>>;
  /** As last read; a backend must not change because the host did not answer once. */
  hardware: HostFacts['hardware'];
  /** The last plan that passed its inspection. */
  plan: Plan;
  /** In milliseconds of the clock's `now()`. */
  passedAt: number | undefined;
  /** Whether this controller led in the last pass. */
  led: boolean;
}

/** How often users see a pull advance. */
const PROGRESS_WITHIN_MS = 1000;
/** Probes that repeat their last result share a pass. */
const NOTHING_NEW_WITHIN_MS = 1000;
const NOT_PASSED: Passed = { wakeAt: undefined, busyMs: 0 };
const NO_PLAN: Plan = { actions: [], decisions: new Map(), orphans: new Map(), wakeAt: undefined };
