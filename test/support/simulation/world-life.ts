/** One controller with its gateway, from its start to its end. */
import type { ProbeIo, ProviderRegistry } from '../../../src/providers/provider.ts';
import { createBoard, type Board } from '../../../src/reconciler/board.ts';
import { changesWorld } from '../../../src/reconciler/decide/facts/actions.ts';
import { actionText } from '../../../src/reconciler/decide/outcome/explain.ts';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { createLoop, type Loop, type LoopDeps } from '../../../src/reconciler/loop.ts';
import type { Clock, DesiredSlot, HostProbe, ModelStore, Report, SlotSource, Wake } from '../../../src/reconciler/ports.ts';
import type { InMemoryRuntime } from '../in-memory/in-memory-runtime.ts';
import { pause } from '../../../src/platform/clock.ts';
import type { RequestHistory } from '../../../src/schema/status/request-history.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import type { Settings } from '../../../src/schema/settings/settings.ts';
import { createCable } from './cable.ts';
import { witnessProbes, witnessProvider, type Deeds } from './deeds.ts';
import { disturbDownloads, disturbRuntime } from './faults/runtime.ts';
import { disturbHost, disturbModels, disturbProbes, disturbRecords, disturbSource } from './faults/senses.ts';
import { createJournal, type Journal } from './journal.ts';
import { openHost } from './machine/host-ports.ts';
import type { HostWorld } from './machine/host-world.ts';
import { fakeReadiness, FAKE_PROVIDER, NONSENSE, READINESS_PATH } from './world-models.ts';
import { shareTraffic } from './world-shares.ts';
import { createWorldTraffic, type WorldTraffic } from './world-traffic.ts';
import { IMAGE, GPU_IMAGE, type WorldOptions } from './world-options.ts';

export interface Life {
  readonly board: Board;
  readonly loop: Loop;
  readonly traffic: WorldTraffic;
  readonly reports: Report[];
  /** Errors that the loop logged. */
  readonly errors: string[];
  /** What it asks of its ports, plans and publishes. */
  readonly journal: Journal;
  /** What its predecessor published, as far as it is told. */
  readonly earlier: ReadonlyMap<SlotName, SlotStatus>;
  /** The newest entry of the timeline that its predecessors wrote, on a host. */
  readonly lastSeq: number | undefined;
  /** Whether it carries out its plans. */
  leads(): boolean;
  /** Ends the controller in good order: its workloads remain. Does not wait for its actions. */
  end(): Promise<void>;
  /** Whether everything has ended since `end`. */
  hasEnded(): boolean;
  /** Kills the controller: all that it knows is lost, and its actions under way take effect or not. */
  crash(): void;
}

export interface LifeParts {
  readonly options: WorldOptions;
  readonly clock: Clock;
  readonly runtime: InMemoryRuntime;
  readonly source: SlotSource;
  readonly models: ModelStore;
  readonly settings: Settings;
  readonly leadership: LoopDeps['leadership'] | undefined;
  /** The gateways of the other controllers, and the wakes to call when a request waits. */
  readonly others: () => readonly WorldTraffic[];
  readonly demandWakes: Set<Wake>;
  readonly deeds: Deeds;
  /** Receives every action except probes that the leader plans. */
  readonly changes: string[];
  readonly isFrozen: (workload: WorkloadId) => boolean;
  /** The statuses that the leader reported last, as a disk or a cluster keeps them. */
  readonly statuses: Map<SlotName, SlotStatus>;
  /** The slots that they describe. */
  readonly statusesOf: Map<SlotName, DesiredSlot>;
  /** The newest entry that was written, as a disk keeps it. */
  readonly timeline: { lastSeq: number };
  /** What was learned of requests, as a disk keeps it. */
  readonly histories: Map<SlotName, RequestHistory>;
  /** The machine with the real adapters; undefined in other worlds. */
  readonly host: HostWorld | undefined;
}

