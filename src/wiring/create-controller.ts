/** Creates the controller: the reconcile loop with everything that it observes and reports to. */
import path from 'node:path';
import { createMetrics } from '../api/metrics/metrics.ts';
import { readEarlierStatuses, createStatusFiles } from '../files/status-files.ts';
import { createRequestHistoryFiles } from '../files/request-history-files.ts';
import { createCaptures, type Captures } from '../files/captures.ts';
import { createEventFeed } from '../files/timeline-files.ts';
import { createLocalAccounts } from '../gateway/traffic/admit-caller.ts';
import { createCaptureTaps, type CaptureRule, type CaptureTaps } from '../gateway/capture/capture-taps.ts';
import { createTraffic } from '../gateway/traffic/traffic.ts';
import { createClock, sleep } from '../platform/clock.ts';
import type { Clock } from '../reconciler/ports.ts';
import { hadRequests } from '../turbo/heap/collect-when-idle.ts';
import { createHeapLimits } from '../turbo/heap/heap-limits.ts';
import { createProbeIo } from '../platform/probe-io.ts';
import { createBoard } from '../reconciler/board.ts';
import { createBreather, type Breather } from '../platform/slices.ts';
import { createLoop } from '../reconciler/loop.ts';
import { createLogSink } from './service-parts.ts';
import { shareLimits } from '../turbo/workers/decide/share-limits.ts';
import { createWorkerPool } from '../turbo/workers/worker-pool.ts';
import type { ServiceOptions, World } from './world.ts';

export type Controller = Awaited<ReturnType<typeof createController>>;

/** With more slots, most of the heap is garbage of passes. */
const MANY_SLOTS = 100;
/** During a pass, a request waits for a slice at each of its turns, unless one pause is long enough for all. */
const PASS_SLICE_MS = 1;
const PASS_PAUSE_MS = 1;
/** After this long without a request, passes pause for none: an edit takes effect sooner. */
const QUIET_MS = 1000;

/** `isBusy` is asked at the beginning of each pass. */
export const createPassBreather =
  (isBusy: () => boolean, rest = async () => await sleep(PASS_PAUSE_MS)): (() => Breather) =>
  () =>
    createBreather({ sliceMs: PASS_SLICE_MS, ...(isBusy() ? { turn: rest } : {}) });

export async function createController(options: ServiceOptions, world: World, processes: number) {
  const { settings, version, log, providers } = options;
  const limits = processes > 1 ? shareLimits(settings, processes).controller : settings;
  const { runtime } = world;
  const clock = createClock();
  const heap = createHeapLimits();
  const board = createBoard();
  const limitAccounts = createLocalAccounts(clock.now);
  const local = createTraffic({ board, now: clock.now, settings: limits });
  const breather = createPassBreather(() => hadRequests(traffic.read(), clock.now(), QUIET_MS));
  const { captures, taps } = openCaptures(options, world, { clock, inWorkers: async (rules) => await workers?.capture(rules) });
  const metrics = createMetrics({
    captures: () => captures?.active() ?? 0,
    breather,
    version,
    runtime: runtime.traits.kind,
    board,
    traffic: (slot) => traffic.ofSlot(slot),
    leads: () => world.leadership.leads(),
    cluster: world.cluster,
  });
  const workers =
    processes > 1
      ? createWorkerPool({ count: processes - 1, local, board, now: clock.now, log, metrics: metrics.workers, limitAccounts })
      : undefined;
  const traffic = workers?.traffic ?? local;
  const timelineDirectory = path.join(settings.SVC_STATE_DIR, 'timelines');
  const events = await createEventFeed(timelineDirectory, log);
  // SlotSpecs contain their status.
  const statusDirectory = runtime.traits.kind === 'kube' ? undefined : path.join(settings.SVC_STATE_DIR, 'status');
  const files = createStatusFiles({ statusDirectory, timelineDirectory, log });
  const histories = createRequestHistoryFiles(path.join(settings.SVC_STATE_DIR, 'learned'), log);
  const loop = createLoop({
    ...world,
    traffic: world.shareTraffic(traffic),
    clock,
    providers,
    images: (kind, backend) => world.toolboxes().find(kind, backend),
    probeIo: createProbeIo(),
    sinks: [events, files, metrics.reconcile, createLogSink(log, () => world.leadership.leads()), ...world.sinks],
    board: {
      ...board,
      publish(view) {
        if (view.slots.size > MANY_SLOTS) heap.growForManySlots();
        board.publish(world.publishedView(view));
      },
    },
    settings,
    log,
    metrics: metrics.reconcile,
    breather,
    histories: { files: histories, known: await histories.read() },
    lastSeq: events.last(),
    ...(statusDirectory === undefined ? {} : { earlier: await readEarlierStatuses(statusDirectory, log) }),
  });
  return { clock, heap, board, traffic, limitAccounts, workers, limits, metrics, events, files, loop, captures, taps };
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
