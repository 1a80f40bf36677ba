/** The request path wired as in `src/main.ts`, on its own port, with a board that the test publishes. */
import { tmpdir } from 'node:os';
import { buildServer, type HttpApi } from '../../../src/api/server.ts';
import { allowEveryone } from '../../../src/api/authorize.ts';
import type { Authorize } from '../../../src/auth/create-authorize.ts';
import { createSiteGuard } from '../../../src/api/site-guard.ts';
import { readSitePolicy } from '../../../src/wiring/site-policy.ts';
import type { ActAs } from '../../../src/api/manage/audit-trail.ts';
import type { VoiceStore } from '../../../src/schema/voice-store.ts';
import type { Route } from '../../../src/api/route.ts';
import { createRealtime } from '../../../src/api/v1/realtime/realtime.ts';
import { createV1Routes } from '../../../src/api/v1/v1-routes.ts';
import type { FinishedRequest, KeepImage } from '../../../src/gateway/exchange-deps.ts';
import type { FetchImage } from '../../../src/gateway/fetch-image.ts';
import { imitatesVoices } from '../../../src/gateway/decide/plan-voice.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { createTraffic, type GatewayTraffic } from '../../../src/gateway/traffic.ts';
import type { Provider, ProviderRegistry } from '../../../src/providers/provider.ts';
import { createBoard, type Board } from '../../../src/reconciler/board.ts';
import { parseSettings } from '../../../src/schema/settings.ts';
import { PLAIN_PROVIDER } from '../../support/plain-provider.ts';

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
  /** Replaces functions of the provider. */
  readonly provider?: Partial<Provider>;
}

/** Forwards each path as llama.cpp expects it. */
const PROVIDER: Provider = {
  ...PLAIN_PROVIDER,
  infer: ({ path }) => ({ kind: 'forward', path: path === '/v1/rerankings' ? '/v1/rerank' : path }),
};

export const GGUF_PROVIDERS: ProviderRegistry = { gguf: PROVIDER };

/** `SVC_TEST_FAST_PATH=0` runs every suite of this fixture without the fast path (`npm run test:fast-path` runs them both ways). */
const SVC_FAST_PATH = process.env['SVC_TEST_FAST_PATH'] ?? '1';

export async function startGateway(options: FixtureOptions = {}): Promise<GatewayFixture> {
  const parsed = parseSettings({ SVC_PARK_TIMEOUT: '20s', SVC_STATE_DIR: tmpdir(), SVC_FAST_PATH, ...options.settings });
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const { settings } = parsed;
  const board = createBoard();
  const now = (): number => performance.now();
  const traffic = createTraffic({ board, now, settings });
  const finished: FinishedRequest[] = [];
  const faults: unknown[] = [];
  const reported: FinishedRequest[] = [];
  const providers: ProviderRegistry = { gguf: { ...PROVIDER, ...options.provider } };
  const { voices } = options;
  const gateway = createGateway({
    board,
    providers,
    voices,
    traffic,
    settings,
    now,
    report: (exchange) => void finished.push(exchange),
    onFault: (fault) => void faults.push(fault),
    ...(options.fetchImage === undefined ? {} : { fetchImage: options.fetchImage }),
    ...(options.keepImage === undefined ? {} : { keepImage: options.keepImage }),
  });
  const realtime = createRealtime({ gateway, board, settings, now, wallNow: Date.now });
  const routes = [
    realtime.route,
    ...createV1Routes({ board, gateway, imitates: (slot) => imitatesVoices(providers, slot), voices, startedAt: 1_700_000_000_000 }),
    ...(options.routes ?? []),
  ];
  const { authorize = allowEveryone } = options;
  const api = buildServer({
    routes,
    settings,
    gateway: {
      close: async (graceMs, parkedMs) => void (await Promise.all([realtime.close(graceMs), gateway.close(graceMs, parkedMs)])),
    },
    onFault: (fault) => void faults.push(fault),
    report: (request) => void reported.push(request),
    site: createSiteGuard(readSitePolicy(settings, false)),
    authorize,
    ...(options.actAs === undefined ? {} : { actAs: options.actAs }),
  });
  const port = await api.listen({ host: '127.0.0.1', port: 0 });
  return {
    board,
    traffic,
    gateway,
    api,
    url: `http://127.0.0.1:${port}`,
    port,
    finished,
    reported,
    faults,
    close: () => api.close(0),
  };
}

/** Waits until the condition holds, or until the test times out. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}
