/** The whole service: every concrete part, made once and put together. Nothing here decides anything. */
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createMetrics } from './api/metrics.ts';
import type { Manage } from './api/ports.ts';
import { createRoutes } from './api/routes.ts';
import { buildServer } from './api/server.ts';
import { createV1Routes } from './api/v1/v1-routes.ts';
import { chooseWorld } from './wiring/choose-world.ts';
import { createInventory } from './wiring/inventory.ts';
import type { Log } from './platform/log.ts';
import { createLogSink, createLogSource, listen, makeDirectories, reportTo, urlOf } from './wiring/service-parts.ts';
import { collectAtRest } from './platform/collect-at-rest.ts';
import { createHeapLimits } from './platform/heap-limits.ts';
import type { World } from './wiring/world.ts';
import { createGateway } from './gateway/gateway.ts';
import { createTraffic } from './gateway/traffic.ts';
import { PROVIDERS } from './providers/registry.ts';
import { createBoard } from './reconciler/board.ts';
import { createLoop } from './reconciler/loop.ts';
import type { Runtime } from './reconciler/ports.ts';
import { createClock } from './platform/clock.ts';
import { createProbeIo } from './platform/probe-io.ts';
import { createEventFeed } from './files/event-feed.ts';
import { createStatusFiles } from './files/status-files.ts';
import { fail, ok, type Result } from './schema/failure.ts';
import type { Settings } from './schema/settings.ts';

export interface ServiceOptions {
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The shipped manifest of toolbox images. */
  readonly toolboxManifest: string;
}

export interface Service {
  readonly url: string;
  readonly runtime: string;
  /** Lets requests in flight end within `SVC_STOP_GRACE`. Slots stay, or stop too where `SVC_ON_EXIT` says so. */
  stop(): Promise<void>;
}

/** What stopping every slot may take when the service stops too; what is not gone by then stays, and the next start finds it. */
const EXIT_STOP_MS = 30_000;
/** Who is let in late has to be answered too. */
const PARKED_SHARE = 0.5;
/** With more, most of the memory is what passes leave behind. */
const MANY_SLOTS = 100;
/** Files of the kernel are read in microseconds. */
const HARDWARE_WITHIN_MS = 5000;

export async function createService(options: ServiceOptions): Promise<Result<Service>> {
  const { settings } = options;
  if (settings.SVC_AUTH_ENABLED) {
    const message = 'Set "SVC_AUTH_ENABLED" to 0: this version has no authentication yet, and does not start as if it had';
    return fail('stalled', 'SettingUnusable', message);
  }
  const made = await makeDirectories(settings);
  if (!made.ok) return made;
  const chosen = await chooseWorld(options);
  if (!chosen.ok) return chosen;
  const world = chosen.value;
  const { runtime } = world;
  const controller = await createController(options, world);
  const stopping = new AbortController();
  const api = createApi(options, controller, stopping.signal);
  const listening = await listen(api, settings.SVC_LISTEN);
  if (!listening.ok) return listening;
  const running = new AbortController();
  world.start(controller.metrics.cluster.requestSent);
  const ended = controller.loop.start(running.signal);
  const { holds, parking } = controller.traffic;
  collectAtRest({ activity: () => ({ workloads: holds.read(), demand: parking.read() }), log: options.log }, running.signal);
  return ok({
    url: urlOf(settings.SVC_LISTEN.host, listening.value),
    runtime: runtime.traits.kind,
    async stop() {
      const graceMs = settings.SVC_STOP_GRACE;
      stopping.abort();
      api.leave();
      const resigned = world.resign();
      await pause(settings.SVC_STOP_DELAY);
      // Where there are other replicas, what waits here may go on waiting: meanwhile they take what is new.
      await api.close(graceMs, runtime.traits.network === 'pods' ? graceMs * PARKED_SHARE : 0);
      if (settings.SVC_ON_EXIT === 'stop') {
        world.wantNothing();
        controller.loop.wake();
        await untilEmpty(runtime, EXIT_STOP_MS);
      }
      running.abort();
      await Promise.all([ended, resigned, world.stop()]);
      await controller.files.flush();
    },
  });
}

