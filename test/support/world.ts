/** A small world for the real loop: slots to edit, a runtime and a model store in memory, a gateway with requests, and a clock that is told to move. */
import type { ModelFacts, Provider, ProviderRegistry } from '../../src/providers/provider.ts';
import { createBoard, type Board, type BoardSlot } from '../../src/reconciler/board.ts';
import { actionText } from '../../src/reconciler/decide/explain.ts';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { createLoop, type Loop, type LoopDeps } from '../../src/reconciler/loop.ts';
import type {
  DesiredSlot,
  HostFacts,
  ImageReference,
  ModelPresence,
  ModelStore,
  ProbeIo,
  Report,
  RuntimeTraits,
  SlotSource,
  Wake,
} from '../../src/reconciler/ports.ts';
import { createMemoryRuntime, type MemoryBehaviour, type MemoryRuntime } from '../../src/runtimes/memory.ts';
import { fail, ok, type Failure } from '../../src/spec/failure.ts';
import { ModelId, SlotName } from '../../src/spec/names.ts';
import { parseSlot, type SlotDocument } from '../../src/spec/slot-spec.ts';
import { parseSettings } from '../../src/spec/settings.ts';
import { createWorldClock, type WorldClock } from './world-clock.ts';
import { createWorldTraffic, type WorldTraffic } from './world-traffic.ts';

export interface WorldOptions {
  readonly traits?: Partial<RuntimeTraits>;
  readonly behaviour?: MemoryBehaviour;
  /** Until a started workload passes its probe. Default 50 ms. */
  readonly readyMs?: (model: string) => number;
  /** Whether a workload's server answers at all. Default: it does. */
  readonly answers?: (port: number) => boolean;
  readonly modelPullMs?: () => number;
  readonly modelPullFailure?: () => Failure | undefined;
  readonly losesWake?: () => boolean;
  readonly host?: HostFacts;
  readonly env?: Readonly<Record<string, string>>;
  readonly decide?: NonNullable<LoopDeps['decide']>;
}

export interface Life {
  readonly board: Board;
  readonly loop: Loop;
  readonly traffic: WorldTraffic;
  readonly reports: Report[];
  /** What the loop complained of. */
  readonly errors: string[];
  /** Ends the controller, as a crash would: nothing of it is left but the workloads. */
  end(): Promise<void>;
}

export interface World {
  readonly clock: WorldClock;
  readonly runtime: MemoryRuntime;
  /** The present controller. */
  life(): Life;
  restart(): Promise<Life>;
  edit(name: string, document: SlotDocument): void;
  /** A text that does not parse: the last good one stays in force. */
  spoil(name: string, message: string): void;
  remove(name: string): void;
  setModel(id: string, presence: 'present' | 'pullable' | 'missing', sizeBytes?: number): void;
  slot(name: string): BoardSlot;
  /** Lets time pass until the slot is in this state; fails the test when it does not get there. */
  reach(name: string, state: string, withinMs?: number): Promise<void>;
  /** Every action planned so far but probes, as text. */
  changes(): readonly string[];
  readonly desired: ReadonlyMap<SlotName, DesiredSlot>;
}

export const IMAGE: ImageReference = { reference: 'localhost/svc-toolbox-gguf-cpu:v1', imageId: `sha256:${'1'.repeat(64)}` };
export const slotName = (text: string): SlotName => SlotName.parse(text);

