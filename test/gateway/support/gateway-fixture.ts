/** The request path wired as in `src/main.ts`, on its own port, with a board that the test publishes. */
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { buildServer, type HttpApi } from '../../../src/api/server/server.ts';
import { allowEveryone, type Authorize } from '../../../src/auth/check-token.ts';
import { createSiteGuard } from '../../../src/api/server/site-guard.ts';
import { readSitePolicy } from '../../../src/wiring/site-policy.ts';
import type { ActAs } from '../../../src/api/manage/audit-trail.ts';
import type { VoiceStore } from '../../../src/schema/slot/voice-store.ts';
import type { Route } from '../../../src/api/server/define-route.ts';
import { createRealtime } from '../../../src/api/v1/realtime/realtime.ts';
import { createOllamaRoutes } from '../../../src/api/v1/ollama-routes.ts';
import { createV1Routes } from '../../../src/api/v1/v1-routes.ts';
import type { FinishedRequest } from '../../../src/gateway/exchange-deps.ts';
import type { KeepImage } from '../../../src/gateway/translate/translation-run.ts';
import type { FetchImage } from '../../../src/gateway/translate/fetch-image.ts';
import { imitatesVoices } from '../../../src/gateway/translate/decide/plan-voice.ts';
import { createGateway } from '../../../src/gateway/create-gateway.ts';
import type { StartTrace } from '../../../src/gateway/trace/request-trace.ts';
import type { CaptureTaps } from '../../../src/gateway/capture/capture-taps.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import { createLender } from '../../../src/turbo/workers/lent-limits.ts';
import { createLocalAccounts } from '../../../src/gateway/traffic/admit-caller.ts';
import { createTraffic, type GatewayTraffic } from '../../../src/gateway/traffic/traffic.ts';
import type { Provider, ProviderRegistry } from '../../../src/providers/provider.ts';
import { createBoard, type Board } from '../../../src/reconciler/board.ts';
import { createPlainLog } from '../../../src/platform/log.ts';
import { parseSettings, type Settings } from '../../../src/schema/settings/settings.ts';
import { createAccelerator } from '../../../src/turbo/fast-path/fast-path.ts';
import { shareLimits } from '../../../src/turbo/workers/decide/share-limits.ts';
import { takeOver } from '../../../src/turbo/workers/worker-server.ts';
import { createWorkerPool, type WorkerPool } from '../../../src/turbo/workers/worker-pool.ts';
import { PROVIDER } from './gateway-provider.ts';

export interface GatewayFixture {
  readonly board: Board;
  readonly traffic: GatewayTraffic;
  readonly gateway: Gateway;
  readonly api: HttpApi;
  readonly url: string;
  readonly port: number;
  /** Requests that the gateway reported. */
  readonly finished: FinishedRequest[];
  /** Requests that the other routes reported. */
  readonly reported: FinishedRequest[];
  readonly faults: unknown[];
  close(): Promise<void>;
}

export interface FixtureOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly authorize?: Authorize;
  readonly routes?: readonly Route[];
  readonly fetchImage?: FetchImage;
  readonly keepImage?: KeepImage;
  readonly voices?: VoiceStore | undefined;
  readonly actAs?: ActAs;
  /** Default: nothing is traced. */
  readonly startTrace?: StartTrace | undefined;
  readonly taps?: CaptureTaps;
  /** As with `SVC_OLLAMA` and `SVC_UPSTREAM`. Default: neither. */
  readonly dialects?: true;
  /** Replaces functions of the provider. */
  readonly provider?: Partial<Provider>;
  /** How many processes forward. Default: `SVC_TEST_WORKERS`, or 1. */
  readonly processes?: number;
}

/** `SVC_TEST_FAST_PATH=0` runs every suite of this fixture without `src/turbo/` (`npm run test:long -- fast-path` runs them both ways). */
const SVC_FAST_PATH = process.env['SVC_TEST_FAST_PATH'] ?? '1';

/** `SVC_TEST_WORKERS=4` runs each suite of this fixture with so many processes (`npm run test:long -- workers`), unless it replaces parts of the gateway. */
const PROCESSES = Number(process.env['SVC_TEST_WORKERS'] ?? 1);

