/** How a world can be configured. */
import type { Endpoint } from '../../../src/providers/provider.ts';
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { HostFacts, ImageReference, RuntimeTraits } from '../../../src/reconciler/ports.ts';
import type { InMemoryClusterBehaviour } from '../in-memory/in-memory-cluster.ts';
import type { Disturb } from './faults/disturbance.ts';
import type { Failure } from '../../../src/schema/failure.ts';

export interface WorldOptions {
  readonly traits?: Partial<RuntimeTraits>;
  /** Makes the world a cluster, in which workloads have pods, with this number of controllers and gateways; the first one leads. Default: no cluster, one controller. */
  readonly replicas?: number;
  readonly behaviour?: InMemoryClusterBehaviour;
  /** Milliseconds until a started workload passes its probe. Default: 50. */
  readonly readyMs?: (model: string) => number;
  /** Whether the server of a workload answers at all. Default: true. */
  readonly answers?: (port: number, endpoint: Endpoint) => boolean;
  readonly modelPullMs?: () => number;
  readonly modelPullFailure?: () => Failure | undefined;
  readonly losesWake?: () => boolean;
  readonly host?: HostFacts;
  /** What goes wrong with calls of ports. Default: nothing. */
  readonly disturb?: Disturb;
  readonly env?: Readonly<Record<string, string>>;
  readonly decide?: NonNullable<LoopDeps['decide']>;
}

export const IMAGE: ImageReference = { reference: 'localhost/svc-toolbox-gguf-cpu:v1', imageId: `sha256:${'1'.repeat(64)}` };