export function createWorld(options: WorldOptions = {}): World {
  const clock = createWorldClock();
  const runtime = createMemoryRuntime({
    clock,
    behaviour: { ...(options.losesWake === undefined ? {} : { losesWake: options.losesWake }), ...options.behaviour },
    ...(options.traits === undefined ? {} : { traits: options.traits }),
  });
  runtime.addImage(IMAGE);
  const desired = new Map<SlotName, DesiredSlot>();
  const presences = new Map<ModelId, ModelPresence>();
  const sourceWakes = new Set<Wake>();
  const modelWakes = new Set<Wake>();
  const tell = (wakes: ReadonlySet<Wake>): void => {
    if (options.losesWake?.() !== true) for (const wake of wakes) wake();
  };
  const source: SlotSource = {
    read: async () => ok({ slots: new Map(desired), refused: new Map() }),
    changes: (wake, signal) => listen(sourceWakes, wake, signal),
  };
  const models: ModelStore = {
    root: '/store',
    observe: async (ids) =>
      new Map(ids.map((id) => [id, presences.get(id) ?? { kind: 'missing', message: `Put the model "${id}" in place` }])),
    async pull(id, onProgress, signal) {
      onProgress({ what: id, doneBytes: 0, totalBytes: 100 });
      const failure = options.modelPullFailure?.();
      const ms = options.modelPullMs?.() ?? 0;
      if (ms > 0) await new Promise<void>((resolve) => void clock.at(clock.now() + ms, resolve));
      if (signal.aborted) return fail('retry', 'PullCancelled', 'The pull was cancelled');
      if (failure !== undefined) return { ok: false, failure };
      presences.set(id, { kind: 'present', facts: factsOf(id, 1000) });
      tell(modelWakes);
      return ok(undefined);
    },
    changes: (wake, signal) => listen(modelWakes, wake, signal),
  };
  const probeIo: ProbeIo = {
    async request(endpoint) {
      const workload = runtime.at(endpoint.port);
      if (workload === undefined) return { status: 0, body: '', error: 'Nothing listens there' };
      if (options.answers?.(endpoint.port) === false) return { status: 0, body: '', error: 'No answer' };
      const model = workload.container.argv?.[2] ?? '';
      const ready = clock.now() - (workload.startedAt ?? 0) >= (options.readyMs?.(model) ?? 50);
      return { status: ready ? 200 : 503, body: '' };
    },
  };
  const settings = parseSettings({ SVC_RESYNC: '15s', ...options.env });
  if (!settings.ok) throw new Error(settings.problems.join());

  const changes: string[] = [];
  const begin = (): Life => {
    const board = createBoard();
    const traffic = createWorldTraffic({
      clock,
      board,
      parkTimeoutMs: 300_000,
      ...(options.losesWake === undefined ? {} : { losesWake: options.losesWake }),
    });
    const reports: Report[] = [];
    const errors: string[] = [];
    const stopping = new AbortController();
    const loop = createLoop({
      source,
      runtime,
      models,
      traffic,
      host: { read: async () => options.host ?? { memoryTotalBytes: undefined, memoryAvailableBytes: undefined } },
      clock,
      providers: { gguf: FAKE_PROVIDER } satisfies ProviderRegistry,
      images: () => IMAGE,
      probeIo,
      sinks: [{ write: (report) => void reports.push(report) }],
      board,
      settings: settings.settings,
      log: {
        debug: () => undefined,
        info: () => undefined,
        warn: () => undefined,
        error: (fields, message) => void errors.push(`${message}: ${JSON.stringify(fields)}`),
      },
      decide: {
        plan(wanted, observed, now) {
          const made = (options.decide?.plan ?? plan)(wanted, observed, now);
          for (const action of made.actions) if (action.name !== 'probe') changes.push(actionText(action));
          return made;
        },
        inspect: options.decide?.inspect ?? inspect,
      },
    });
    const ended = loop.start(stopping.signal);
    return {
      board,
      loop,
      traffic,
      reports,
      errors,
      async end() {
        stopping.abort();
        traffic.close();
        void ended;
      },
    };
  };
  let life = begin();

  const put = (name: SlotName, part: Pick<DesiredSlot, 'spec' | 'problems'>): void => {
    desired.set(name, { name, generation: (desired.get(name)?.generation ?? 0) + 1, ...part });
    tell(sourceWakes);
  };
  const world: World = {
    clock,
    runtime,
    desired,
    changes: () => changes,
    life: () => life,
    async restart() {
      await life.end();
      sourceWakes.clear();
      modelWakes.clear();
      life = begin();
      return life;
    },
    edit(text, document) {
      const name = slotName(text);
      const parsed = parseSlot(name, document);
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
      put(name, { spec: parsed.spec, problems: [] });
    },
    spoil(text, message) {
      const slot = desired.get(slotName(text));
      if (slot === undefined) throw new Error(`There is no slot "${text}"`);
      desired.set(slot.name, { ...slot, problems: [{ path: ['model'], message, file: '/slots/x.toml', line: 3, column: 7 }] });
      tell(sourceWakes);
    },
    remove(text) {
      desired.delete(slotName(text));
      tell(sourceWakes);
    },
    setModel(text, presence, sizeBytes = 1000) {
      const id = ModelId.parse(text);
      if (presence === 'present') presences.set(id, { kind: 'present', facts: factsOf(id, sizeBytes) });
      else if (presence === 'pullable') presences.set(id, { kind: 'pullable', sizeBytes });
      else presences.delete(id);
      tell(modelWakes);
    },
    slot(text) {
      const slot = life.board.current().slots.get(slotName(text));
      if (slot === undefined) throw new Error(`Slot "${text}" is not on the board`);
      return slot;
    },
    async reach(text, state, withinMs = 60_000) {
      const name = slotName(text);
      if (await clock.until(() => life.board.current().slots.get(name)?.state === state, withinMs)) return;
      throw new Error(`Slot "${text}" did not become ${state}:\n${life.board.current().slots.get(name)?.explanation ?? 'not there'}`);
    },
  };
  return world;
}

/** Model files say in their size what they need: `estimateMemoryBytes` is the size. */
function factsOf(id: ModelId, sizeBytes: number): ModelFacts {
  return { id, hostPath: `/store/${id}`, sizeBytes };
}

function listen(wakes: Set<Wake>, wake: Wake, signal: AbortSignal): void {
  if (signal.aborted) return;
  wakes.add(wake);
  signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
}

export const FAKE_PROVIDER: Provider = {
  kind: 'gguf',
  program: 'fake-server',
  containerPort: 8080,
  readyPath: '/health',
  devices: () => [],
  buildEnv: ({ name }) => ({ SLOT: name }),
  startCmd: ({ modelPath, listen: { port }, spec }) => ['fake-server', '--model', modelPath, '--port', String(port), ...spec.model.args],
  estimateMemoryBytes: (_spec, model) => model.sizeBytes,
  capabilities: () => ['chat', 'completion'],
  async health(endpoint, io, _slot, signal) {
    const { status, error } = await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: 1000, signal });
    if (status === 200) return { kind: 'passing' };
    return status === 503 ? { kind: 'loading', message: 'Loading' } : { kind: 'failing', message: error ?? 'No answer' };
  },
  infer: ({ path }) => ({ kind: 'forward', path }),
};
