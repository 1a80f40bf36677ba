/** What the worlds of the simulation consist of, and the faults that happen in them. */
import type { Provider } from '../../../src/providers/provider.ts';
import type { Device, Hardware } from '../../../src/schema/status/hardware.ts';
import type { Failure } from '../../../src/schema/words/failure.ts';
import type { Reason } from '../../../src/schema/status/reasons.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import type { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import type { Ahead } from './simulate-ahead.ts';
import { createRandom, type Random } from './seeded-random.ts';
import type { Referee } from './world-referee.ts';
import type { World, WorldOptions } from './world.ts';

export const SLOTS = ['primary', 'embed', 'mine'] as const;
export const MODELS = ['a.gguf', 'b.gguf', 'c.gguf'] as const;
/** Its server ends shortly after its start. */
export const BAD_MODEL = 'bad.gguf';
export const DRAIN_MS = 3000;

export interface Faults {
  /** Whether random failures happen. */
  chaos: boolean;
  /** Why the runtime is unreachable; undefined while it is not. */
  down: string | undefined;
  /** Whether no server answers its probes. */
  failingEndpoints: boolean;
  /** How many pods can be scheduled. */
  room: number;
}

export interface Scene {
  readonly world: World;
  readonly random: Random;
  readonly faults: Faults;
  readonly referee: Referee;
  readonly names: readonly string[];
  /** Whether the world is a cluster: workloads have pods, and there may be several controllers. */
  readonly pods: boolean;
  readonly budget: number;
  documentOf(good?: boolean): SlotDocument;
  areFalling(): boolean;
}

function hostOptions(random: Random, faults: Faults) {
  const slow = (): number => (random.chance(0.2) ? random.int(100, 4000) : random.int(0, 30));
  return {
    losesWake: () => random.chance(faults.chaos ? 0.3 : 0.1),
    readyMs: (model: string) => (model.length % 7) * 20,
    answers: () => !faults.failingEndpoints,
    modelPullMs: () => random.int(0, 8000),
    modelPullFailure: () => (faults.chaos && random.chance(0.2) ? failure('InternalError') : undefined),
    behaviour: {
      observeMs: () => (random.chance(0.2) ? random.int(1, 60) : 0),
      applyMs: () => [slow(), random.chance(0.3) ? random.int(1, 500) : 0] as const,
      stopMs: () => [slow(), random.chance(0.3) ? random.int(1, 500) : 0] as const,
      pullMs: () => random.int(0, 8000),
      unreachable: () => faults.down,
      applyFailure: () => (faults.chaos && random.chance(0.1) ? { ...failure('StartFailed'), late: random.chance(0.5) } : undefined),
      stopFailure: () => (faults.chaos && random.chance(0.1) ? failure('StopFailed') : undefined),
      pullFailure: () => (faults.chaos && random.chance(0.2) ? failure('InternalError') : undefined),
    },
  } satisfies WorldOptions;
}

/** Every third machine computes on GPUs: one that has 600 bytes set aside for it in the memory of the host, or two with memory of their own. */
function deviceOptions(seed: number): Pick<WorldOptions, 'host' | 'provider'> {
  if (seed % 3 !== 0) return {};
  const gpu = (id: string, unified: boolean, bytes: number): Device => {
    const memory = { totalBytes: bytes, freeBytes: bytes, ...(unified ? { dedicatedBytes: 600 } : {}) };
    return { id, kind: 'gpu', vendor: 'amd', backends: ['rocm'], memory, unified };
  };
  const hardware: Hardware = {
    source: { kind: 'machine' },
    cpu: { architecture: 'x64', threads: 8 },
    memory: undefined,
    devices: seed % 2 === 0 ? [gpu('gpu0', true, 10_000)] : [gpu('gpu0', false, 4300), gpu('gpu1', false, 4300)],
    programs: {},
  };
  return {
    host: { memoryTotalBytes: undefined, memoryAvailableBytes: undefined, hardware },
    provider: {
      estimateMemory(_name, _spec, { sizeBytes }) {
        const hostBytes = Math.floor(sizeBytes / 4);
        return { hostBytes, deviceBytes: sizeBytes - hostBytes };
      },
      ...(seed % 4 === 1 ? { splits: splitsOf } : {}),
    },
  };
}

