/** Creates the controller: the reconcile loop with everything that it observes and reports to. */
import path from 'node:path';
import { createMetrics } from '../api/metrics/metrics.ts';
import { readEarlierStatuses, createStatusFiles } from '../files/status-files.ts';
import { createRequestHistoryFiles } from '../files/request-history-files.ts';
import { createCaptures, type Captures } from '../files/captures.ts';
import { createEventFeed } from '../files/timeline-files.ts';
import { createSharedLimits } from '../gateway/limits/shared-limits.ts';
import { createValkeyCounts } from '../gateway/limits/valkey-counts.ts';
import { createLocalAccounts, type LimitAccounts } from '../gateway/traffic/admit-caller.ts';
import { shareOf } from '../gateway/limits/decide/count-report.ts';
import { createCaptureTaps, type CaptureRule, type CaptureTaps } from '../gateway/capture/capture-taps.ts';
import { createTraffic } from '../gateway/traffic/traffic.ts';
import { createClock, sleep } from '../platform/clock.ts';
import { hadRequests } from '../turbo/heap/collect-when-idle.ts';
import { readRegularFile } from '../files/regular-file.ts';
import { createHeapLimits } from '../turbo/heap/heap-limits.ts';
import { createProbeIo } from '../platform/probe-io.ts';
import type { Clock } from '../reconciler/ports.ts';
import { createBoard, type Board } from '../reconciler/board.ts';
import { createBreather, type Breather } from '../platform/slices.ts';
import { createLoop } from '../reconciler/loop.ts';
import { createLogSink } from './service-parts.ts';
import { shareLimits } from '../turbo/workers/decide/share-limits.ts';
import { createLeasedAccounts } from '../turbo/workers/leased-limits.ts';
import { createLender, type Lender } from '../turbo/workers/lent-limits.ts';
import { createWorkerPool } from '../turbo/workers/worker-pool.ts';
import { openUsage } from './open-usage.ts';
import { createEvaluation } from './evaluate-workload.ts';
import { startTraces } from './start-traces.ts';
import { PendingRows } from '../usage/pending-rows.ts';
import type { ServiceOptions, World } from './world.ts';

export type Controller = Awaited<ReturnType<typeof createController>>;

/** A row has twelve series at most. What comes later is counted together, as `others`. */
const CALLERS_IN_METRICS = { callers: 100, rows: 2000 };
/** With more slots, most of the heap is garbage of passes. */
const MANY_SLOTS = 100;
/** During a pass, a request waits for a slice at each of its turns, unless one pause is long enough for all. */
const PASS_SLICE_MS = 1;
const PASS_PAUSE_MS = 1;
/** After this long without a request, passes pause for none: an edit takes effect sooner. */
const QUIET_MS = 1000;
/** Workers have the numbers from 1. */
const OWN = 0;

/** `isBusy` is asked at the beginning of each pass. */
export const createPassBreather =
  (isBusy: () => boolean, rest = async () => await sleep(PASS_PAUSE_MS)): (() => Breather) =>
  () =>
    createBreather({ sliceMs: PASS_SLICE_MS, ...(isBusy() ? { turn: rest } : {}) });

export async function createController(options: ServiceOptions, world: World, processes: number) {
  const { settings, version, log, providers } = options;
  const { traits } = world.runtime;
  const limits = processes > 1 ? shareLimits(settings, processes).controller : settings;
  const clock = createClock();
  const heap = createHeapLimits();
  const board = createBoard();
  const traces = await startTraces({ ...options, leadership: world.leadership }, board);
  const callerLimits = createCallerCounts(options, world, { clock, processes });
  const local = createTraffic({ board, now: clock.now, settings: limits });
  const breather = createPassBreather(() => hadRequests(traffic.read(), clock.now(), QUIET_MS));
  const { captures, taps } = openCaptures(options, world, { clock, inWorkers: async (rules) => await workers?.capture(rules) });
  const metrics = createMetrics({
    captures: () => captures?.active() ?? 0,
    breather,
    version,
    runtime: traits.kind,
    board,
    traffic: (slot) => traffic.ofSlot(slot),
    leads: () => world.leadership.leads(),
    cluster: world.cluster,
    hasTraces: traces !== undefined,
    callers: traits.network === 'pods' && settings.SVC_USAGE === 'on' ? new PendingRows(CALLERS_IN_METRICS) : undefined,
    limitsAreShared: callerLimits.isShared,
    sourceIsSynced: world.repository?.isSynced,
  });
  const { lender } = callerLimits;
  const pool = { count: processes - 1, local, board, now: clock.now, log, metrics: metrics.workers, lender };
  const workers = processes > 1 ? createWorkerPool(pool) : undefined;
  const traffic = workers?.traffic ?? local;
  const usage = openUsage(options, world, { board, clock, traffic });
  const timelineDirectory = path.join(settings.SVC_STATE_DIR, 'timelines');
  const events = await createEventFeed(timelineDirectory, log);
  // SlotSpecs contain their status.
  const statusDirectory = traits.kind === 'kube' ? undefined : path.join(settings.SVC_STATE_DIR, 'status');
  const files = createStatusFiles({ statusDirectory, timelineDirectory, log });
  const histories = createRequestHistoryFiles(path.join(settings.SVC_STATE_DIR, 'learned'), log);
  const leaderLog = createLogSink(log, () => world.leadership.leads());
  const loop = createLoop({
    ...world,
    traffic: world.shareTraffic(traffic),
    clock,
    providers,
    images: (kind, backend) => world.toolboxes().find(kind, backend),
    probeIo: createProbeIo(),
    evaluation: createEvaluation({ ...options, settings: limits, board, traffic, now: clock.now }),
    sinks: [...present([events, files, metrics.reconcile, metrics.callers, usage, leaderLog]), ...world.sinks, ...(traces?.sinks ?? [])],
    board: publishing(board, heap, world),
    settings,
    log,
    metrics: traces?.watch(metrics.reconcile) ?? metrics.reconcile,
    breather,
    histories: { files: histories, known: await histories.read() },
    lastSeq: events.last(),
    ...(statusDirectory === undefined ? {} : { earlier: await readEarlierStatuses(statusDirectory, log) }),
  });
  return { clock, heap, board, traffic, callerLimits, workers, limits, metrics, events, files, loop, traces, captures, taps, usage };
}

