/** How a world can be configured. */
import type { RequestHistory } from '../../../src/schema/status/request-history.ts';
import type { RecordedFailures } from '../../../src/schema/status/slot-status.ts';
import type { Endpoint, Provider } from '../../../src/providers/provider.ts';
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import type { Checks, Settlement } from '../../../src/evaluation/decide/rollout-state.ts';
import type { Clock, ImageReference, ReadAhead, RuntimeTraits } from '../../../src/reconciler/ports.ts';
import type { HostFacts } from '../../../src/schema/status/hardware.ts';
import type { InMemoryClusterBehaviour } from '../in-memory/in-memory-cluster.ts';
import type { Disturb } from './faults/disturbance.ts';
import type { MachineOptions } from './machine/world-machine.ts';
import type { Evaluation } from '../../../src/reconciler/decide/facts/actions.ts';
import type { Failure } from '../../../src/schema/words/failure.ts';
import type { WorldClock } from './world-clock.ts';

export interface WorldOptions {
  readonly traits?: Partial<RuntimeTraits>;
  /** Makes the world a cluster, in which workloads have pods, with this number of controllers and gateways; the first one leads. Default: no cluster, one controller. */
  readonly replicas?: number;
  readonly behaviour?: InMemoryClusterBehaviour;
  /** Makes the world a host with the real adapters on a machine in memory. Default: a runtime and a source in memory. */
  readonly machine?: Omit<MachineOptions, 'clock' | 'onEnded'> & { readonly onKilled: (id: WorkloadId) => void };
  /** Milliseconds until a started workload passes its probe. Default: 50. */
  readonly readyMs?: (model: string) => number;
  /** Whether the server of a workload answers at all; one that does not takes requests and stays silent, as a stopped process does. Default: true. */
  readonly answers?: (port: number, endpoint: Endpoint) => boolean;
  /** Whether every server answers `GET`, takes all other requests and computes nothing, as after a deadlock. Default: false. */
  readonly hangs?: () => boolean;
  /** Whether a server answers a request of a probe with an error; `/v1/completions` asks its model. Default: false. */
  readonly errs?: (endpoint: Endpoint, path: string) => boolean;
  /** Whether the model at this path answers nonsense; asked once for each check of readiness. Default: no model does, and readiness is not checked. */
  readonly nonsense?: (model: string, endpoint: Endpoint) => boolean;
  readonly modelPullMs?: () => number;
  readonly modelPullFailure?: () => Failure | undefined;
  readonly losesWake?: () => boolean;
  readonly host?: HostFacts;
  /** What reads files of models ahead. Default: nothing. */
  readonly readAhead?: ReadAhead;
  /** What a new controller reads of the statuses of earlier ones. Default: what they reported last. */
  readonly recorded?: () => ReadonlyMap<SlotName, RecordedFailures>;
  /** Replaces functions of the provider. */
  readonly provider?: Partial<Provider>;
  /** Whether a server sleeps, and takes no requests. Default: none does. */
  readonly isAsleep?: (id: WorkloadId, bornAt: number) => boolean;
  /** Cases that judge new models, and what a model answers. Default: no slot has cases. */
  readonly rollouts?: {
    readonly checks: () => Checks;
    readonly evaluation: Evaluation;
    readonly settled: (settlement: Settlement) => void;
    /** Whether the server fails a request at its end. Default: none does. */
    readonly fails?: (model: string) => boolean;
  };
  /** What goes wrong with calls of ports. Default: nothing. */
  readonly disturb?: Disturb;
  /** What was learned of requests before the world began. Default: nothing. */
  readonly histories?: ReadonlyMap<SlotName, RequestHistory>;
  readonly env?: Readonly<Record<string, string>>;
  readonly decide?: NonNullable<LoopDeps['decide']>;
  /** How long a pass pauses before its next part, in milliseconds; asked for each part but the first. Default: passes do not pause. */
  readonly pauseMs?: () => number;
  /** Replaces the clock of the controllers; the simulation uses this to prove that it would notice one that measures with the wall clock. */
  readonly clockOf?: (clock: WorldClock) => Clock;
}

/** For the backend of a GPU that `simulate-scene.ts` gives some machines. */
export const GPU_IMAGE: ImageReference = { reference: 'localhost/svc-toolbox-gguf-gpu:v1', imageId: `sha256:${'2'.repeat(64)}` };

export const IMAGE: ImageReference = { reference: 'localhost/svc-toolbox-gguf-cpu:v1', imageId: `sha256:${'1'.repeat(64)}` };
