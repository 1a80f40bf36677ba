/** What the worlds of the simulation are made of, and how bad their weather is. */
import type { Failure } from '../../../src/schema/failure.ts';
import type { WorkloadId } from '../../../src/schema/names.ts';
import type { SlotDocument } from '../../../src/schema/slot-spec.ts';
import type { Random } from './seeded-random.ts';
import type { Referee } from './world-referee.ts';
import type { World, WorldOptions } from './world.ts';
import type { Reason } from '../../../src/schema/reasons.ts';

export const SLOTS = ['primary', 'embed', 'mine'] as const;
export const MODELS = ['a.gguf', 'b.gguf', 'c.gguf'] as const;
/** Its server ends shortly after its start. */
export const BAD_MODEL = 'bad.gguf';
export const DRAIN_MS = 3000;

export interface Weather {
  chaos: boolean;
  down: string | undefined;
  failingEndpoints: boolean;
  /** How many pods find a place. */
  room: number;
}

export interface Scene {
  readonly world: World;
  readonly random: Random;
  readonly weather: Weather;
  readonly referee: Referee;
  readonly names: readonly string[];
  /** Workloads have pods, and several controllers look at them. */
  readonly pods: boolean;
  readonly budget: number;
}

export function weatherOf(random: Random, weather: Weather) {
  const slow = (): number => (random.chance(0.2) ? random.int(100, 4000) : random.int(0, 30));
  return {
    losesWake: () => random.chance(weather.chaos ? 0.3 : 0.1),
    readyMs: (model: string) => (model.length % 7) * 20,
    answers: () => !weather.failingEndpoints,
    modelPullMs: () => random.int(0, 8000),
    modelPullFailure: () => (weather.chaos && random.chance(0.2) ? failure('InternalError') : undefined),
    behaviour: {
      observeMs: () => (random.chance(0.2) ? random.int(1, 60) : 0),
      applyMs: () => [slow(), random.chance(0.3) ? random.int(1, 500) : 0] as const,
      stopMs: () => [slow(), random.chance(0.3) ? random.int(1, 500) : 0] as const,
      pullMs: () => random.int(0, 8000),
      unreachable: () => weather.down,
      applyFailure: () => (weather.chaos && random.chance(0.1) ? { ...failure('StartFailed'), late: random.chance(0.5) } : undefined),
      stopFailure: () => (weather.chaos && random.chance(0.1) ? failure('StopFailed') : undefined),
      pullFailure: () => (weather.chaos && random.chance(0.2) ? failure('InternalError') : undefined),
    },
  } satisfies WorldOptions;
}

export function clusterWeather(random: Random, weather: Weather, onKilled: (id: WorkloadId) => void): WorldOptions {
  const base = weatherOf(random, weather);
  // Kubelets as they are, or in a hurry: then servers crash again and again within the time of a world.
  const hurried = random.chance(0.5) ? { restartMs: (crashes: number) => 200 * crashes } : {};
  return {
    ...base,
    behaviour: {
      ...base.behaviour,
      ...hurried,
      podMs: () => [random.chance(0.5) ? 0 : random.int(1, 5000), random.int(0, 1500)],
      fetchFailure: () => (weather.chaos && random.chance(0.15) ? 'The model could not be fetched' : undefined),
      room: () => weather.room,
      onKilled,
    },
  };
}

function failure(reason: Reason): Failure {
  return { kind: 'retry', reason, message: `It failed for the simulation: ${reason}` };
}

export function documentOf(random: Random, pods: boolean, good = false): SlotDocument {
  const document: SlotDocument = {
    provider: 'gguf',
    enabled: random.chance(0.85),
    priority: random.int(0, 1),
    load: random.chance(0.7) ? 'always' : 'on-demand',
    model: { default: good || random.chance(0.9) ? random.pick(MODELS) : BAD_MODEL },
    lifecycle: {
      idleTimeout: random.chance(0.7) ? 'never' : '8s',
      startTimeout: '10s',
      drainTimeout: `${DRAIN_MS}ms`,
      swap: random.pick(['auto', 'auto', 'drain', 'blue-green']),
      drift: random.pick(['repair', 'repair', 'warn']),
    },
  };
  if (!pods) return document;
  const { lifecycle } = document;
  const startTimeout = random.chance(0.7) ? '10s' : '12s';
  // What somebody scaled to nothing stays so where it is only told of.
  const drift = good ? ({ drift: 'repair' } as const) : {};
  return { ...document, replicas: random.pick(good ? [1, 1, 2, 3] : [0, 1, 1, 2, 3]), lifecycle: { ...lifecycle, startTimeout, ...drift } };
}
