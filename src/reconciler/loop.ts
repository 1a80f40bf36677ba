/**
 * The reconcile loop: one pass at a time, each of them
 *
 *     wake → read what is desired → observe → track → plan → inspect → publish → begin actions → wait for the next wake
 *
 * `main.ts` starts it. The pacer calls `pass` when a port wakes it, when an action has ended with something new, when
 * the plan's `wakeAt` comes, and at the latest after `SVC_RESYNC`. A wake carries no data: each pass observes all.
 * Actions run outside the pass; the executor records their results in the tracker, where the next pass finds them as
 * facts. Everything that is decided is decided in `decide/`. `plan-pass.ts` has what is between "observe" and
 * "publish", in parts between which a pass over many slots pauses.
 */
import type { FailureRecords } from '../schema/status/slot-status.ts';
import type { ProbeIo } from '../providers/provider.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { RequestHistories, RequestHistory } from '../schema/status/request-history.ts';
import type { SlotDocument } from '../schema/slot/slot-spec.ts';
import type { Board } from './board.ts';
import { changesWorld, type Action, type Evaluation } from './decide/facts/actions.ts';
import { passResult, type EarlierStatus } from './decide/outcome/resume-times.ts';
import type { NewEntry } from './decide/outcome/published-status.ts';
import type { Attempt, Observed, Plan } from './decide/facts/facts.ts';
import { recallFailures } from './decide/facts/recorded-failures.ts';
import { createDeadline, NOTHING_KNOWN, observe, readDesired, readRecords, type Observation, type Senses } from './observe.ts';
import { createObjectionLog, createPassPlanner, trackPlan, type Decide, type PassInput, type PlannedPass } from './plan-pass.ts';
import { createExecutor, type Outcome } from './execute.ts';
import { createTracker } from './tracker.ts';
import { rememberBackends } from './remember/desire.ts';
import { observedFacts } from './remember/merge-observation.ts';
import { createWarmth, type Warmth } from './remember/warmth.ts';
import { describeWrong } from './decide/rules/forecast.ts';
import { createPacer, type Passed } from './pacer.ts';
import type { Clock, DesiredState, ModelStore, PromptStore, ReadAhead, ReadAheadReport, StatusSink, Traffic, Wake } from './ports.ts';
import { preview, type Preview } from './preview.ts';
import { inOneGo, type Parts } from '../platform/decide/parse-json.ts';
import { inSlices, type Breather } from '../platform/slices.ts';
import { createReporter } from './report.ts';
import type { Log } from '../platform/log.ts';

/** Every method is cheap and never throws. State changes and drift are counted from the reports that sinks get. */
export interface LoopMetrics {
  passFinished(pass: { readonly seconds: number; readonly result: string }): void;
  actionFinished(action: { readonly action: string; readonly result: string }): void;
  bytesPulled(pulled: { readonly what: 'model' | 'image'; readonly bytes: number }): void;
  /** Bytes of models that were read from the disk before a server needed them. */
  bytesReadAhead(bytes: number): void;
  /** A slot was loaded ahead of requests, and a request has come in time or has not. */
  loadedAhead(load: { readonly slot: SlotName; readonly right: boolean }): void;
}

export interface LoopDeps extends Omit<Senses, 'within' | 'give'> {
  readonly traffic: Traffic;
  readonly clock: Clock;
  readonly probeIo: ProbeIo;
  /** Default: no prompts are kept. */
  readonly prompts?: PromptStore | undefined;
  /** Default: no model is asked for answers to cases. */
  readonly evaluation?: Evaluation | undefined;
  /** Default: no model is read ahead. */
  readonly readAhead?: ReadAhead | undefined;
  readonly sinks: readonly StatusSink[];
  readonly board: Board;
  readonly settings: Pick<Settings, 'SVC_RESYNC' | 'SVC_PORT_RANGE' | 'SVC_MEMORY_BUDGET'> &
    Partial<Pick<Settings, 'SVC_LISTEN' | 'SVC_MANAGEMENT_LISTEN' | 'SVC_TIME_ZONE' | 'SVC_WYOMING'>>;
  readonly log: Log;
  readonly metrics?: LoopMetrics;
  /** Whether this controller executes its plans. A follower only probes. Default: it leads. */
  readonly leadership?: { leads(): boolean; changes(wake: Wake, signal: AbortSignal): void };
  /** What earlier controllers recorded; read before this one begins to act. Default: nothing. */
  readonly records?: FailureRecords;
  /** `seq` of the newest timeline entry that an earlier process wrote. Default 0. */
  readonly lastSeq?: number;
  /** What an earlier process published of each slot. Default: nothing. */
  readonly earlier?: ReadonlyMap<SlotName, EarlierStatus>;
  /** Where what is learned of requests is kept, and what was learned before. Default: nowhere, nothing. */
  readonly histories?: { readonly files: Pick<RequestHistories, 'write'>; readonly known: ReadonlyMap<SlotName, RequestHistory> };
  /** Asked once for each pass, between whose parts it pauses. Default: passes do not pause. */
  readonly breather?: () => Breather;
  /** Replaces the planner; the simulation uses this to prove that it would notice a broken one. */
  readonly decide?: Decide;
}

