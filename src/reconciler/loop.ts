/**
 * The loop: look, plan, inspect, publish, begin. One pass at a time; wakes carry nothing and are gathered; slow work runs outside and comes
 * back as a fact. Everything it decides is decided in `decide/`.
 */
import type { ProbeIo, ProviderRegistry } from '../providers/provider.ts';
import type { SlotName } from '../schema/names.ts';
import type { Backend, ProviderKind } from '../schema/provider-kinds.ts';
import type { Settings } from '../schema/settings.ts';
import type { SlotDocument } from '../schema/slot-spec.ts';
import type { Board } from './board.ts';
import { changesWorld, type Action } from './decide/facts/actions.ts';
import type { Change } from './decide/outcome/explain.ts';
import type { Desired, Observed, Plan } from './decide/facts/facts.ts';
import { inspect } from './decide/inspect.ts';
import { createPlanCache } from './decide/plan-cache.ts';
import { plan } from './decide/plan.ts';
import { createTemplates } from './decide/facts/workload.ts';
import { createDeadline } from './deadline.ts';
import { createExecutor, type Outcome } from './execute.ts';
import { createTracker } from './tracker.ts';
import { observe, readDesired, type Senses } from './observe.ts';
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
import { createReporter } from './report.ts';
import { absorb, createSightings } from './sightings.ts';
import type { Log } from '../platform/log.ts';

/** Every method is cheap and never throws. Moves and drift are counted from the entries that sinks get. */
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
  /** The image a provider runs in; undefined: none is known. Asked anew in each pass. */
  readonly images: (kind: ProviderKind, backend: Backend) => ImageReference | undefined;
  readonly probeIo: ProbeIo;
  readonly sinks: readonly StatusSink[];
  readonly board: Board;
  readonly settings: Pick<Settings, 'SVC_RESYNC' | 'SVC_PORT_RANGE' | 'SVC_MEMORY_BUDGET'>;
  readonly log: Log;
  readonly metrics?: LoopMetrics;
  /** Whether plans are carried out here, where several controllers look at one world. While they are not, all that is begun are probes. Default: they are. */
  readonly leadership?: { leads(): boolean; changes(wake: Wake, signal: AbortSignal): void };
  /** `seq` of the newest timeline entry of an earlier life. Default 0. */
  readonly lastSeq?: number;
  /** Stands in for the planner: how the simulation proves that it would notice a broken one. */
  readonly decide?: { readonly plan: typeof plan; readonly inspect: typeof inspect };
}

export interface Loop {
  /** Runs until the signal aborts; resolves when everything under way has ended. Workloads keep running. */
  start(signal: AbortSignal): Promise<void>;
  readonly wake: Wake;
  /** Resolves when a pass has nothing more to do and nothing is under way. Waiting for a time (a back-off, a probe) counts as nothing. */
  idle(): Promise<void>;
  /** Plans with these documents laid over the present ones (undefined: remove the slot) and carries nothing out. */
  preview(
    overlay: ReadonlyMap<SlotName, SlotDocument | undefined>,
  ): Promise<{ readonly text: string; readonly changes: readonly Change[] }>;
  /** Unix milliseconds of the end of the last pass; undefined before the first. */
  lastPassAt(): number | undefined;
}

