/** Creates the HTTP API: the gateway and the management API on one server. */
import type { Socket } from 'node:net';
import path from 'node:path';
import type { Manage } from '../api/ports.ts';
import type { AuditTrail } from '../api/manage/audit-trail.ts';
import { createRunningRequests, reportTo } from '../api/manage/request-record.ts';
import { createGuardedEditor } from '../api/manage/edit-outcome.ts';
import { createDashboardRoutes, readPageFiles } from '../api/manage/dashboard-routes.ts';
import type { McpDeps } from '../api/mcp/mcp-route.ts';
import { createRoutes } from '../api/routes.ts';
import { buildServer, type HttpApi, type ServerDeps } from '../api/server/server.ts';
import { createSiteGuard } from '../api/server/site-guard.ts';
import { createRealtime } from '../api/v1/realtime/realtime.ts';
import { createWyomingListener } from '../api/wyoming/wyoming-listener.ts';
import { createOllamaRoutes, type OllamaDeps } from '../api/v1/ollama-routes.ts';
import { createV1Routes, type V1Deps } from '../api/v1/v1-routes.ts';
import type { ReportRequest } from '../gateway/exchange-deps.ts';
import { createTracer } from '../gateway/trace/request-trace.ts';
import type { KeepImage } from '../gateway/translate/translation-run.ts';
import { createGateway } from '../gateway/create-gateway.ts';
import type { ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { AccessControl } from './create-access.ts';
import type { Controller } from './create-controller.ts';
import { createFit } from './fit-model.ts';
import { createInventory } from './inventory.ts';
import { createModelManagement, createModelSearch } from './manage-models.ts';
import { openRecords } from './open-records.ts';
import { createLogSource, createWorkloadSource } from './service-parts.ts';
import { readSitePolicy } from './site-policy.ts';
import { sleep } from '../platform/clock.ts';
import { messageOf } from '../platform/error-text.ts';
import { createAccelerator } from '../turbo/fast-path/fast-path.ts';
import { takeOver } from '../turbo/workers/worker-server.ts';
import type { WorkerPool, WorkerPoolListeners } from '../turbo/workers/worker-pool.ts';
import type { ServiceOptions, World } from './world.ts';
import { createImageLinks } from '../auth/image-links.ts';
import type { Authorize } from '../auth/check-token.ts';
import { ALLOWED } from '../auth/decide/decide-access.ts';
import { createImageCache } from '../files/image-cache.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { createVoiceFiles } from '../files/voice-files.ts';
import { chatAbilities } from '../gateway/route/decide/route.ts';
import { imitatesVoices } from '../gateway/translate/decide/plan-voice.ts';
import type { VoiceStore } from '../schema/slot/voice-store.ts';

/** Workers report within milliseconds, unless one hangs. */
const REPORTS_MS = 500;
/** Reading the hardware facts of a host takes microseconds. */
const HARDWARE_TIMEOUT_MS = 5000;

interface ApiParts {
  readonly world: World;
  readonly controller: Controller;
  readonly access: AccessControl;
  /** The connection may manage the service, though not through `SVC_LISTEN`. */
  readonly mayManage: (socket: Socket) => boolean;
  readonly stopping: AbortSignal;
}

export async function createApi(options: ServiceOptions, { world, controller, access, mayManage, stopping }: ApiParts) {
  const { settings, log, providers } = options;
  const { board, metrics, traffic, callerLimits, workers, limits, clock, heap, traces, taps } = controller;
  const startTrace = createTracer(traces?.sampling);
  const { audit, note, ...records } = openRecords(options, { world, controller });
  const manage = createManage(options, { world, controller }, audit);
  const images = openImageCache(settings, clock.wallNow, stopping);
  const voices = openVoices(options, world, clock.wallNow);
  const gateway = createGateway({
    board,
    providers,
    traffic,
    limitAccounts: callerLimits.accounts,
    startTrace,
    taps,
    settings: limits,
    now: clock.now,
    onFault: logFaults(log),
    keepImage: images.keep,
    voices,
    report: reportTo(heap.growForTraffic, metrics.requestFinished, note),
  });
  const { realtime, wyoming, closeSpoken } = createSpoken(options, { gateway, board, clock });
  const v1 = createV1Routes({ ...v1Parts(voices, options, audit), board, gateway, startedAt: clock.wallNow() });
  const routes = createRoutes([...v1, ...ollamaRoutes(options, { board, gateway, clock }), realtime.route], {
    manage,
    images: images.source,
    board,
    metrics: workers === undefined ? metrics : afterReports(metrics, workers),
    ...records,
    running: audit.running(createRunningRequests(gateway, ...(workers === undefined ? [] : [workers]))),
    traffic: traffic.ofSlot,
    limits: callerLimits.state,
    watchProgress: traffic.watchProgress,
    settings,
    features: () => featuresOf(options, world.runtime.traits.kind),
    tokens: audit.tokens(access.tokens),
    isProxy: access.isProxy,
    accessIsReady: access.isReady,
    now: clock.now,
    wallNow: clock.wallNow,
    stopping,
  });
  const mcp = await loadMcpRoutes({ ...records, routes, manage, actAs: audit.actAs, onFault: logFaults(log) });
  const api: HttpApi = buildServer({
    routes: [...routes, ...mcp, ...pagesOf(options)],
    settings,
    gateway: closedTogether(gateway, closeSpoken),
    site: guardSite(options, world, mayManage),
    authorize: images.admit(access.authorize),
    actAs: audit.actAs,
    report: refusalsTo(controller),
    startTrace,
    onFault: logFaults(log),
    accelerator: createAccelerator(settings),
    ...(workers === undefined ? {} : { connectionsElsewhere: workers.connections }),
  });
  workers?.listen(listenersOf(options, { controller, access }, { api, note }));
  return { api, wyoming, usage: records.usage };
}

/** Only where agents are on: their schemas take memory. */
const loadMcpRoutes = async ({ plans, ...deps }: Omit<McpDeps, 'plans'> & { readonly plans: McpDeps['plans'] | undefined }) =>
  plans === undefined ? [] : (await import('../api/mcp/mcp-route.ts')).createMcpRoutes({ ...deps, plans });

const closedTogether = (
  { budget, close }: Pick<ReturnType<typeof createGateway>, 'budget' | 'close'>,
  closeSpoken: (graceMs: number) => Promise<unknown>,
): ServerDeps['gateway'] => ({
  budget,
  close: async (graceMs, ...more) => void (await Promise.all([closeSpoken(graceMs), close(graceMs, ...more)])),
});

const guardSite = ({ settings }: ServiceOptions, world: World, mayManage: ApiParts['mayManage']) =>
  createSiteGuard(
    readSitePolicy(settings, world.runtime.traits.network === 'pods'),
    (socket) => settings.SVC_MANAGEMENT_LISTEN !== undefined && !mayManage(socket),
  );

const pagesOf = ({ dashboard }: ServiceOptions) => createDashboardRoutes(dashboard === undefined ? new Map() : readPageFiles(dashboard));

/** Connections that last longer than a request. */
function createSpoken(
  { settings, version }: ServiceOptions,
  { gateway, board, clock }: Pick<Controller, 'board' | 'clock'> & { readonly gateway: ReturnType<typeof createGateway> },
) {
  const realtime = createRealtime({ gateway, board, settings, now: clock.now, wallNow: clock.wallNow });
  const { SVC_AUDIO_LIMIT: soundLimit, SVC_SPEECH_LIMIT: textLimit } = settings;
  const wyoming = createWyomingListener({ gateway, board, budget: gateway.budget, soundLimit, textLimit, version });
  const closeSpoken = async (graceMs: number) => Promise.all([realtime.close(graceMs), wyoming.close(graceMs)]);
  return { realtime, wyoming, closeSpoken };
}

function ollamaRoutes(
  { providers, settings }: ServiceOptions,
  { board, gateway, clock }: Pick<Controller, 'board' | 'clock'> & Pick<OllamaDeps, 'gateway'>,
) {
  if (settings.SVC_OLLAMA === 'off') return [];
  return createOllamaRoutes({
    board,
    gateway,
    abilities: (slot) => chatAbilities(providers, slot),
    traits: ({ spec, model }) => providers[spec.provider]?.models.describe?.(model?.contents ?? {}),
    startedAt: clock.wallNow(),
    now: () => ({ ms: clock.now(), wallMs: clock.wallNow() }),
  });
}

function listenersOf(
  { log, settings }: ServiceOptions,
  { controller, access }: Pick<ApiParts, 'controller' | 'access'>,
  { api, note }: { readonly api: HttpApi; readonly note: ReportRequest },
): WorkerPoolListeners {
  return {
    finished: reportTo(controller.metrics.requestFinished, note),
    refused: refusalsTo(controller),
    onFault: logFaults(log),
    tokenUsed: access.tokenUsed,
    captured: (ids, text) => controller.captures?.take(ids, text),
    takeOver: (socket, bytes) => takeOver(api.server, socket, bytes),
    listening(anyone, { host, port }) {
      if (settings.SVC_CONTROL_PLANE === 'shared') return;
      if (anyone) api.stopListening();
      else
        void api
          .listenAgain({ host, port })
          .catch((error: unknown) => log.error({}, `No process listens until a worker does: ${messageOf(error)}`));
    },
  };
}

/** Requests that were refused for their credentials or their form. */
const refusalsTo = ({ metrics, traces }: Pick<Controller, 'metrics' | 'traces'>): ReportRequest =>
  traces === undefined ? metrics.requestFinished : reportTo(metrics.requestFinished, traces.note);

function afterReports(metrics: Controller['metrics'], workers: Pick<WorkerPool, 'sync'>): Controller['metrics'] {
  return {
    ...metrics,
    async text(format) {
      await Promise.race([workers.sync(), sleep(REPORTS_MS)]);
      return await metrics.text(format);
    },
  };
}

function createManage(options: ServiceOptions, { world, controller }: Pick<ApiParts, 'world' | 'controller'>, audit: AuditTrail): Manage {
  const { settings, version, providers } = options;
  const { board, clock, loop, traffic } = controller;
  const startedAt = clock.now();
  const fit = createFit(world, board, settings);
  const safeFlagsOf = (kind: ProviderKind): ReadonlySet<string> | undefined => providers[kind]?.safeFlags;
  return {
    ...createInventory(options, world, board),
    ...audit.models(createModelManagement(world, board)),
    fit: fit.fit,
    ...createModelSearch(world, { isOff: settings.SVC_MODEL_SEARCH === 'off', now: clock.now, fitSizes: fit.fitSizes }),
    version,
    runtime: world.runtime.traits.kind,
    startedAt,
    editor: audit.slots(settings.SVC_ALLOW_UNSAFE_EDITS ? world.editor : createGuardedEditor(world.editor, safeFlagsOf)),
    profiles: world.profiles && audit.profiles(world.profiles, world.editor),
    revisions: world.revisions,
    source: world.repository && audit.source(world.repository),
    preview: async (overlay, asked) => loop.preview(overlay, asked),
    ask: traffic.parking.ask,
    events: controller.events,
    logs: createLogSource(board, world.runtime),
    workloads: createWorkloadSource(controller, world.runtime),
    lastPassAgeMs: () => clock.now() - (loop.lastPassAt() ?? startedAt),
    hardware: async () => world.host.read(AbortSignal.timeout(HARDWARE_TIMEOUT_MS)),
  };
}

function logFaults(log: ServiceOptions['log']) {
  return (error: unknown, requestId: string): void =>
    log.error({ requestId, stack: error instanceof Error ? error.stack : undefined }, String(error));
}

function featuresOf({ settings, providers }: ServiceOptions, runtime: World['runtime']['traits']['kind']) {
  return {
    authentication: settings.SVC_AUTH_ENABLED,
    podman: runtime === 'podman',
    images: providers.image !== undefined,
    audio: providers.stt !== undefined && providers.tts !== undefined,
  };
}

/** An expired image stays on disk for at most this long; it is not served. */
const TIDY_MS = 3_600_000;

/** Links work as they stand: absolute, and without a credential where one would be needed. */
export function openImageCache(settings: Settings, wallNow: () => number, stopping: AbortSignal) {
  const { SVC_STATE_DIR: stateDir, SVC_IMAGE_CACHE_LIMIT: limitBytes, SVC_IMAGE_CACHE_AGE: maxAgeMs, SVC_PUBLIC_URL: publicUrl } = settings;
  const cache = createImageCache({ directory: path.join(stateDir, 'images'), limitBytes, maxAgeMs, wallNow });
  const links = settings.SVC_AUTH_ENABLED ? createImageLinks(wallNow) : undefined;
  void cache.tidy();
  const timer = setInterval(() => void cache.tidy(), TIDY_MS);
  timer.unref();
  stopping.addEventListener('abort', () => clearInterval(timer), { once: true });
  const keep: KeepImage = async (next, status, origin) => {
    if (status !== 200)
      return { ok: false, problem: `The image server answered ${status} when it was asked for the image: read the log of the slot` };
    const kept = await cache.keep(next);
    if (!kept.ok) return kept;
    const base = publicUrl?.replace(/\/+$/, '') ?? origin;
    return { ok: true, url: `${base}/api/images/cache/${kept.id}.png${links?.queryOf(kept.id) ?? ''}` };
  };
  /** A valid link takes the place of the credential, for this one path. */
  const admit =
    (authorize: Authorize): Authorize =>
    (access, request) =>
      links?.isValid(request.url) === true ? ALLOWED : authorize(access, request);
  return { keep, source: cache, admit };
}

/** Undefined in a cluster: replicas share no directory, so each would know other voices. */
export function openVoices(
  { settings, log }: Pick<ServiceOptions, 'settings'> & { readonly log: Pick<ServiceOptions['log'], 'warn'> },
  { runtime }: { readonly runtime: { readonly traits: Pick<World['runtime']['traits'], 'network'> } },
  wallNow: () => number,
): VoiceStore | undefined {
  if (runtime.traits.network === 'pods') return undefined;
  const { SVC_STATE_DIR: stateDir, SVC_VOICE_LIMIT: limit } = settings;
  return createVoiceFiles({ directory: path.join(stateDir, 'voices'), limit, wallNow, onProblem: (message) => log.warn({}, message) });
}

function v1Parts(
  voices: VoiceStore | undefined,
  { providers, settings }: Pick<ServiceOptions, 'providers' | 'settings'>,
  audit: AuditTrail,
): Pick<V1Deps, 'voices' | 'imitates' | 'abilities' | 'upstream'> {
  const recorded = voices && audit.voices(voices);
  return {
    voices: recorded,
    imitates: (slot) => imitatesVoices(providers, slot),
    abilities: (slot) => chatAbilities(providers, slot),
    upstream: settings.SVC_UPSTREAM === 'on',
  };
}