/** The CPU computes one, two or three of four layers where the devices are too small. */
const splitsOf: NonNullable<Provider['splits']> = (_name, { model }, { sizeBytes }) =>
  (model.offload === 'auto' ? [1, 2, 3] : []).map((count) => {
    const hostBytes = Math.floor(sizeBytes / 4) + Math.floor((sizeBytes * count) / 5);
    return { demand: { hostBytes, deviceBytes: sizeBytes - hostBytes }, env: { ON_HOST: String(count) }, onHost: `${count} of 4 layers` };
  });

/** A world without pods. */
export function singleOptions(seed: number, random: Random, faults: Faults, onKilled: (id: WorkloadId) => void): WorldOptions {
  const base = hostOptions(random, faults);
  return { ...base, ...deviceOptions(seed), behaviour: { ...base.behaviour, ...signalOptions(seed, faults, onKilled) } };
}

/** In every third world, stops fail after their signal was sent, and the server ends, now or later, or ignores it. */
function signalOptions(seed: number, faults: Faults, onKilled: (id: WorkloadId) => void) {
  const random = createRandom(seed ^ 0x7e44);
  if (!random.chance(1 / 3)) return {};
  const endsInMs = (): number | undefined => (random.chance(0.2) ? undefined : random.int(0, LONGEST_END_MS));
  return {
    onKilled,
    brokenStop: () => (faults.chaos && random.chance(0.5) ? { failure: failure('StopFailed'), endsInMs: endsInMs() } : undefined),
  };
}

/** Some servers save their state before they end. */
const LONGEST_END_MS = 5000;

/** The real adapters of a host. Its random numbers are its own. */
export function machineOptions(seed: number, faults: Faults, onKilled: (id: WorkloadId) => void): Pick<WorldOptions, 'machine'> {
  const random = createRandom(seed ^ 0xd15c);
  const stopMs = (): number => (random.chance(0.2) ? random.int(100, 4000) : random.int(0, 30));
  return { machine: { random, stopMs, isDown: () => faults.down !== undefined, onKilled } };
}

export function clusterOptions(random: Random, faults: Faults, onKilled: (id: WorkloadId) => void): WorldOptions {
  const base = hostOptions(random, faults);
  // Kubelets with real delays, or with short ones: then a server crashes repeatedly within the time of a world.
  const hurried = random.chance(0.5) ? { restartMs: (crashes: number) => 200 * crashes } : {};
  return {
    ...base,
    behaviour: {
      ...base.behaviour,
      ...hurried,
      podMs: () => [random.chance(0.5) ? 0 : random.int(1, 5000), random.int(0, 1500)],
      fetchFailure: () => (faults.chaos && random.chance(0.15) ? 'The model could not be fetched' : undefined),
      room: () => faults.room,
      onKilled,
    },
  };
}

function failure(reason: Reason): Failure {
  return { kind: 'retry', reason, message: `The simulation made it fail: ${reason}` };
}

/** Makes the documents of a world. `good`: one that can come true. */
export function createDocuments(random: Random, pods: boolean, ahead: Ahead): Scene['documentOf'] {
  return (good = false) => {
    const document = documentOf(random, pods, good);
    const { lifecycle } = document;
    // A slot that never rests cannot be loaded ahead of requests.
    if (document.load === 'always' && lifecycle?.idleTimeout === 'never') return document;
    return { ...document, lifecycle: { ...lifecycle, ...ahead.lifecycleOf(good) } };
  };
}

function documentOf(random: Random, pods: boolean, good: boolean): SlotDocument {
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
  // A workload that was scaled to zero from outside stays so where drift is only reported.
  const drift = good ? ({ drift: 'repair' } as const) : {};
  return { ...document, replicas: random.pick(good ? [1, 1, 2, 3] : [0, 1, 1, 2, 3]), lifecycle: { ...lifecycle, startTimeout, ...drift } };
}
