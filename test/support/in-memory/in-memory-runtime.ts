/**
 * A complete in-memory runtime on any clock, for tests and simulations. Names, ports, images and idempotence are those of a real runtime; `behaviour`
 * decides for each call how long it takes and whether it fails.
 */
import type {
  Clock,
  ContainerFacts,
  ImageReference,
  LogLine,
  ObservedWorkload,
  Runtime,
  RuntimeTraits,
  Wake,
  Work,
  Workload,
} from '../../../src/reconciler/ports.ts';
import { fail, ok, type Failure, type Result } from '../../../src/schema/words/failure.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';

/** Each function is called once for each call of the runtime. Times are milliseconds, by default 0. */
export interface InMemoryBehaviour {
  /** Until the answer of an observation, after it was taken. */
  readonly observeMs?: () => number;
  /** Until the workload runs, and from then until the call returns. */
  readonly applyMs?: () => readonly [number, number];
  readonly stopMs?: () => readonly [number, number];
  readonly pullMs?: (image: ImageReference) => number;
  readonly unreachable?: () => string | undefined;
  /** `late`: the call fails, but the workload starts all the same. */
  readonly applyFailure?: (workload: Workload) => (Failure & { readonly late?: boolean }) | undefined;
  readonly stopFailure?: () => Failure | undefined;
  /** The stop of a running workload fails after its signal was sent, and the process ends `endsInMs` later; undefined: never. */
  readonly brokenStop?: (id: WorkloadId) => BrokenStop | undefined;
  readonly pullFailure?: (image: ImageReference) => Failure | undefined;
  /** What a running workload is measured to use of the memory of the host. Default: that is not known. */
  readonly usedBytes?: (slot: string) => number | undefined;
  /** How long a workload has computed. Default: that is not known. */
  readonly work?: (id: WorkloadId) => Work | undefined;
  /** Whether the notification of a change gets lost. */
  readonly losesWake?: () => boolean;
  /** Called when a workload has ended that may have requests again. */
  readonly onKilled?: (id: WorkloadId) => void;
}

export interface BrokenStop {
  readonly failure: Failure;
  readonly endsInMs: number | undefined;
}

export interface InMemoryRuntime extends Runtime {
  /** Everything that exists now, even while the runtime is unreachable. */
  list(): readonly ObservedWorkload[];
  /** The running workload that listens there. */
  at(endpoint: ObservedWorkload['endpoints'][number]): ObservedWorkload | undefined;
  /** Its `startedAt` on the clock that never jumps. */
  begunAt(workload: Pick<ObservedWorkload, 'id' | 'startedAt'>): number | undefined;
  /** How long it has been running; 0 if it does not run. */
  runningMs(id: WorkloadId): number;
  exit(id: WorkloadId, exit?: { readonly code?: number; readonly outOfMemory?: boolean }): void;
  /** Removes a workload from outside, without a stop. */
  vanish(id: WorkloadId): void;
  alter(id: WorkloadId, part: Partial<ContainerFacts>): void;
  /** Adds a workload that was not applied. */
  plant(workload: Workload): WorkloadId;
  addImage(image: ImageReference): void;
  removeImage(reference: string): void;
  hasImage(reference: string): boolean;
  /** A host port that some other program listens on. */
  readonly foreignPorts: Set<number>;
}

export interface InMemoryRuntimeOptions {
  readonly clock: Clock;
  readonly traits?: Partial<RuntimeTraits>;
  readonly behaviour?: InMemoryBehaviour;
}

interface Entry {
  readonly workload: Workload;
  readonly facts: ObservedWorkload;
  /** On the clock that never jumps. */
  readonly begunAt: number;
  readonly log: readonly LogLine[];
}

const TRAITS: RuntimeTraits = { kind: 'in-memory', images: true, network: 'published', modelsTarget: '/models' };