/** Keeps slots true: the loop with all that it senses and tells. */
async function createController({ settings, version, log }: ServiceOptions, world: World) {
  const { runtime } = world;
  const clock = createClock();
  const heap = createHeapLimits();
  const board = createBoard();
  const traffic = createTraffic({ board, now: clock.now, parkLimit: settings.SVC_PARK_LIMIT, parkTimeoutMs: settings.SVC_PARK_TIMEOUT });
  const slotTraffic = traffic.ofSlot;
  const metrics = createMetrics({
    version,
    runtime: runtime.traits.kind,
    board,
    traffic: slotTraffic,
    leads: () => world.leadership.leads(),
  });
  const timelineDirectory = path.join(settings.SVC_STATE_DIR, 'timelines');
  const events = await createEventFeed({ timelineDirectory });
  // In a cluster, each SlotSpec has its own.
  const statusDirectory = runtime.traits.kind === 'kube' ? undefined : path.join(settings.SVC_STATE_DIR, 'status');
  const files = createStatusFiles({ statusDirectory, timelineDirectory, log });
  const loop = createLoop({
    ...world,
    traffic: world.shareTraffic(traffic),
    clock,
    providers: PROVIDERS,
    images: (kind, backend) => world.toolboxes().find(kind, backend),
    probeIo: createProbeIo(),
    sinks: [events, files, metrics.reconcile, createLogSink(log), ...world.sinks],
    board: {
      ...board,
      publish(view) {
        if (view.slots.size > MANY_SLOTS) heap.growForManySlots();
        board.publish(world.show(view));
      },
    },
    settings,
    log,
    metrics: metrics.reconcile,
    lastSeq: events.last(),
  });
  return { world, runtime, clock, heap, board, traffic, slotTraffic, metrics, events, files, loop };
}

/** Answers requests: the gateway and the management API on one server. */
function createApi(options: ServiceOptions, controller: Awaited<ReturnType<typeof createController>>, stopping: AbortSignal) {
  const { settings, version, log } = options;
  const { world, runtime, board, metrics, traffic, clock, heap, loop } = controller;
  const startedAt = clock.now();
  const manage: Manage = {
    ...createInventory({
      board,
      models: world.modelFiles,
      traits: runtime.traits,
      toolboxes: () => world.toolboxes(),
      stateDir: settings.SVC_STATE_DIR,
    }),
    version,
    runtime: runtime.traits.kind,
    startedAt,
    editor: world.editor,
    planner: { preview: async (overlay) => loop.preview(overlay) },
    events: controller.events,
    logs: createLogSource(board, runtime),
    lastPassAgeMs: () => clock.now() - (loop.lastPassAt() ?? startedAt),
    hardware: async () => world.host.read(AbortSignal.timeout(HARDWARE_WITHIN_MS)),
  };
  const gateway = createGateway({
    board,
    providers: PROVIDERS,
    traffic,
    settings,
    now: clock.now,
    report: reportTo(metrics, heap.growForTraffic),
  });
  const features = () => ({
    authentication: settings.SVC_AUTH_ENABLED,
    podman: runtime.traits.kind === 'podman',
    images: false,
    audio: false,
  });
  const routes = createRoutes(createV1Routes({ board, gateway, startedAt }), {
    manage,
    board,
    metrics,
    traffic: controller.slotTraffic,
    settings,
    features,
    now: clock.now,
    stopping,
  });
  const onFault = (error: unknown, requestId: string) =>
    log.error({ requestId, stack: error instanceof Error ? error.stack : undefined }, String(error));
  return buildServer({ routes, settings, gateway, metrics: metrics.requests, onFault });
}

/** Resolves when no workload is left, or after `limitMs`. */
async function untilEmpty(runtime: Runtime, limitMs: number): Promise<void> {
  const limit = AbortSignal.timeout(limitMs);
  while (!limit.aborted) {
    const facts = await runtime.observe([], limit).catch(() => undefined);
    if (facts?.ok === true && facts.value.workloads.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
