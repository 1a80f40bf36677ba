/** What an observer sees of a workload with pods, and how that differs from what was applied: the pure half of the in-memory cluster. */
import type { InPlaceRepair, ObservedWorkload, Workload, WorkloadExit, WaitingReason } from '../../../src/reconciler/ports.ts';
import { isSameValue } from '../../../src/schema/words/same-value.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';

type Endpoint = ObservedWorkload['endpoints'][number];

export interface Pod {
  readonly endpoint: Endpoint;
  stage: 'pending' | 'fetching' | 'loading' | 'ready' | 'crashed';
  startedAt: number | undefined;
  /** The same moment on the clock that never jumps. */
  begunAt: number;
  /** Why its last fetch failed. */
  failure: string | undefined;
  crashes: number;
  /** How its server ended last. */
  exit: WorkloadExit | undefined;
}

export interface Deployed {
  readonly id: WorkloadId;
  /** As its pods were created, with the number of replicas that was applied last. */
  workload: Workload;
  /** As it is now, including changes from outside. */
  replicas: number;
  container: { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> };
  pods: Pod[];
  /** It is being removed, and will be gone by then at the latest. Undefined: it is not being removed. */
  endsAt: number | undefined;
  /** As observers see it; undefined after a change, until it is computed again. */
  facts: ObservedWorkload | undefined;
}

interface MemoryRecord {
  readonly replicas: number;
  readonly applied: Workload;
}

export function podAt(endpoint: Endpoint): Pod {
  return { endpoint, stage: 'pending', startedAt: undefined, begunAt: 0, failure: undefined, crashes: 0, exit: undefined };
}

/** An address that no other pod has or gets. */
export function addressesOf(serial: number, { port }: Workload): Endpoint {
  return { host: `10.${(serial >> 16) & 255}.${(serial >> 8) & 255}.${serial & 255}`, port: port.container };
}

export function factsOf(each: Deployed): ObservedWorkload {
  const { id, workload, pods, endsAt } = each;
  if (endsAt !== undefined) return leaving(each);
  const { name, slot, revision, generation, mounts, devices, port } = workload;
  const running = pods.filter(({ stage }) => stage === 'loading' || stage === 'ready');
  const ready = pods.filter(({ stage }) => stage === 'ready');
  const phase = running.length > 0 ? 'running' : 'created';
  const exit = lastExit(pods);
  const found = exit === undefined ? waitingReasonOf(pods) : undefined;
  const waitingReason = phase === 'created' ? found : undefined;
  const fetching =
    phase === 'created' && waitingReason === undefined && exit === undefined && pods.some(({ stage }) => stage === 'fetching');
  const record: MemoryRecord = { replicas: each.replicas, applied: workload };
  return {
    id,
    name,
    slot,
    revision,
    generation,
    phase,
    startedAt: running[0]?.startedAt,
    endpoints: ready.map(({ endpoint }) => endpoint),
    container: { imageId: undefined, argv: each.container.argv, env: each.container.env, mounts, devices, port },
    replicas: { present: pods.length, ready: ready.length },
    record,
    ...(exit === undefined ? {} : { exit }),
    ...(waitingReason === undefined ? {} : { waitingReason }),
    ...(found === undefined || waitingReason !== undefined ? {} : { missing: found }),
    ...(fetching ? { fetching: `Its pods fetch the model "${workload.cluster?.model ?? ''}"` } : {}),
  };
}

/** Its Deployment is gone, and what its pods say of it is its name, slot and revision. */
function leaving({ id, workload: { name, slot, revision }, pods }: Deployed): ObservedWorkload {
  const container = { imageId: undefined, argv: undefined, env: undefined, mounts: undefined, devices: undefined, port: undefined };
  const replicas = { present: pods.length, ready: 0 };
  return { id, name, slot, revision, generation: 0, phase: 'stopping', startedAt: undefined, endpoints: [], container, replicas };
}

/** The exit of the newest pod; with several pods, only while none is ready. */
function lastExit(pods: readonly Pod[]): WorkloadExit | undefined {
  const newest = pods.at(-1);
  if (pods.length <= 1) return newest?.exit;
  return pods.some(({ stage }) => stage === 'ready') ? undefined : newest?.exit;
}

/** Milliseconds that a kubelet waits before it restarts a server that crashed so often. */
export function restartDelayMs(crashes: number): number {
  return crashes <= 1 ? RESTART_MS : Math.min(10_000 * 2 ** (crashes - 2), 300_000);
}

/** A kubelet looks at its containers about once a second. */
const RESTART_MS = 500;

function waitingReasonOf(pods: readonly Pod[]): WaitingReason | undefined {
  if (pods.some(({ stage }) => stage === 'pending')) {
    return { kind: 'placement', reason: 'Unschedulable', message: 'Add a node or free one: no node has room for its pods' };
  }
  const failure = pods.find((pod) => pod.failure !== undefined)?.failure;
  return failure === undefined ? undefined : { kind: 'model', reason: 'ModelPullFailed', message: failure };
}

export const IN_PLACE: InPlaceRepair = {
  findAltered(wanted, observed) {
    const { container } = observed;
    const { replicas, applied } = recordOf(observed) ?? {};
    const asked = applied?.cluster?.replicas ?? 1;
    return [
      ...(replicas === asked ? [] : [`replicas ${replicas} instead of ${asked}`]),
      ...(isSameValue(container.argv, wanted.argv) ? [] : ['argv with other values']),
      ...(isSameValue(container.env, wanted.env) ? [] : ['env with other values']),
    ];
  },
  // Nothing else can be changed in place: a pod keeps what it was created with.
  isOutdated: (wanted, observed) => wanted.cluster?.replicas !== recordOf(observed)?.applied.cluster?.replicas,
};

function recordOf({ record }: ObservedWorkload): MemoryRecord | undefined {
  return isRecord(record) ? record : undefined;
}

function isRecord(record: unknown): record is MemoryRecord {
  return typeof record === 'object' && record !== null && 'replicas' in record && 'applied' in record;
}

export function isUp({ stage }: Pod): boolean {
  return stage === 'loading' || stage === 'ready';
}
