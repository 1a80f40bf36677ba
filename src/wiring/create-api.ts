/** Creates the HTTP API: the gateway and the management API on one server. */
import type { Manage } from '../api/ports.ts';
import { createRoutes } from '../api/routes.ts';
import { buildServer, type HttpApi } from '../api/server.ts';
import { createV1Routes } from '../api/v1/v1-routes.ts';
import { createGateway } from '../gateway/gateway.ts';
import { PROVIDERS } from '../providers/registry.ts';
import type { Controller, ControllerOptions } from './create-controller.ts';
import { createInventory } from './inventory.ts';
import { createLogSource, reportTo } from './service-parts.ts';
import type { World } from './world.ts';

export interface ApiParts {
  readonly world: World;
  readonly controller: Controller;
  /** Aborts when the service begins to stop. */
  readonly stopping: AbortSignal;
}

/** Reading the hardware facts of a host takes microseconds. */
const HARDWARE_TIMEOUT_MS = 5000;

export function createApi({ settings, version, log }: ControllerOptions, { world, controller, stopping }: ApiParts): HttpApi {
  const { board, metrics, traffic, clock, heap, loop } = controller;
  const { runtime } = world;
  const startedAt = clock.now();
  const manage: Manage = {
    ...createInventory({
      board,
      models: world.modelFiles,
      traits: runtime.traits,
      toolboxes: world.toolboxes,
      stateDir: settings.SVC_STATE_DIR,
    }),
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
    traffic: traffic.ofSlot,
    settings,
    features,
    now: clock.now,
    stopping,
  });
  const onFault = (error: unknown, requestId: string) =>
    log.error({ requestId, stack: error instanceof Error ? error.stack : undefined }, String(error));
  return buildServer({ routes, settings, gateway, report: metrics.requestFinished, onFault });
}
