/** Creates the controller: the reconcile loop with everything that it observes and reports to. */
import path from 'node:path';
import { createMetrics } from '../api/metrics/metrics.ts';
import { readEarlierStatuses } from '../files/earlier-statuses.ts';
import { createEventFeed } from '../files/event-feed.ts';
import { createStatusFiles } from '../files/status-files.ts';
import { createTraffic } from '../gateway/traffic.ts';
import { createClock } from '../platform/clock.ts';
import { createHeapLimits } from './heap/heap-limits.ts';
import { createProbeIo } from '../platform/probe-io.ts';
import { createBoard } from '../reconciler/board.ts';
import { createLoop } from '../reconciler/loop.ts';
import { createLogSink } from './service-parts.ts';
import type { ServiceOptions, World } from './world.ts';

export type Controller = Awaited<ReturnType<typeof createController>>;

/** With more slots, most of the heap is garbage that passes leave behind. */
const MANY_SLOTS = 100;

export async function createController({ settings, version, log, providers }: ServiceOptions, world: World) {
  const { runtime } = world;
  const clock = createClock();
  const heap = createHeapLimits();
  const board = createBoard();
  const traffic = createTraffic({ board, now: clock.now, settings });
  const metrics = createMetrics({
    version,
    runtime: runtime.traits.kind,
    board,
    traffic: traffic.ofSlot,
    leads: () => world.leadership.leads(),
    cluster: world.cluster,
  });
  const timelineDirectory = path.join(settings.SVC_STATE_DIR, 'timelines');
  const events = await createEventFeed({ timelineDirectory });
  // In a cluster, each SlotSpec contains its status.
  const statusDirectory = runtime.traits.kind === 'kube' ? undefined : path.join(settings.SVC_STATE_DIR, 'status');
  const files = createStatusFiles({ statusDirectory, timelineDirectory, log });
  const loop = createLoop({
    ...world,
    traffic: world.shareTraffic(traffic),
    clock,
    providers,
    images: (kind, backend) => world.toolboxes().find(kind, backend),
    probeIo: createProbeIo(),
    sinks: [events, files, metrics.reconcile, createLogSink(log), ...world.sinks],
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
    lastSeq: events.last(),
    ...(statusDirectory === undefined ? {} : { earlier: await readEarlierStatuses(statusDirectory) }),
  });
  return { clock, heap, board, traffic, metrics, events, files, loop };
}