export type Loop = ReturnType<typeof createLoop>;

export function createLoop(deps: LoopDeps) {
  const { clock, runtime, traffic, log, metrics } = deps;
  const { traits } = runtime;
  const within = createDeadline(clock);
  const give = rememberBackends();
  const senses: Senses = { ...deps, within, give };
  const tracker = createTracker();
  const reporter = createReporter(deps.lastSeq ?? 0, deps.earlier);
  const warmth = warmthOf(deps, reporter);
  const planner = createPassPlanner({ ...deps, give, tracker, reporter, warmth });
  const logObjections = createObjectionLog(log);
  const leads = (): boolean => deps.leadership?.leads() ?? true;
  /** As last read; stays in force while the source cannot be read. */
  let desired: DesiredState | undefined;
  /** As last observed; stays in force while the store does not answer. */
  let models: Awaited<ReturnType<ModelStore['observe']>> = new Map();
  let host = NOTHING_KNOWN;
  /** The last one that passed its inspection. */
  let decisions: Plan['decisions'] = new Map();
  let passedAt: number | undefined;
  /** How long the present pass has paused between its parts. */
  let pausedMs = 0;
  /** Whether this controller led in the last pass. */
  let led = leads();

  const pacer = createPacer(clock, deps.settings.SVC_RESYNC, () => tracker.underWay.size === 0, pass);
  const executor = createExecutor({
    ...deps,
    within,
    tracker,
    waitingFor: (key) => [...decisions.values()].filter(({ waitsFor }) => waitsFor.includes(key)).map(({ name }) => name),
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
    if (read.ok) desired = read.value;
    else log.warn({ reason: read.failure.reason }, read.failure.message);
    if (desired === undefined) {
      metrics?.passFinished({ seconds: (clock.now() - beganAt) / 1000, result: 'unreadable' });
      return NOT_PASSED;
    }
    const state = desired;
    deps.prompts?.keepOnly(keepersOf(state));
    const seen = await observe(senses, state.slots, host, signal);
    ({ host } = seen);
    const records = passedAt === undefined || (leads() && !led) ? await recall(signal) : undefined;
    if (signal.aborted) return NOT_PASSED;
    const seenAt = clock.now();
    const recalled = records && recallFailures(records, state.slots, { now: seenAt, wallNow: clock.wallNow() });
    const plan = await conclude({ state, seen }, recalled, signal);
    if (signal.aborted && plan === undefined) return NOT_PASSED;
    const result = passResult({ readable: read.ok, reachable: seen.runtime.ok, accepted: plan !== undefined });
    metrics?.passFinished({ seconds: (clock.now() - beganAt) / 1000, result });
    return { wakeAt: plan?.wakeAt, busyMs: clock.now() - seenAt - pausedMs };
  }

  /** Slots must be healed also where records stay unreadable: then crashes are counted anew, and the log says so. */
  async function recall(signal: AbortSignal): ReturnType<FailureRecords['read']> {
    const read = await readRecords({ records: deps.records, within, clock }, signal);
    if (read.ok) return read.value;
    log.warn({ reason: read.failure.reason }, `Earlier failures cannot be read, so crashes are counted from zero: ${read.failure.message}`);
    return new Map();
  }

  /** Plans in parts, with pauses between them; if a pass overtakes it in a pause, plans again without pauses. */
  async function conclude({ state, seen }: Facts, recalled: Recalled | undefined, signal: AbortSignal): Promise<Plan | undefined> {
    models = seen.models ?? models;
    const partsAs = (role: Role): Parts<PlannedPass> =>
      planner.plan({ ...role, state, seen, models, recalled: recalled ?? new Map(), now: clock.now() });
    // At the first pass, there is nothing yet to forward.
    const breathe = passedAt === undefined ? undefined : deps.breather?.();
    pausedMs = 0;
    const role = takeRole(recalled);
    if (breathe === undefined) return carryOut(inOneGo(partsAs(role)), role);
    const planned = await inSlices(partsAs(role), async () => {
      const pausesFrom = clock.now();
      await breathe();
      pausedMs += clock.now() - pausesFrom;
    });
    if (signal.aborted) return undefined;
    const present = leads() === role.leads ? role : takeRole(recalled);
    const isOvertaken = present !== role || planner.isOvertaken(planned);
    return carryOut(isOvertaken ? inOneGo(partsAs(present)) : planned, present);
  }

  /** A leader acts once it knows what the leader before it recorded, which the next pass reads. */
  function takeRole(recalled: Recalled | undefined): Role {
    const leading = leads() && (led || recalled !== undefined);
    const takesOver = leading && !led;
    if (leading !== led) changeLeadership(leading);
    return { leads: leads(), leading, takesOver };
  }

  /** Synchronous since the check for overtaken slots: no request can arrive between counting and publishing. */
  function carryOut({ observed, objections, outcome }: PlannedPass, { leading }: Role): Plan | undefined {
    const now = clock.now();
    led = leading;
    passedAt = now;
    logObjections(objections);
    if (outcome === undefined) return undefined;
    ({ decisions } = outcome.plan);
    trackPlan(tracker, outcome.plan, observed, now);
    deps.board.publish(reporter.publish(outcome.prepared));
    deps.readAhead?.follow((leading && outcome.plan.readAhead) || [], readOn);
    for (const action of outcome.actions) begin(action);
    const report = reporter.report(clock.wallNow());
    if (report !== undefined) for (const sink of deps.sinks) sink.write(report);
    return outcome.plan;
  }

  /** What this controller learned of failures belongs to its own term as the leader. */
  function changeLeadership(leading: boolean): void {
    log.info({}, leading ? 'This controller now carries out plans' : 'Another controller carries out plans from now on');
    if (leading) return reporter.renew();
    executor.abandon();
    for (const name of tracker.attempts.all.keys()) tracker.attempts.clearFailures(name);
  }

  /** The next pass looks whether there is still memory for it. */
  function readOn(slot: SlotName, report: ReadAheadReport, newBytes: number): void {
    tracker.attempts.readAhead(slot, report);
    metrics?.bytesReadAhead(newBytes);
    pacer.wake(PROGRESS_WITHIN_MS);
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
    // The plan has the time of the next probe.
    if (outcome.kind === 'done' && outcome.asBefore === true) return pacer.actionEnded();
    pacer.wake(outcome.kind === 'done' && tracker.underWay.size > MANY_UNDER_WAY ? ONE_OF_MANY_WITHIN_MS : 0);
  }

  return {
    wake: pacer.wake,
    /** Adds an entry to the timeline of a slot, with the next pass. */
    note: (slot: SlotName, entry: NewEntry) => reporter.note(slot, entry, clock.wallNow()),
    /** Waiting for a time (back-off, next probe) does not count. */
    idle: pacer.idle,
    /** When the last pass ended, in milliseconds of the clock's `now()`; undefined before the first. */
    lastPassAt: () => passedAt,
    workloads: planner.workloads,
    /** Runs until the signal aborts; resolves when every action under way has ended. Workloads keep running. */
    async start(signal: AbortSignal): Promise<void> {
      for (const port of [deps.source, runtime, deps.models, traffic]) port.changes(pacer.wake, signal);
      deps.leadership?.changes(() => {
        if (!leads()) executor.abandon();
        pacer.wake();
      }, signal);
      await pacer.run(signal, (error) => log.error({ error: String(error) }, 'A pass threw an error; report this as a bug'));
      deps.readAhead?.follow([], readOn);
      await executor.close();
    },
    /** Plans as if these documents replaced the present ones (undefined: removed), and requests waited for `asked`. */
    async preview(overlay: ReadonlyMap<SlotName, SlotDocument | undefined>, asked: ReadonlySet<SlotName> = new Set()): Promise<Preview> {
      const { published } = reporter;
      const observedOf = (seen: Observation, slots: DesiredState['slots'], now: number): Observed => {
        const known = { models: seen.models ?? new Map(), warmth: warmth.facts(slots, { now, wallNow: clock.wallNow() }) };
        return observedFacts(tracker, { seen, ...known, traffic: traffic.read(), traits, leads: leads(), published, now });
      };
      return await preview({ senses, deps, clock, overlay, asked, known: desired, host, observedOf });
    },
  };
}

function warmthOf({ settings, histories, metrics, clock }: LoopDeps, reporter: ReturnType<typeof createReporter>): Warmth {
  return createWarmth({
    zone: settings.SVC_TIME_ZONE,
    histories: histories?.files,
    known: histories?.known,
    onEnded(slot, { because, right, loads, outcomes }) {
      if (!loads) return;
      metrics?.loadedAhead({ slot, right });
      if (right) return;
      reporter.note(slot, { kind: 'condition', message: describeWrong(because, outcomes), cause: because.reason }, clock.wallNow());
    },
  });
}

type Recalled = ReadonlyMap<SlotName, readonly Attempt[]>;
type Facts = Pick<PassInput, 'state' | 'seen'>;

const keepersOf = ({ slots, refused }: DesiredState): ReadonlySet<SlotName> =>
  new Set([...[...slots.values()].flatMap(({ name, spec }) => (spec.lifecycle.keepPrompts ? name : [])), ...refused.keys()]);

/** What this controller may do in a pass. */
interface Role {
  /** Whether it was the leader when this was decided. */
  readonly leads: boolean;
  /** It acts. */
  readonly leading: boolean;
  /** It begins to act in this pass. */
  readonly takesOver: boolean;
}

/** How often users see a pull advance. */
const PROGRESS_WITHIN_MS = 1000;
/** The end of one of so many actions is followed by others, which share a pass. */
const MANY_UNDER_WAY = 32;
const ONE_OF_MANY_WITHIN_MS = 1000;
const NOT_PASSED: Passed = { wakeAt: undefined, busyMs: 0 };
