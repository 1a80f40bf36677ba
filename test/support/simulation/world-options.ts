/** What a world can be told to be like. */
import type { Endpoint } from '../../../src/providers/provider.ts';
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { HostFacts, ImageReference, RuntimeTraits } from '../../../src/reconciler/ports.ts';
import type { InMemoryClusterBehaviour } from '../in-memory/in-memory-cluster.ts';
import type { Failure } from '../../../src/schema/failure.ts';

export interface WorldOptions {
  readonly traits?: Partial<RuntimeTraits>;
  /** Workloads have pods; how many controllers and gateways there are. The first one leads. Default: no cluster, and one controller. */
  readonly replicas?: number;
  readonly behaviour?: InMemoryClusterBehaviour;
  /** Until a started workload passes its probe. Default 50 ms. */
  readonly readyMs?: (model: string) => number;
  /** Whether a workload's server answers at all. Default: it does. */
  readonly answers?: (port: number, endpoint: Endpoint) => boolean;
  readonly modelPullMs?: () => number;
  readonly modelPullFailure?: () => Failure | undefined;
  readonly losesWake?: () => boolean;
  readonly host?: HostFacts;
  readonly env?: Readonly<Record<string, string>>;
  readonly decide?: NonNullable<LoopDeps['decide']>;
}

export const IMAGE: ImageReference = { reference: 'localhost/svc-toolbox-gguf-cpu:v1', imageId: `sha256:${'1'.repeat(64)}` };