export function createInMemoryRuntime({ clock, traits, behaviour = {} }: InMemoryRuntimeOptions): InMemoryRuntime {
  const kept = new Map<WorkloadId, Entry>();
  /** Every start there was, by workload and time of the wall clock. */
  const begun = new Map<string, number>();
  const images = new Map<string, string | undefined>();
  const wakes = new Set<Wake>();
  const foreignPorts = new Set<number>();
  let made = 0;
  /** Made again when a workload has changed, because a simulation looks after each of its steps. */
  let listed: readonly ObservedWorkload[] | undefined;

  const keep = (id: WorkloadId, entry: Entry): void => {
    listed = undefined;
    kept.set(id, entry);
  };
  const changed = (): void => {
    if (behaviour.losesWake?.() !== true) for (const wake of wakes) wake();
  };
  const change = (id: WorkloadId, part: Partial<ObservedWorkload>, line?: string): void => {
    const before = kept.get(id);
    if (before === undefined) return;
    const log: readonly LogLine[] = line === undefined ? before.log : [...before.log, { stream: 'stderr', text: line }];
    const begunAt = part.startedAt === undefined ? before.begunAt : clock.now();
    if (part.startedAt !== undefined) begun.set(`${id} ${part.startedAt}`, begunAt);
    keep(id, { ...before, log, begunAt, facts: { ...before.facts, ...part } });
    changed();
  };
  const remove = (id: WorkloadId): void => {
    listed = undefined;
    if (kept.delete(id)) changed();
  };
  const create = (workload: Workload): WorkloadId => {
    made += 1;
    const id = WorkloadId.parse(`memory-${made}-${workload.name}`);
    const facts = observedOf(id, workload, images, clock.wallNow());
    begun.set(`${id} ${facts.startedAt}`, clock.now());
    keep(id, { workload, facts, begunAt: clock.now(), log: [{ stream: 'stdout', text: `listening on ${workload.port.host}` }] });
    changed();
    return id;
  };
  /** A workload that ended listens no longer, and keeps its port for the next time. */
  const findTaken = (port: number): Result<never> | undefined => {
    const held = kept.values().some(({ facts, workload }) => facts.phase !== 'exited' && workload.port.host === port);
    return held || foreignPorts.has(port) ? fail('retry', 'PortTaken', `Use another port: ${port} is taken`) : undefined;
  };
  const refuse = (workload: Workload): Result<WorkloadId> | undefined => {
    const { name, revision, image, port } = workload;
    const same = kept.values().find(({ facts }) => facts.name === name);
    if (same !== undefined) {
      if (same.facts.revision !== revision) return fail('retry', 'NameTaken', `Remove "${name}" first: it is of another revision`);
      if (same.facts.phase !== 'exited') return ok(same.facts.id);
      const taken = findTaken(same.workload.port.host);
      if (taken === undefined) change(same.facts.id, runningFrom(same.workload, clock.wallNow()));
      return taken ?? ok(same.facts.id);
    }
    if (image !== undefined && !images.has(image.reference)) return fail('retry', 'ImageMissing', `Pull image "${image.reference}" first`);
    return findTaken(port.host);
  };

  const exit: InMemoryRuntime['exit'] = (id, { code = 1, outOfMemory = false } = {}) => {
    if (kept.get(id)?.facts.phase !== 'running') return;
    change(id, { phase: 'exited', endpoints: [], exit: { code, outOfMemory, at: clock.wallNow() } }, `died with code ${code}`);
  };
  const endBySignal = (id: WorkloadId, ms: number): void => {
    const begunAt = kept.get(id)?.begunAt;
    clock.at(clock.now() + ms, () => {
      if (kept.get(id)?.begunAt !== begunAt) return;
      behaviour.onKilled?.(id);
      exit(id, { code: 143 });
    });
  };

  return {
    traits: { ...TRAITS, ...traits },
    foreignPorts,
    list: () => (listed ??= [...kept.values()].map(({ facts }) => facts)),
    at: ({ port }) => kept.values().find(({ facts, workload }) => facts.phase === 'running' && workload.port.host === port)?.facts,
    begunAt: ({ id, startedAt }) => begun.get(`${id} ${startedAt}`),
    runningMs(id) {
      const entry = kept.get(id);
      return entry?.facts.phase === 'running' ? clock.now() - entry.begunAt : 0;
    },
    exit,
    vanish: remove,
    alter(id, part) {
      const before = kept.get(id)?.facts.container;
      if (before !== undefined) change(id, { container: { ...before, ...part } });
    },
    plant: create,
    addImage(image) {
      images.set(image.reference, image.imageId);
      changed();
    },
    hasImage: (reference) => images.has(reference),
    removeImage(reference) {
      images.delete(reference);
      changed();
    },
    async observe(wanted, signal) {
      if (signal.aborted) return GIVEN_UP;
      const down = behaviour.unreachable?.();
      const workloads = [...kept.values()].map(({ facts }) => withMemory(facts, behaviour));
      const seen = wanted.map(({ reference }) => {
        const imageId = images.get(reference);
        return { reference, present: images.has(reference), ...(imageId === undefined ? {} : { imageId }) };
      });
      await passTime(clock, behaviour.observeMs?.() ?? 0);
      return down === undefined ? ok({ workloads, images: seen }) : fail('retry', 'RuntimeUnreachable', down);
    },
    async pull(image, onProgress, signal) {
      const totalBytes = 1000;
      onProgress({ what: image.reference, doneBytes: 0, totalBytes });
      const failure = behaviour.pullFailure?.(image);
      await passTime(clock, behaviour.pullMs?.(image) ?? 0);
      if (signal.aborted) return fail('retry', 'Aborted', `The pull of "${image.reference}" was cancelled`);
      if (failure !== undefined) return { ok: false, failure };
      onProgress({ what: image.reference, doneBytes: totalBytes, totalBytes });
      images.set(image.reference, image.imageId);
      changed();
      return ok(undefined);
    },
    async apply(workload, signal) {
      if (signal.aborted) return GIVEN_UP;
      const [doMs, answerMs] = behaviour.applyMs?.() ?? [0, 0];
      const failure = behaviour.applyFailure?.(workload);
      await passTime(clock, doMs);
      const down = behaviour.unreachable?.();
      if (down !== undefined) return fail('retry', 'RuntimeUnreachable', down);
      const answer = failure !== undefined && failure.late !== true ? undefined : (refuse(workload) ?? ok(create(workload)));
      await passTime(clock, answerMs);
      return failure === undefined && answer !== undefined ? answer : { ok: false, failure: failure ?? NEVER };
    },
    async stop(id, _options, signal) {
      if (signal.aborted) return GIVEN_UP;
      const [doMs, answerMs] = behaviour.stopMs?.() ?? [0, 0];
      const down = behaviour.unreachable?.();
      const failure: Failure | undefined =
        down === undefined ? behaviour.stopFailure?.() : { kind: 'retry', reason: 'RuntimeUnreachable', message: down };
      const isRunning = kept.get(id)?.facts.phase === 'running';
      const broken = failure === undefined && isRunning ? behaviour.brokenStop?.(id) : undefined;
      if (broken !== undefined) {
        if (broken.endsInMs !== undefined) endBySignal(id, broken.endsInMs);
        await passTime(clock, answerMs);
        return { ok: false, failure: broken.failure };
      }
      if (failure === undefined && isRunning) change(id, { phase: 'stopping', endpoints: [] });
      await passTime(clock, doMs);
      if (failure === undefined) remove(id);
      await passTime(clock, answerMs);
      return failure === undefined ? ok(undefined) : { ok: false, failure };
    },
    work: async (id) => behaviour.work?.(id),
    async *logs(id, { tail }) {
      yield* (kept.get(id)?.log ?? []).slice(-tail);
    },
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
    },
  };
}