export function beginLife({
  options,
  clock,
  runtime,
  source,
  models,
  settings,
  leadership,
  others,
  demandWakes,
  deeds,
  changes,
  isFrozen,
  statuses,
  statusesOf,
  timeline,
  histories,
  host: hostWorld,
}: LifeParts): Life {
  const journal = createJournal();
  const cable = createCable(clock, journal);
  const ports = hostWorld && openHost(hostWorld, { clock: cable.clock, isCut: cable.isCut });
  const disturb = options.disturb ?? (() => undefined);
  const { pauseMs, rollouts } = options;
  const board = createBoard();
  const modelOf = (workload: WorkloadId): string => runtime.list().find(({ id }) => id === workload)?.container.argv?.[2] ?? '';
  const traffic = createWorldTraffic({
    clock,
    board,
    parkTimeoutMs: 300_000,
    isFrozen: (id) => isFrozen(id) || options.hangs?.() === true,
    fails: rollouts?.fails && ((id) => rollouts.fails?.(modelOf(id)) === true),
    isReachable: ({ workload }) => leadership === undefined || runtime.list().some(({ id }) => id === workload),
    ...(options.losesWake === undefined ? {} : { losesWake: options.losesWake }),
  });
  const reports: Report[] = [];
  const errors: string[] = [];
  const stopping = new AbortController();
  const host: HostProbe = { read: async () => options.host ?? { memoryTotalBytes: undefined, memoryAvailableBytes: undefined } };
  board.subscribe(journal.published);
  const asked = createWorldProbes({
    options,
    clock,
    runtime,
    isFrozen,
    inFlight: (id) => traffic.read().workloads.get(id)?.inFlight ?? 0,
  });
  const probes = cable.probes(disturbProbes(asked, clock, disturb));
  const witness = { deeds, clock, by: journal, began: new WeakMap<AbortSignal, number>() };
  const provider = witnessProvider(
    { ...FAKE_PROVIDER, ...(options.nonsense === undefined ? {} : { readiness: fakeReadiness }), ...options.provider },
    probes,
    witness,
  );
  // A cluster keeps statuses where every controller sees them, and not what its predecessor published.
  const earlier = leadership === undefined ? new Map(ports?.earlier ?? statuses) : undefined;
  const { lastSeq } = ports ?? timeline;
  let described: ReadonlyMap<SlotName, DesiredSlot> = new Map();
  const loop = createLoop({
    source: cable.source(disturbSource(ports?.source ?? source, clock, disturb)),
    runtime: cable.runtime(disturbRuntime(ports?.runtime ?? runtime, clock, disturb)),
    models: cable.models(disturbDownloads(disturbModels(models, clock, disturb), clock, disturb)),
    traffic: cable.traffic(leadership === undefined ? traffic : shareTraffic(traffic, { others, leadership, clock, demandWakes })),
    host: cable.host(disturbHost(host, clock, disturb)),
    clock: cable.clock,
    providers: { gguf: provider } satisfies ProviderRegistry,
    images: (_kind, backend) => (backend === 'rocm' || backend === 'cuda' ? GPU_IMAGE : IMAGE),
    probeIo: witnessProbes(probes, witness),
    readAhead: options.readAhead,
    evaluation: rollouts && (async (...asked) => await cable.through(rollouts.evaluation(...asked))),
    sinks: [
      {
        write(report) {
          reports.push(report);
          hostWorld?.reported(report.statuses, described);
          ports?.write(report);
          if (leadership?.leads() === false) return;
          statuses.clear();
          timeline.lastSeq = report.entries.at(-1)?.seq ?? timeline.lastSeq;
          for (const status of report.statuses) statuses.set(status.name, status);
          for (const [name, slot] of described) statusesOf.set(name, slot);
        },
      },
    ],
    records: cable.records(
      disturbRecords(ports?.records ?? { read: async () => options.recorded?.() ?? new Map(statuses) }, clock, disturb),
    ),
    ...(earlier === undefined ? {} : { earlier, lastSeq }),
    histories: {
      files: { write: (slot, history) => void (history === undefined ? histories.delete(slot) : histories.set(slot, history)) },
      known: new Map(histories),
    },
    board,
    settings,
    ...(leadership === undefined
      ? {}
      : { leadership: { leads: leadership.leads, changes: cable.changes('leadership', leadership.changes) } }),
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (fields, message) => void errors.push(`${message}: ${JSON.stringify(fields)}`),
    },
    ...(pauseMs === undefined ? {} : { breather: () => async () => await pause(cable.clock, pauseMs(), stopping.signal) }),
    decide: {
      plan(wanted, observed, now, steps) {
        const made = (options.decide?.plan ?? plan)(wanted, observed, now, steps);
        described = wanted.slots;
        journal.planned({ plan: made, desired: wanted, observed, now });
        if (observed.leads) for (const action of made.actions.filter(changesWorld)) changes.push(actionText(action));
        return made;
      },
      inspect: options.decide?.inspect ?? inspect,
    },
  });
  let hasEnded = false;
  const ended = loop
    .start(stopping.signal)
    .then(async () => await ports?.flush())
    .then(() => void (hasEnded = true));
  return {
    board,
    loop,
    traffic,
    reports,
    errors,
    journal,
    earlier: earlier ?? new Map(),
    lastSeq: earlier === undefined ? undefined : lastSeq,
    leads: () => leadership?.leads() ?? true,
    async end() {
      stopping.abort();
      traffic.close();
      void ended;
    },
    hasEnded: () => hasEnded,
    crash() {
      cable.cut();
      ports?.left();
      traffic.close();
    },
  };
}

interface WorldProbes extends Pick<LifeParts, 'options' | 'clock' | 'runtime' | 'isFrozen'> {
  readonly inFlight: (workload: WorkloadId) => number;
}

/** A server that is busy looks this often whether it can answer the next request. */
const BUSY_MS = 500;

/** Answers as llama-server does: `GET` at once, `POST` behind the requests in flight; nothing at all while it is frozen. */
function createWorldProbes({ options, clock, runtime, isFrozen, inFlight }: WorldProbes): ProbeIo {
  return {
    async request(endpoint, { method, path, timeoutMs, signal }) {
      const workload = runtime.at(endpoint);
      if (workload === undefined) return { status: 0, body: '', error: 'Nothing listens on this port' };
      const until = clock.now() + timeoutMs;
      while (
        options.answers?.(endpoint.port, endpoint) === false ||
        isFrozen(workload.id) ||
        (method === 'POST' && (options.hangs?.() === true || inFlight(workload.id) > 0))
      ) {
        const left = until - clock.now();
        if (left <= 0 || signal.aborted) return { status: 0, body: '', error: `No answer within ${timeoutMs} ms` };
        await pause(clock, method === 'POST' ? Math.min(BUSY_MS, left) : left, signal);
      }
      if (options.errs?.(endpoint, path) === true) return { status: 500, body: '' };
      const model = workload.container.argv?.[2] ?? '';
      const ready = runtime.runningMs(workload.id) >= (options.readyMs?.(model) ?? 50);
      return { status: ready ? 200 : 503, body: path === READINESS_PATH && options.nonsense?.(model, endpoint) === true ? NONSENSE : '' };
    },
  };
}
