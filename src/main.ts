/**
 * Puts the service together from its parts and runs it. Nothing is decided here.
 *
 * Start: create and lock the directories → choose the world (a host or a cluster) → create the controller (loop,
 * traffic, metrics, files) → create the HTTP API → listen, on the management port and a local socket too → start the
 * workers, if there are any → start the world → start the loop → collect garbage when the service is idle.
 *
 * Stop: end event and log streams, and close each connection after its response → give up leadership → after
 * `SVC_STOP_DELAY`, close the HTTP API and let requests in flight finish → stop all slots if `SVC_ON_EXIT` is "stop" →
 * stop the loop and the world → write the last status files → release the locks.
 */
import type { Socket } from 'node:net';
import type { ListenFacts } from './api/server/decide/host-names.ts';
import { createLocalSocket, createSecondDoor } from './api/server/local-socket.ts';
import { collectWhenIdle } from './turbo/heap/collect-when-idle.ts';
import { sleep } from './platform/clock.ts';
import type { Runtime } from './reconciler/ports.ts';
import { ok, type Result } from './schema/words/failure.ts';
import { chooseWorld } from './wiring/choose-runtime.ts';
import { createAccess } from './wiring/create-access.ts';
import { createApi } from './wiring/create-api.ts';
import { createRegistry } from './wiring/engines.ts';
import { createController } from './wiring/create-controller.ts';
import { guardState, lockDirectories, type DirectoryLocks } from './wiring/guard-state.ts';
import { announceService, listen, listenForWyoming, listenLocally, makeDirectories } from './wiring/service-parts.ts';
import { countProcesses, fitConnections, startWorkers } from './wiring/start-workers.ts';
import type { ServiceOptions } from './wiring/world.ts';

export interface Service extends ListenFacts {
  readonly runtime: string;
  /** URL of the management API, which is `url` unless it has a port of its own. */
  readonly managementUrl: string;
  /** Lets requests in flight finish within `SVC_STOP_GRACE`. Slots keep running unless `SVC_ON_EXIT` is "stop". */
  stop(): Promise<void>;
}

/** The maximum time for stopping all slots together with the service. The next start finds those that are left. */
const EXIT_STOP_MS = 30_000;
/** The part of the grace period in which parked requests may still be forwarded; the rest is for answering them. */
const PARKED_SHARE = 0.5;
const EMPTY_POLL_MS = 25;

export async function createService(given: ServiceOptions): Promise<Result<Service>> {
  const options = await fitConnections({ ...given, ...createRegistry(given.providers) });
  const { settings, log } = options;
  const made = await makeDirectories(settings);
  if (!made.ok) return made;
  const locked = await lockDirectories(settings, Date.now(), log);
  if (!locked.ok) return locked;
  const started = await startLocked(options, locked.value);
  if (!started.ok) locked.value.release();
  return started;
}

async function startLocked(options: ServiceOptions, locks: DirectoryLocks): Promise<Result<Service>> {
  const { settings, log } = options;
  const chosen = await chooseWorld(options);
  if (!chosen.ok) return chosen;
  const world = chosen.value;
  const processes = await countProcesses(options, world);
  if (!processes.ok) return processes;
  const controller = await createController(options, world, processes.value);
  const { workers } = controller;
  const stopping = new AbortController();
  const local = createLocalSocket();
  const door = createSecondDoor();
  const mayManage = (socket: Socket): boolean => door.hasLedIn(socket) || local.isLocal(socket);
  const access = await createAccess(options, { shared: world.tokens, isLocal: local.isLocal });
  const { api, wyoming, usage } = await createApi(options, { world, controller, access, mayManage, stopping: stopping.signal });
  const listening = await listen(api, door, { ...settings, shared: workers !== undefined });
  if (!listening.ok) return listening;
  const spoken = await listenForWyoming(wyoming, options);
  if (!spoken.ok) {
    await api.close(0);
    return spoken;
  }
  const sampling = controller.traces?.sampling;
  if (workers !== undefined) await startWorkers(workers, options, processes.value, { ...listening.value.bound, sampling });
  if (world.tokens === undefined) await listenLocally(local, api, options);
  const running = new AbortController();
  announceService(listening.value, options, stopping.signal);
  const { files } = controller;
  const guard = guardState({ directory: settings.SVC_STATE_DIR, lock: locks.state, lockAgain: locks.lockStateAgain, files, log });
  world.start(controller.metrics.cluster);
  const countingEnded = controller.callerLimits.start(running.signal);
  const loopEnded = controller.loop.start(running.signal);
  const { holds, parking } = controller.traffic;
  collectWhenIdle({ activity: () => ({ workloads: holds.activity(), demand: parking.demand() }), log }, running.signal);

  async function stop(): Promise<void> {
    const graceMs = settings.SVC_STOP_GRACE;
    stopping.abort();
    api.leave();
    workers?.leave();
    const resigned = world.resign();
    await sleep(settings.SVC_STOP_DELAY);
    // Requests that are parked here can wait on if there are other replicas, which meanwhile serve new requests.
    const closed = Promise.all([local.close(), door.close()]);
    const parkedMs = world.runtime.traits.network === 'pods' ? graceMs * PARKED_SHARE : 0;
    await api.close(graceMs, parkedMs, workers?.close(graceMs, parkedMs));
    await closed;
    if (settings.SVC_ON_EXIT === 'stop') {
      controller.files.leave();
      world.wantNothing();
      controller.loop.wake();
      await untilEmpty(world.runtime, AbortSignal.timeout(EXIT_STOP_MS));
    }
    running.abort();
    await Promise.all([loopEnded, countingEnded, resigned, world.stop()]);
    await Promise.all([files.flush(), access.stop(), usage?.close(), controller.captures?.close(), controller.traces?.close()]);
    guard.close();
    locks.release();
  }

  return ok({ ...listening.value, runtime: world.runtime.traits.kind, stop });
}

/** Resolves when no workload is left, or when the signal aborts. */
async function untilEmpty(runtime: Runtime, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const facts = await runtime.observe([], signal).catch(() => undefined);
    if (facts?.ok === true && facts.value.workloads.length === 0) return;
    await sleep(EMPTY_POLL_MS, signal);
  }
}
