/** Lists the objects of the slots of a namespace, and finds missing and surplus ones. Uses labels and owners only, not what the service reports. */
import { kubectl } from '../require/require-cluster.ts';
import { pause } from '../service.ts';

interface Listed {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[];
  };
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly { readonly restartCount: number; readonly state?: { readonly running?: object } }[];
  };
}

export interface PodOfSlot {
  readonly uid: string;
  readonly slot: string;
  readonly revision: string;
  readonly ready: boolean;
  readonly restarts: number;
}

export interface SlotObjects {
  readonly all: readonly Listed[];
  /** Without terminating pods. */
  readonly pods: readonly PodOfSlot[];
}

const SLOT = 'inference.svc.dev/slot';
const REVISION = 'inference.svc.dev/revision';
const KINDS = 'slotspecs,deployments,replicasets,services,configmaps,persistentvolumeclaims,pods';

export async function listSlotObjects(namespace: string): Promise<SlotObjects> {
  const text = await kubectl(['--namespace', namespace, 'get', KINDS, '--output', 'json']);
  const { items }: { readonly items: readonly Listed[] } = JSON.parse(text);
  const all = items.filter((each) => each.kind === 'SlotSpec' || (each.metadata.labels?.[SLOT] !== undefined && !hasEnded(each)));
  const pods = all.filter(({ kind, metadata }) => kind === 'Pod' && metadata.deletionTimestamp === undefined).map(podOf);
  return { all, pods };
}

/**
 * Returns one line for each fault. At rest each slot has exactly one Deployment with one ReplicaSet that has pods, one Service, one ConfigMap and the wanted
 * number of pods, all of one revision; a slot that wants 0 has no Deployment and no pod; and there are no objects of unknown slots.
 */
export function findFaults({ all }: SlotObjects, wanted: ReadonlyMap<string, number>): readonly string[] {
  const slots = new Map(all.filter(({ kind }) => kind === 'SlotSpec').map((each) => [each.metadata.name, each]));
  const unexpected = [...slots.keys()].filter((name) => !wanted.has(name)).map((name) => `SlotSpec "${name}" is still there`);
  const orphans = all
    .filter(({ kind, metadata }) => kind !== 'SlotSpec' && !slots.has(metadata.labels?.[SLOT] ?? ''))
    .map(({ kind, metadata }) => `${kind} "${metadata.name}" belongs to no slot`);
  const perSlot = [...wanted].flatMap(([name, replicas]) => {
    const own = all.filter(({ kind, metadata }) => kind !== 'SlotSpec' && metadata.labels?.[SLOT] === name);
    return slots.has(name) ? faultsOf(name, own, replicas, slots.get(name)?.metadata.uid ?? '') : [`SlotSpec "${name}" is missing`];
  });
  return [...unexpected, ...orphans, ...perSlot];
}

function faultsOf(slot: string, own: readonly Listed[], replicas: number, uid: string): readonly string[] {
  const of = (kind: string): readonly Listed[] => own.filter((each) => each.kind === kind);
  const [deployment] = of('Deployment');
  const sets = of('ReplicaSet').filter(({ spec }) => spec?.replicas !== 0);
  const runs = replicas > 0 ? 1 : 0;
  const counts: readonly (readonly [string, number, number])[] = [
    ['Deployments', of('Deployment').length, runs],
    ['ReplicaSets', sets.length, runs],
    ['ConfigMaps', of('ConfigMap').length, runs],
    ['pods', of('Pod').length, replicas],
    // Created with the first workload, and kept for the slot's life.
    ['Services', Math.max(of('Service').length, 1), 1],
  ];
  const revision = deployment?.metadata.labels?.[REVISION];
  const mixed = own.filter(({ kind, metadata }) => kind === 'Pod' && metadata.labels?.[REVISION] !== revision);
  const foreign = own.filter(
    ({ kind, metadata }) =>
      ['Deployment', 'Service', 'ConfigMap'].includes(kind) && !(metadata.ownerReferences ?? []).some((owner) => owner.uid === uid),
  );
  return [
    ...counts.filter(([, found, right]) => found !== right).map(([what, found, right]) => `"${slot}" has ${found} ${what}, not ${right}`),
    ...mixed.map(({ metadata }) => `Pod "${metadata.name}" of "${slot}" has another revision`),
    ...foreign.map(({ kind, metadata }) => `${kind} "${metadata.name}" does not belong to the SlotSpec "${slot}"`),
  ];
}

/** Waits until there are no faults, and returns the objects. */
export async function untilAtRest(namespace: string, wanted: ReadonlyMap<string, number>, timeoutMs = 60_000): Promise<SlotObjects> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const objects = await listSlotObjects(namespace);
    const faults = findFaults(objects, wanted);
    if (faults.length === 0 && objects.pods.every(({ ready }) => ready)) return objects;
    if (Date.now() > deadline) throw new Error(`The namespace did not come to rest: ${faults.join('; ') || 'a pod is not ready'}`);
    await pause(200);
  }
}

/** Whether a terminating pod has no running container. A kubelet may take a minute to delete it. */
function hasEnded({ kind, metadata, status }: Listed): boolean {
  const containers = status?.containerStatuses ?? [];
  const isIdle = containers.length > 0 && containers.every(({ state }) => state?.running === undefined);
  return kind === 'Pod' && metadata.deletionTimestamp !== undefined && isIdle;
}

function podOf({ metadata, status }: Listed): PodOfSlot {
  return {
    uid: metadata.uid,
    slot: metadata.labels?.[SLOT] ?? '',
    revision: metadata.labels?.[REVISION] ?? '',
    ready: (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    restarts: (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
  };
}