const GIVEN_UP = fail('retry', 'Aborted', 'It was given up before it began');
const NEVER: Failure = { kind: 'retry', reason: 'StartFailed', message: 'It did not start' };

function withMemory(facts: ObservedWorkload, { usedBytes }: InMemoryBehaviour): ObservedWorkload {
  const host = facts.phase === 'running' ? usedBytes?.(facts.slot) : undefined;
  return host === undefined ? facts : { ...facts, memoryBytes: { host } };
}

function observedOf(id: WorkloadId, workload: Workload, images: ReadonlyMap<string, string | undefined>, now: number): ObservedWorkload {
  const { name, slot, revision, generation, argv, env, mounts, devices, port } = workload;
  const imageId = workload.image === undefined ? undefined : (images.get(workload.image.reference) ?? workload.image.imageId);
  const container = { imageId, argv, env, mounts, devices, port };
  return { id, name, slot, revision, generation, container, ...runningFrom(workload, now) };
}

function runningFrom({ port }: Workload, now: number): Pick<ObservedWorkload, 'phase' | 'startedAt' | 'endpoints'> {
  return { phase: 'running', startedAt: now, endpoints: [{ host: '127.0.0.1', port: port.host }] };
}

export async function passTime(clock: Clock, ms: number): Promise<void> {
  if (ms > 0) await new Promise<void>((resolve) => void clock.at(clock.now() + ms, resolve));
}