const present = <Value>(values: readonly (Value | undefined)[]): readonly Value[] => values.filter((value) => value !== undefined);

function publishing(board: Board, heap: ReturnType<typeof createHeapLimits>, world: World): Board {
  return {
    ...board,
    publish(view) {
      if (view.slots.size > MANY_SLOTS) heap.growForManySlots();
      board.publish(world.publishedView(view));
    },
  };
}

interface CaptureParts {
  readonly clock: Clock;
  /** Resolves when the workers capture too. */
  readonly inWorkers: (rules: readonly CaptureRule[]) => Promise<void>;
}

/** A worker that hangs captures a little later. */
const WORKERS_MS = 500;

/** No captures in a cluster, where the requests of a slot or caller meet any replica. */
function openCaptures({ settings, log }: ServiceOptions, { runtime }: World, { clock, inWorkers }: CaptureParts) {
  if (runtime.traits.network === 'pods') return { captures: undefined, taps: undefined };
  const taps: CaptureTaps = createCaptureTaps((ids, text) => captures.take(ids, text), clock.wallNow);
  const captures: Captures = createCaptures({
    directory: path.join(settings.SVC_STATE_DIR, 'captures'),
    clock,
    log,
    async apply(running) {
      const rules = running.map(({ id, caller, slot }) => ({ id, caller, slot }));
      taps.set(rules);
      await Promise.race([inWorkers(rules), sleep(WORKERS_MS)]);
    },
  });
  return { captures, taps };
}

/** Counts of callers with limits: of all processes and, with `SVC_LIMITS_URL`, of all gateways. */
function createCallerCounts(
  { settings, log }: Pick<ServiceOptions, 'settings' | 'log'>,
  world: Pick<World, 'gateways'>,
  { clock, processes }: { readonly clock: Clock; readonly processes: number },
) {
  const { now } = clock;
  const { SVC_LIMITS_URL: url, SVC_LIMITS_PASSWORD_FILE: passwordFile } = settings;
  const readPassword = passwordFile === undefined ? undefined : async (): Promise<string> => await readRegularFile(passwordFile);
  const counts = url === undefined ? undefined : createValkeyCounts({ url, readPassword, clock, log });
  const gateways = world.gateways ?? (() => counts?.gateways() ?? 1);
  const accounts = createLocalAccounts(now, (limits) => shareOf(limits, gateways()));
  const shared = counts && createSharedLimits({ server: counts, accounts, now });
  const lender = createLender({ accounts, processes, now, shared });
  return {
    lender,
    accounts: shared === undefined ? accounts : leaseFrom(lender, now),
    /** Undefined without `SVC_LIMITS_URL`. */
    isShared: counts?.isShared,
    state: () => ({ shared: counts?.isShared() ?? false, gateways: gateways(), problem: counts?.problem() ?? null }),
    start: async (signal: AbortSignal): Promise<void> => await counts?.start(signal),
  };
}

/** The controller forwards requests as workers do, so that these cost no round trip either. */
function leaseFrom(lender: Lender, now: () => number): LimitAccounts {
  const leased = createLeasedAccounts({
    now,
    report: (report) => lender.take(OWN, report),
    ask(ask) {
      const answer = lender.lend(OWN, ask);
      if (answer instanceof Promise) void answer.then(leased.answer);
      else leased.answer(answer);
    },
  });
  return leased;
}
