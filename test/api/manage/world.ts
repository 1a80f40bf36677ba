/** A small world behind the management API: slots in memory, and a controller that reconciles edits a moment later. */
import { pageRoutes } from './page-routes.ts';
import { answerFit, answerSearch, FILES, MODELS, previewOf, PROVIDERS, UNKNOWN_MODEL } from './world-models.ts';
import { boardSlot } from './world-slots.ts';
import { openAgents, type WorldAgents } from './world-agents.ts';
import { openVoices } from '../../support/open-voices.ts';
import type { VoiceStore } from '../../../src/schema/slot/voice-store.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { GGUF_PROVIDERS } from '../../gateway/support/gateway-provider.ts';
import { createGateway } from '../../../src/gateway/create-gateway.ts';
import { createTraffic, type SlotTraffic } from '../../../src/gateway/traffic/traffic.ts';
import type { PullListing, WorkloadListing } from '../../../src/api/ports.ts';
import { allowEveryone, createProxyMatcher, type Authorize } from '../../../src/auth/check-token.ts';
import { createInMemoryTokens, createInMemoryTokenStore, type InMemoryTokenStore } from './in-memory-tokens.ts';
import { createRequestRecord, createRunningRequests, reportTo } from '../../../src/api/manage/request-record.ts';
import { createChangeRecord, type ChangeRecord } from '../../../src/files/change-files.ts';
import { createGuardedEditor } from '../../../src/api/manage/edit-outcome.ts';
import { createRealtime } from '../../../src/api/v1/realtime/realtime.ts';
import { createOllamaRoutes } from '../../../src/api/v1/ollama-routes.ts';
import { createV1Routes, type V1Deps } from '../../../src/api/v1/v1-routes.ts';
import { createRoutes } from '../../../src/api/routes.ts';
import { ACCELERATED } from '../../support/accelerator.ts';
import { buildServer } from '../../../src/api/server/server.ts';
import { createSiteGuard } from '../../../src/api/server/site-guard.ts';
import { SAFE_FLAGS } from '../../../src/providers/gguf/gguf.ts';
import { readSitePolicy } from '../../../src/wiring/site-policy.ts';
import { createMetrics, type Metrics } from '../../../src/api/metrics/metrics.ts';
import type { ManageDeps } from '../../../src/api/manage/manage-deps.ts';
import type { DocumentedRoute } from '../../../src/api/server/define-route.ts';
import { createBoard, type Board, type BoardSlot } from '../../../src/reconciler/board.ts';
import { parseSlotText } from '../../../src/host/slots/decide/parse-slot-text.ts';
import type { ClusterListing } from '../../../src/schema/status/cluster-listing.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { HostFacts } from '../../../src/schema/status/hardware.ts';
import { parseSettings } from '../../../src/schema/settings/settings.ts';
import type { SlotState } from '../../../src/schema/status/slot-status.ts';
import type { RevisionStore } from '../../../src/schema/slot/revision-store.ts';
import type { ConfigSource } from '../../../src/schema/status/config-source.ts';
import type { ProfileStore } from '../../../src/schema/slot/profile-store.ts';
import { createInMemoryFeed, type InMemoryFeed } from './in-memory-feed.ts';
import { createInMemoryUsage } from './in-memory-usage.ts';
import { IN_MEMORY_IMAGES } from './in-memory-images.ts';
import { createInMemorySlots, type InMemorySlots } from './in-memory-slots.ts';

