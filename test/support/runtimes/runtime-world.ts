/** What the contract suite needs from an adapter: the runtime under test, and ways to affect its workloads from outside. */
import type { ClusterWorkload, ObservedWorkload, Runtime, Workload } from '../../../src/reconciler/ports.ts';
import { ModelId, Revision, SlotName } from '../../../src/schema/words/names.ts';

export interface RuntimeWorld {
  readonly runtime: Runtime;
  /** Whether its workloads are real servers that answer on their endpoints and write logs. */
  readonly real: boolean;
  /** Another instance for the same workloads, as after a restart of the controller. */
  reopen(): Runtime;
  /** A workload whose server runs until it is ended; see `tinyWorkload()`. */
  workload(choice: WorkloadChoice): Workload;
  /** Makes the server exit with this code. */
  exit(workload: ObservedWorkload, code: number): Promise<void>;
  /** Kills the server from outside. */
  crash(workload: ObservedWorkload): Promise<void>;
  /** Removes the workload together with everything the runtime recorded about it. */
  vanish(workload: ObservedWorkload): Promise<void>;
  /** Changes the environment, in place or with another workload of the same name and labels; undefined if that is impossible. */
  readonly alter: ((workload: ObservedWorkload) => Promise<void>) | undefined;
  /** Occupies a port of the host; undefined if workloads do not use ports of the host. */
  readonly occupy: ((port: number) => Promise<() => Promise<void>>) | undefined;
  /** Changes the number of replicas without the runtime's knowledge; undefined if there are none. */
  readonly scale?: (workload: ObservedWorkload, replicas: number) => Promise<void>;
  /** What its pods were really created with, in the words of a workload: `argv`, `memoryLimitBytes` and all fields of `cluster` that a pod shows; undefined if there are no pods. */
  readonly shows?: (workload: ObservedWorkload) => Promise<unknown>;
  /** Limit for its slowest step; default: 15 s. */
  readonly patienceMs?: number;
  /** Ends everything that still runs. */
  dispose(): Promise<void>;
}

export interface WorkloadChoice {
  readonly port: number;
  readonly name?: string;
  readonly revision?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The slot of one test; several test files run at the same time against one podman. */
export const TEST_SLOT = SlotName.parse(`t${process.pid}`);

/** `tiny-server` on the port: the parts that every adapter's workload has. */
export function tinyWorkload(choice: WorkloadChoice, listen: { readonly host: string; readonly port: number }): Workload {
  return {
    name: choice.name ?? `svc-slot-${TEST_SLOT}`,
    slot: TEST_SLOT,
    revision: Revision.parse(choice.revision ?? '0123456789ab'),
    generation: 7,
    image: undefined,
    argv: ['tiny-server', '--host', listen.host, '--port', String(listen.port), ...(choice.args ?? [])],
    env: choice.env ?? { GREETING: 'a b=c "d"', EMPTY: '' },
    mounts: [],
    devices: [],
    port: { host: choice.port, container: listen.port },
    memoryLimitBytes: undefined,
  };
}

/** What a cluster needs in addition for `tiny-server`. */
export const TINY_CLUSTER: ClusterWorkload = {
  provider: 'gguf',
  backend: 'cpu',
  model: ModelId.parse('none'),
  replicas: 1,
  gpus: undefined,
  memoryBytes: 16 * 1024 * 1024,
  readyPath: '/',
  startTimeoutMs: 60_000,
  drainTimeoutMs: 0,
  nodeSelector: {},
  tolerations: [],
  storage: undefined,
  serviceAccountName: undefined,
};

export { freePort, occupyPort } from '../free-port.ts';

/** Polls until the result is defined. Throws an error that names `what` after `withinMs`. */
export async function eventually<T>(what: string, poll: () => Promise<T | undefined>, withinMs = 15_000): Promise<T> {
  const until = performance.now() + withinMs;
  for (;;) {
    const found = await poll().catch((error: unknown) => {
      if (performance.now() > until) throw error;
      return undefined;
    });
    if (found !== undefined) return found;
    if (performance.now() > until) throw new Error(`Timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
