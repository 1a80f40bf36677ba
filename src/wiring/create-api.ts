/** Creates the HTTP API: the gateway and the management API on one server. */
import type { Manage } from '../api/ports.ts';
import { createRoutes } from '../api/routes.ts';
import { buildServer, type HttpApi } from '../api/server.ts';
import { createV1Routes } from '../api/v1/v1-routes.ts';
import { createGateway } from '../gateway/gateway.ts';
import { PROVIDERS } from '../providers/registry.ts';
import type { Controller } from './create-controller.ts';
import { createInventory } from './inventory.ts';
import { createLogSource } from './service-parts.ts';
import type { ServiceOptions, World } from './world.ts';

/** Reading the hardware facts of a host takes microseconds. */
const HARDWARE_TIMEOUT_MS = 5000;

/** `stopping` aborts when the service begins to stop. */
export function createApi(options: ServiceOptions, world: World, controller: Controller, stopping: AbortSignal): HttpApi {
  const { settings, version, log } = options;
  const { board, metrics, traffic, clock, heap, loop } = controller;
  const { runtime } = world;
  const startedAt = clock.now();
  const manage: Manage = {
    ...createInventory(world, board, settings.SVC_STATE_DIR),
    version,
    runtime: runtime.traits.kind,
    startedAt,
    editor: world.editor,
    preview: async (overlay) => loop.preview(overlay),
    events: controller.events,
    logs: createLogSource(board, runtime),
    lastPassAgeMs: () => clock.now() - (loop.lastPassAt() ?? startedAt),
    hardware: async () => world.host.read(AbortSignal.timeout(HARDWARE_TIMEOUT_MS)),
  };
  const gateway = createGateway({
    board,
    providers: PROVIDERS,
    traffic,
    settings,
    now: clock.now,
    report(finished) {
      heap.growForTraffic();
      metrics.requestFinished(finished);
    },
  });
  const features = () => ({
    authentication: settings.SVC_AUTH_ENABLED,
    podman: runtime.traits.kind === 'podman',
    images: false,
    audio: false,
  });
  const routes = createRoutes(createV1Routes({ board, gateway, startedAt: clock.wallNow() }), {
    manage,
    board,
    metrics,
    traffic: traffic.ofSlot,
    settings,
    features,
    now: clock.now,
    wallNow: clock.wallNow,
    stopping,
  });
  const onFault = (error: unknown, requestId: string) =>
    log.error({ requestId, stack: error instanceof Error ? error.stack : undefined }, String(error));
  return buildServer({ routes, settings, gateway, report: metrics.requestFinished, onFault });
}
