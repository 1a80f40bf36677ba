/** The models of a world: an in-memory store, and a provider whose server answers probes as the world decides. */
import type { ModelFacts, Provider } from '../../../src/providers/provider.ts';
import type { Clock, ModelPresence, ModelStore, Wake } from '../../../src/reconciler/ports.ts';
import { fail, ok, type Failure } from '../../../src/schema/words/failure.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { rankBackends } from '../../../src/providers/decide/rank-backends.ts';
import { PLAIN_PROVIDER } from '../plain-provider.ts';

export interface WorldModels extends ModelStore {
  set(id: string, presence: 'present' | 'pullable' | 'missing', sizeBytes: number, version?: string): void;
}

export interface WorldModelsOptions {
  readonly clock: Clock;
  readonly modelPullMs?: (() => number) | undefined;
  readonly modelPullFailure?: (() => Failure | undefined) | undefined;
  readonly losesWake?: (() => boolean) | undefined;
}

export function createWorldModels({ clock, modelPullMs, modelPullFailure, losesWake }: WorldModelsOptions): WorldModels {
  const presences = new Map<ModelId, ModelPresence>();
  const wakes = new Set<Wake>();
  const wakeAll = (): void => {
    if (losesWake?.() !== true) for (const wake of wakes) wake();
  };
  return {
    root: '/store',
    observe: async (ids) =>
      new Map(ids.map((id) => [id, presences.get(id) ?? { kind: 'missing', message: `Put the model "${id}" in place` }])),
    async pull(id, onProgress, signal) {
      onProgress({ what: id, doneBytes: 0, totalBytes: 100 });
      const failure = modelPullFailure?.();
      const ms = modelPullMs?.() ?? 0;
      if (ms > 0) await new Promise<void>((resolve) => void clock.at(clock.now() + ms, resolve));
      if (signal.aborted) return fail('retry', 'Aborted', 'The pull was cancelled');
      if (failure !== undefined) return { ok: false, failure };
      presences.set(id, { kind: 'present', facts: factsOf(id, 1000) });
      wakeAll();
      return ok(undefined);
    },
    changes: (wake, signal) => listen(wakes, wake, signal),
    set(text, presence, sizeBytes, version) {
      const id = ModelId.parse(text);
      if (presence === 'present') presences.set(id, { kind: 'present', facts: { ...factsOf(id, sizeBytes), version } });
      else if (presence === 'pullable') presences.set(id, { kind: 'pullable', sizeBytes });
      else presences.delete(id);
      wakeAll();
    },
  };
}

/** A model needs as much memory as its file has bytes. */
function factsOf(id: ModelId, sizeBytes: number): ModelFacts {
  return { id, hostPath: `/store/${id}`, sizeBytes };
}

/** Adds `wake` until the signal aborts. */
export function listen(wakes: Set<Wake>, wake: Wake, signal: AbortSignal): void {
  if (signal.aborted) return;
  wakes.add(wake);
  signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
}

/** Only readiness checks ask it. */
export const READINESS_PATH = '/readiness';
/** What a model answers that computes nonsense. */
export const NONSENSE = 'nonsense';

export const FAKE_PROVIDER: Provider = {
  ...PLAIN_PROVIDER,
  program: 'fake-server',
  containerPort: 8080,
  rankBackends: (hardware) => rankBackends('gguf', hardware),
  buildEnv: ({ name }) => ({ SLOT: name }),
  startCmd: ({ modelPath, listen: { port }, spec }) => ['fake-server', '--model', modelPath, '--port', String(port), ...spec.model.args],
  estimateMemory: (_name, _spec, { sizeBytes }) => ({ hostBytes: sizeBytes, deviceBytes: 0 }),
  capabilities: () => ['chat', 'completion'],
  // As real servers are probed: the first request tells whether the server answers at all, the second one whether its model does.
  async health(endpoint, io, _slot, signal) {
    const alive = await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: 3000, signal });
    if (alive.status === 0) return { kind: 'silent', message: alive.error ?? 'No answer' };
    if (alive.status === 503) return { kind: 'loading', message: 'Loading' };
    if (alive.status !== 200) return { kind: 'failing', message: `Status ${alive.status}` };
    const { status, error } = await io.request(endpoint, { method: 'POST', path: '/v1/completions', timeoutMs: 30_000, signal });
    if (status === 0) return { kind: 'loading', message: error ?? 'Busy' };
    return status === 500 ? { kind: 'failing', message: 'The model fails' } : { kind: 'passing' };
  },
};

export const fakeReadiness: NonNullable<Provider['readiness']> = async (endpoint, io, slot, signal) => {
  const health = await FAKE_PROVIDER.health(endpoint, io, slot, signal);
  if (health.kind !== 'passing') return health;
  const { body } = await io.request(endpoint, { method: 'POST', path: READINESS_PATH, timeoutMs: 30_000, signal });
  return body === NONSENSE ? { kind: 'nonsense', message: 'The model answers nonsense: zeros' } : health;
};
