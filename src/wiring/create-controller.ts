/** Creates the controller: the reconcile loop with everything that it observes and reports to. */
import path from 'node:path';
import { createMetrics } from '../api/metrics/metrics.ts';
import { readEarlierStatuses, createStatusFiles } from '../files/status-files.ts';
import { createRequestHistoryFiles } from '../files/request-history-files.ts';
import { createEventFeed } from '../files/timeline-files.ts';
import { createLocalAccounts } from '../gateway/traffic/admit-caller.ts';
import { createTraffic } from '../gateway/traffic/traffic.ts';
import { createClock, sleep } from '../platform/clock.ts';
import { hadRequests } from '../turbo/heap/collect-when-idle.ts';
import { createHeapLimits } from '../turbo/heap/heap-limits.ts';
import { createProbeIo } from '../platform/probe-io.ts';
import { createBoard } from '../reconciler/board.ts';
import { createBreather, type Breather } from '../platform/slices.ts';
import { createLoop } from '../reconciler/loop.ts';
import { createLogSink } from './service-parts.ts';
import { shareLimits } from '../turbo/workers/decide/share-limits.ts';
import { createWorkerPool } from '../turbo/workers/worker-pool.ts';
import { PendingRows } from '../usage/pending-rows.ts';
import type { ServiceOptions, World } from './world.ts';

export type Controller = Awaited<ReturnType<typeof createController>>;

/** A row has ten series at most. What comes later is counted together, as `others`. */
const CALLERS_IN_METRICS = { callers: 100, rows: 2000 };
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
  const metrics = createMetrics({
    breather,
    version,
    runtime: runtime.traits.kind,
    board,
    traffic: (slot) => traffic.ofSlot(slot),
    leads: () => world.leadership.leads(),
    cluster: world.cluster,
    callers: runtime.traits.network === 'pods' && settings.SVC_USAGE === 'on' ? new PendingRows(CALLERS_IN_METRICS) : undefined,
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
  return { clock, heap, board, traffic, limitAccounts, workers, limits, metrics, events, files, loop };
}