export async function startGateway(options: FixtureOptions = {}): Promise<GatewayFixture> {
  const parsed = parseSettings({ SVC_PARK_TIMEOUT: '20s', SVC_STATE_DIR: tmpdir(), SVC_FAST_PATH, ...options.settings });
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const { settings } = parsed;
  const board = createBoard();
  const now = (): number => performance.now();
  const { authorize = allowEveryone } = options;
  const processes = settings.SVC_FAST_PATH && isForWorkers(options) ? (options.processes ?? PROCESSES) : 1;
  const limits = processes > 1 ? shareLimits(settings, processes).controller : settings;
  const local = createTraffic({ board, now, settings: limits });
  const limitAccounts = createLocalAccounts(now);
  const lender = createLender({ accounts: limitAccounts, processes, now });
  const workers =
    processes > 1 ? createWorkerPool({ count: processes - 1, local, board, now, log: SILENT, metrics: NO_METRICS, lender }) : undefined;
  const traffic = workers?.traffic ?? local;
  const finished: FinishedRequest[] = [];
  const faults: unknown[] = [];
  const reported: FinishedRequest[] = [];
  const providers: ProviderRegistry = { gguf: { ...PROVIDER, ...options.provider } };
  const { voices, startTrace } = options;
  const gateway = createGateway({
    board,
    providers,
    voices,
    traffic,
    limitAccounts,
    taps: options.taps,
    settings: limits,
    startTrace,
    now,
    report: (exchange) => void finished.push(exchange),
    onFault: (fault) => void faults.push(fault),
    ...(options.fetchImage === undefined ? {} : { fetchImage: options.fetchImage }),
    ...(options.keepImage === undefined ? {} : { keepImage: options.keepImage }),
  });
  const startedAt = 1_700_000_000_000;
  const ollama = { startedAt, now: () => ({ ms: now(), wallMs: Date.now() }) };
  const realtime = createRealtime({ gateway, board, settings, now, wallNow: Date.now });
  const routes = [
    realtime.route,
    ...createV1Routes({
      board,
      gateway,
      imitates: (slot) => imitatesVoices(providers, slot),
      voices,
      upstream: options.dialects,
      startedAt,
    }),
    ...(options.dialects === undefined
      ? []
      : createOllamaRoutes({ ...ollama, board, gateway, traits: () => ({ quantization: 'Q4_K_M', parameters: 7.6e9 }) })),
    ...(options.routes ?? []),
  ];
  const api = buildServer({
    routes,
    settings,
    gateway: {
      budget: gateway.budget,
      close: async (graceMs, parkedMs) => void (await Promise.all([realtime.close(graceMs), gateway.close(graceMs, parkedMs)])),
    },
    onFault: (fault) => void faults.push(fault),
    report: (request) => void reported.push(request),
    site: createSiteGuard(readSitePolicy(settings, false)),
    authorize,
    startTrace,
    ...(settings.SVC_FAST_PATH ? { accelerator: createAccelerator(settings) } : {}),
    ...(options.actAs === undefined ? {} : { actAs: options.actAs }),
  });
  const port = await api.listen({ host: '127.0.0.1', port: 0, reusePort: workers !== undefined });
  if (workers !== undefined) await startFixtureWorkers(workers, api, { settings, processes, port, finished, reported, faults });
  return {
    board,
    traffic,
    gateway,
    api:
      workers === undefined
        ? api
        : { ...api, close: (graceMs, parkedMs) => api.close(graceMs, parkedMs, workers.close(graceMs, parkedMs ?? 0)) },
    url: `http://127.0.0.1:${port}`,
    port,
    finished,
    reported,
    faults,
    close: () => api.close(0, 0, workers?.close(0, 0)),
  };
}

/** Functions stay in this process, and limits that are shared out are others for each process. */
function isForWorkers({ authorize, provider, fetchImage, keepImage, startTrace, taps, settings = {} }: FixtureOptions): boolean {
  const isPlain = [authorize, provider, fetchImage, keepImage, startTrace, taps].every((part) => part === undefined);
  return isPlain && !['SVC_PARK_LIMIT', 'SVC_MAX_CONNECTIONS', 'SVC_BUFFER_LIMIT'].some((name) => Object.hasOwn(settings, name));
}

const SILENT = createPlainLog('silent', () => undefined);
const NO_METRICS = { workerStarted: () => undefined, workerReported: () => undefined, workerEnded: () => undefined };

async function startFixtureWorkers(
  workers: WorkerPool,
  api: HttpApi,
  {
    settings,
    processes,
    port,
    finished,
    reported,
    faults,
  }: Pick<GatewayFixture, 'port' | 'finished' | 'reported' | 'faults'> & {
    readonly settings: Settings;
    readonly processes: number;
  },
): Promise<void> {
  const shares = shareLimits(settings, processes);
  workers.listen({
    finished: (exchange) => void finished.push(exchange),
    refused: (request) => void reported.push(request),
    onFault: (fault) => void faults.push(fault),
    tokenUsed: () => undefined,
    captured: () => undefined,
    takeOver: (socket, bytes) => takeOver(api.server, socket, bytes),
    listening: () => undefined,
  });
  const file = fileURLToPath(new URL('gateway-worker.ts', import.meta.url));
  await workers.start({ file, env: {}, host: '127.0.0.1', port, settings: shares.worker, mostBodyBytes: shares.workerBodyBytes });
}

/** Waits until the condition holds. Throws after 40 s: a wait that outlives its test would keep the event loop of later suites busy. */
export async function until(holds: () => boolean): Promise<void> {
  const endsAt = performance.now() + 40_000;
  while (!holds()) {
    if (performance.now() > endsAt) throw new Error(`Not true within 40 s: ${holds.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