export function createLoop(deps: LoopDeps): Loop {
  const { clock, runtime, board, log, metrics } = deps;
  const decide = deps.decide ?? { plan, inspect };
  const within = createDeadline(clock);
  const tracker = createTracker();
  const sightings = createSightings();
  const reporter = createReporter(deps.lastSeq ?? 0);
  const senses: Senses = { ...deps, within };
  const templateOf = createTemplates(deps.providers, runtime.traits, deps.models.root);
  const memory = createPlanCache();
  const desireOf = (read: DesiredState, memoryTotalBytes: number | undefined, templates: Desired['templateOf']): Desired =>
    desire(deps, read, memoryTotalBytes, templates);
  let state: DesiredState | undefined;
  let last: { readonly plan: Plan; readonly at: number } | undefined;
  const leads = (): boolean => deps.leadership?.leads() ?? true;
  let led = leads();

  const pacer = createPacer(clock, deps.settings.SVC_RESYNC, () => tracker.underWay.size === 0, pass);
  const executor = createExecutor({
    ...deps,
    within,
    tracker,
    waitingFor: (key) =>
      [...(last?.plan.decisions.values() ?? [])].filter(({ waitsFor }) => waitsFor.includes(key)).map(({ name }) => name),
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
    if (read.ok) state = sightings.settle(read.value);
    else log.warn({ reason: read.failure.reason }, read.failure.message);
    if (state === undefined) return NOT_PASSED;
    const seen = await observe(senses, state.slots, signal);
    if (signal.aborted) return NOT_PASSED;
    const seenAt = clock.now();
    const wakeAt = conclude(state, seen, seenAt);
    const result = wakeAt === 'refused' ? 'refused' : seen.runtime.ok ? 'ok' : 'unreachable';
    metrics?.passFinished({ seconds: (clock.now() - beganAt) / 1000, result });
    return { wakeAt: wakeAt === 'refused' ? undefined : wakeAt, busyMs: clock.now() - seenAt };
  }

  /** From here to the last action begun nothing is awaited: no request can slip in between what was counted and what is published. */
  function conclude(desiredState: DesiredState, seen: Awaited<ReturnType<typeof observe>>, now: number): number | undefined | 'refused' {
    const desired = desireOf(desiredState, seen.host.memoryTotalBytes, templateOf);
    const leading = leads();
    if (leading !== led) turn(leading);
    const { traits } = runtime;
    const observed = absorb({
      tracker,
      sightings,
      reporter,
      traits,
      leads: leading,
      led,
      traffic: deps.traffic.read(),
      desired,
      seen,
      now,
    });
    led = leading;
    const next = decide.plan(desired, observed, now, memory);
    const objections = decide.inspect(next, desired, observed, now);
    if (objections.length > 0) {
      log.error({ objections }, 'Report this as a bug: a plan broke its own rules and is not carried out');
      last = { plan: last?.plan ?? NO_PLAN, at: now };
      return 'refused';
    }
    last = { plan: next, at: now };
    settle(next, observed, now);
    const actions = leading ? next.actions : next.actions.filter((action) => !changesWorld(action));
    board.publish(reporter.take({ ...next, actions }, desired, observed, now));
    for (const action of actions) begin(action, now);
    const report = reporter.report(now);
    if (report !== undefined) for (const sink of deps.sinks) sink.write(report);
    return next.wakeAt;
  }

  /** What this controller knows beyond what is seen is of its own time as the one that leads. */
  function turn(leading: boolean): void {
    log.info({}, leading ? 'Carries plans out from now on' : 'Leaves it to another controller to carry plans out');
    if (leading) return reporter.renew();
    executor.abandon();
    for (const name of tracker.attempts.keys()) tracker.clearFailures(name);
  }

  function settle(next: Plan, observed: Observed, now: number): void {
    if (observed.runtime.kind === 'unreachable') return;
    const draining = [...next.decisions.values()].flatMap(({ draining }) => draining);
    tracker.drain(new Set([...draining, ...next.orphans.keys()]), now);
    for (const { name, stable } of next.decisions.values()) if (stable) tracker.clearFailures(name);
  }

  function begin(action: Action, now: number): void {
    reporter.begun(action, now);
    if (changesWorld(action)) log.debug({ slot: action.slot, action: action.name, because: action.because.reason }, action.because.message);
    executor.begin(action, ended);
  }

  function ended(action: Action, outcome: Outcome): void {
    reporter.ended(action, outcome, clock.now());
    metrics?.actionFinished({ action: action.name, result: outcome.kind === 'none' ? 'cancelled' : outcome.kind });
    if (outcome.kind === 'failed')
      log.debug({ slot: action.slot, action: action.name, reason: outcome.failure.reason }, outcome.failure.message);
    pacer.wake(outcome.kind === 'done' && outcome.asBefore === true ? NOTHING_NEW_WITHIN_MS : 0);
  }

  return {
    wake: pacer.wake,
    idle: pacer.idle,
    lastPassAt: () => last?.at,
    async start(signal) {
      for (const port of [deps.source, runtime, deps.models, deps.traffic]) port.changes(pacer.wake, signal);
      deps.leadership?.changes(() => {
        if (!leads()) executor.abandon();
        pacer.wake();
      }, signal);
      await pacer.run(signal, (error) => log.error({ error: String(error) }, 'Report this as a bug: a pass threw'));
      await executor.close();
    },
    async preview(overlay) {
      const { providers, models, traffic } = deps;
      const learned = (now: number) => ({
        leads: leads(),
        histories: tracker.histories,
        attempts: tracker.attempts,
        running: tracker.running(),
        lastActive: tracker.lastActive,
        takenPorts: tracker.takenPorts(now),
        previous: reporter.previous,
      });
      return await preview({ senses, clock, providers, models, traffic, overlay, known: state, learned, desire: desireOf });
    },
  };
}

/** How often people see a pull advance. */
const PROGRESS_WITHIN_MS = 1000;
/** Probes that say what they said before are taken in together. */
const NOTHING_NEW_WITHIN_MS = 1000;
/** What the system and the gateway need is not the models'. */
const SHARE_OF_HOST = 0.9;
const NOT_PASSED: Passed = { wakeAt: undefined, busyMs: 0 };
const NO_PLAN: Plan = { actions: [], decisions: new Map(), orphans: new Map(), wakeAt: undefined };

function desire(
  { providers, images, settings, models, runtime }: LoopDeps,
  { slots, refused }: DesiredState,
  memoryTotalBytes: number | undefined,
  templateOf: Desired['templateOf'],
): Desired {
  // Pods do not run in the memory of this host.
  const ownMemory = runtime.traits.network === 'pods' ? undefined : memoryTotalBytes;
  const share = ownMemory === undefined ? undefined : Math.floor(ownMemory * SHARE_OF_HOST);
  return {
    slots,
    refused,
    providers,
    images,
    portRange: settings.SVC_PORT_RANGE,
    modelsRoot: models.root,
    memoryBudgetBytes: settings.SVC_MEMORY_BUDGET ?? share,
    templateOf,
  };
}