export interface World {
  readonly url: string;
  readonly slots: InMemorySlots;
  readonly tokens: InMemoryTokenStore;
  readonly board: Board;
  readonly feed: InMemoryFeed;
  readonly metrics: Metrics;
  readonly routes: readonly DocumentedRoute[];
  readonly agents: WorldAgents;
  /** Log lines of each slot; with `follow` the stream then stays open. */
  readonly logs: Map<string, readonly string[]>;
  readonly traffic: Map<string, SlotTraffic>;
  readonly workloads: Map<string, readonly WorkloadListing[]>;
  /** Number of requests that wait for slot "primary" in the gateway. */
  parked(): number;
  openLogs(): number;
  lastPassAgeMs: number;
  readonly changes: ChangeRecord;
  pulls: readonly PullListing[];
  /** Undefined: voices cannot be stored. */
  voices: VoiceStore | undefined;
  /** Undefined, as in a cluster, until a test opens some. */
  profiles: ProfileStore | undefined;
  /** Undefined: none are kept. */
  revisions: RevisionStore | undefined;
  source: ConfigSource | undefined;
  hardware: HostFacts;
  /** Set it to be in a cluster. */
  cluster: ClusterListing | undefined;
  limits: ReturnType<ManageDeps['limits']>;
  save(name: SlotName, text: string): void;
  /** Resolves when the controller has nothing left to do. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

export interface WorldOptions extends Partial<Pick<ManageDeps, 'captures'>> {
  readonly env?: Readonly<Record<string, string>>;
  readonly loadMs?: number; // `Infinity`: a load never ends.
  readonly heartbeatMs?: number;
  readonly keptEntries?: number;
  readonly v1?: boolean; // Adds the OpenAI routes, with the gateway behind them.
  readonly authorize?: Authorize;
  readonly dashboard?: string;
  readonly runtime?: string;
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const parsed = parseSettings(options.env ?? {});
  if (!parsed.ok) throw new Error(parsed.problems.join());
  const board = createBoard();
  const feed = createInMemoryFeed(options.keptEntries ?? 1000);
  const changes = createChangeRecord(undefined, { info: () => undefined, warn: () => undefined });
  const generations = new Map<SlotName, { text: string; generation: number; readyAt: number }>();
  const traffic = new Map<string, SlotTraffic>();
  const logs = new Map<string, readonly string[]>();
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let openLogs = 0;
  const tokens = createInMemoryTokenStore();
  const slots = createInMemorySlots(() => reconcileSoon(5));

  function reconcileSoon(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(reconcile, ms);
  }

  function reconcile(): void {
    timer = undefined;
    const now = Date.now();
    const entries = new Map<SlotName, BoardSlot>();
    const before = board.current();
    let next = Number.POSITIVE_INFINITY;
    for (const [name, text] of slots.texts) {
      const read = parseSlotText(name, text, `${name}.toml`);
      if (!read.ok) continue;
      const known = generations.get(name);
      const loadMs = options.loadMs ?? 30;
      const facts = known?.text === text ? known : { text, generation: (known?.generation ?? 0) + 1, readyAt: now + loadMs };
      generations.set(name, facts);
      const state: SlotState = !read.spec.enabled ? 'offline' : facts.readyAt <= now ? 'ready' : 'warming';
      if (state === 'warming') next = Math.min(next, facts.readyAt - now);
      const old = before.slots.get(name)?.status.state ?? 'offline';
      if (old !== state) {
        const message = `From "${old}" to "${state}"`;
        feed.add({ at: now, slot: name, kind: 'state', message, cause: 'loads the model', from: old, to: state });
      }
      entries.set(name, boardSlot(name, read.spec, state, facts.generation));
    }
    board.publish({ version: before.version + 1, at: now, slots: entries, names: new Map(), refused: new Map() });
    if (next < 3_600_000) reconcileSoon(next + 1);
  }
  const trafficOf = (slot: SlotName) => traffic.get(slot) ?? { inFlight: 0, parked: 0 };
  const metrics = createMetrics({ version: '1.2.3', runtime: 'in-memory', board, leads: () => true, traffic: trafficOf });
  const requests = createRequestRecord(() => Date.now());
  const usage = createInMemoryUsage(() => Date.now());
  const traffics = createTraffic({ board, now: () => Date.now(), settings: parsed.settings });
  const agents = openAgents(parsed.settings);
  const deps: ManageDeps = {
    plans: agents.plans,
    captures: options.captures,
    requests,
    running: { list: async () => await running.list(), cancel: async (id) => await running.cancel(id) },
    usage,
    changes,
    images: IN_MEMORY_IMAGES,
    limits: () => world.limits,
    manage: {
      version: '1.2.3',
      runtime: options.runtime ?? 'in-memory',
      startedAt: Date.now(),
      get profiles() {
        return world.profiles;
      },
      get source() {
        return world.source && agents.audit.source(world.source);
      },
      get revisions() {
        return world.revisions;
      },
      editor: agents.audit.slots(createGuardedEditor(slots, (kind) => (kind === 'gguf' ? SAFE_FLAGS : undefined))),
      preview: async (overlay) => previewOf(await slots.list(), overlay),
      ask: traffics.parking.ask,
      events: feed,
      async logs(slot, { tail, follow }, signal) {
        const lines = logs.get(slot);
        return lines === undefined ? undefined : stream(lines.slice(-tail), follow, signal);
      },
      workloads: (slot) => world.workloads.get(slot) ?? [],
      lastPassAgeMs: () => world.lastPassAgeMs,
      providers: async () => PROVIDERS,
      models: async () => MODELS,
      async model(id) {
        const listed = MODELS.find((model) => model.id === id) ?? MODELS[0];
        const message = `There is no model "${id}"; did you mean "demo-fox"?`;
        return listed === undefined || id === UNKNOWN_MODEL
          ? fail('stalled', 'ModelMissing', message)
          : ok({ ...listed, files: FILES, sources: ['https://example.org'] });
      },
      pulls: () => world.pulls,
      async pullModel(id) {
        if (id === 'none') return fail('stalled', 'ModelMissing', 'Nothing provides "none": use a name such as "hf:owner/repo"');
        return id === 'away' ? fail('retry', 'ModelPullFailed', 'The server does not answer') : ok(undefined);
      },
      async removeModel(id) {
        if (id === 'stuck') return fail('stalled', 'PulledByPods', 'The gateway has no model store in a cluster');
        return ok(id === 'none' ? 'absent' : id === 'used' ? { usedBy: ['primary'] } : 'removed');
      },
      fit: answerFit,
      searchModels: answerSearch,
      hardware: async () => world.hardware,
      cluster: () => world.cluster,
      installState: async () => ({ complete: installed, steps: [{ id: 'slots', done: true, hint: '' }] }),
      completeInstall: async () => void (installed = true),
    },
    board,
    metrics,
    traffic: trafficOf,
    watchProgress: feed.watchProgress,
    settings: parsed.settings,
    features: () => ({ authentication: false }),
    tokens: createInMemoryTokens(tokens),
    isProxy: createProxyMatcher(parsed.settings.SVC_TRUSTED_PROXIES),
    now: () => Date.now(),
    wallNow: () => Date.now(),
    stopping: stopping.signal,
    ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
  };
  let installed = false;
  async function* stream(lines: readonly string[], follow: boolean, signal: AbortSignal) {
    openLogs += 1;
    try {
      for (const text of lines) yield { stream: 'stdout', text };
      if (follow) await sleep(60_000, undefined, { signal }).catch(() => undefined);
    } finally {
      openLogs -= 1;
    }
  }
  const voiceFiles = await openVoices(parsed.settings.SVC_VOICE_LIMIT);
  const voices = voiceFiles.open();
  const gateway = createGateway({
    board,
    providers: GGUF_PROVIDERS,
    voices,
    traffic: traffics,
    settings: parsed.settings,
    now: deps.now,
    report: reportTo(metrics.requestFinished, requests.note, usage.note),
    onFault: () => undefined,
  });
  const running = agents.audit.running(createRunningRequests(gateway));
  const v1: V1Deps = {
    board,
    gateway,
    startedAt: deps.manage.startedAt,
    upstream: true,
    get voices() {
      return world.voices;
    },
  };
  const ollama = { board, gateway, startedAt: v1.startedAt, traits: () => undefined, now: () => ({ ms: deps.now(), wallMs: Date.now() }) };
  const realtime = createRealtime({ gateway, board, settings: parsed.settings, now: deps.now, wallNow: Date.now });
  const routes = createRoutes(options.v1 === true ? [...createV1Routes(v1), ...createOllamaRoutes(ollama), realtime.route] : [], deps);
  agents.open(routes, deps.manage);
  const api = buildServer({
    actAs: agents.audit.actAs,
    routes: [...routes, ...agents.routes, ...pageRoutes(options.dashboard)],
    settings: parsed.settings,
    gateway,
    site: createSiteGuard(readSitePolicy(parsed.settings, false)),
    authorize: options.authorize ?? allowEveryone,
    ...ACCELERATED,
    report: metrics.requestFinished,
  });
  const port = await api.listen({ host: '127.0.0.1', port: 0 });
  const world: World = {
    url: `http://127.0.0.1:${port}`,
    slots,
    tokens,
    board,
    feed,
    metrics,
    routes,
    agents,
    logs,
    changes,
    traffic,
    workloads: new Map(),
    parked: () => traffics.ofSlot(SlotName.parse('primary')).parked,
    openLogs: () => openLogs,
    lastPassAgeMs: 0,
    pulls: [],
    voices,
    profiles: undefined,
    revisions: undefined,
    source: undefined,
    hardware: { memoryTotalBytes: 8e9, memoryAvailableBytes: undefined },
    cluster: undefined,
    limits: { shared: false, gateways: 1, problem: null },
    save(name, text) {
      slots.texts.set(name, text);
      reconcileSoon(0);
    },
    async idle() {
      while (timer !== undefined) await sleep(5);
    },
    async close() {
      clearTimeout(timer);
      stopping.abort();
      await api.close(500);
      await voiceFiles.remove();
    },
  };
  return world;
}
