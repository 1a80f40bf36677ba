/**
 * Objects of a cluster as the reconciler's facts. Pure, but for what it remembers: facts of objects that did not change are not made anew, so that looking
 * at thousands of workloads costs little, and the same facts are the same objects. The way there is `kube-objects.ts`.
 */
import type { KubeObject } from '../../client/ports.ts';
import type { ObservedWorkload } from '../../../reconciler/ports.ts';
import { Revision, SlotName, WorkloadId } from '../../../schema/names.ts';
import { LABELS } from '../../../schema/object-labels.ts';
import { hasEnded, instanceOf, instant, isOver, isTerminating, readDeployment, readPod, templatePort } from './kube-facts.ts';
import type { DeploymentFacts, PodFacts } from './kube-facts.ts';
import { revisionedName, serviceName } from './kube-names.ts';
import { doingOf } from './kube-phase.ts';
import type { PodWarning, PodWarnings } from './kube-pod-warnings.ts';

type Objects = ReadonlyMap<string, KubeObject>;

/** The four kinds, by name, and what Events say of pods. */
export interface KubeSight {
  readonly deployments: Objects;
  readonly services: Objects;
  readonly configMaps: Objects;
  readonly pods: Objects;
  readonly warnings: PodWarnings;
}

/** What stands for a workload in the cluster, beside its pods; what drift is looked for in. */
export interface KubeRecord {
  readonly deployment: DeploymentFacts;
  readonly service: KubeObject | undefined;
  readonly configMap: KubeObject | undefined;
}

export interface KubeObserver {
  /** The same list as long as nothing changed. */
  observe(sight: KubeSight): readonly ObservedWorkload[];
  /** Pods of a workload, newest first; of one that is being stopped too. */
  podsOf(sight: KubeSight, id: WorkloadId): readonly PodFacts[];
  pods(sight: KubeSight): Iterable<PodFacts>;
  /** Of the facts' own `record`; undefined for anybody else's. */
  recordOf(observed: ObservedWorkload): KubeRecord | undefined;
}

interface Entry {
  readonly serviceName: string;
  readonly configMapName: string;
  readonly record: KubeRecord;
  readonly pods: readonly PodFacts[];
  readonly warnings: readonly (PodWarning | undefined)[];
  readonly observed: ObservedWorkload;
}

export function createKubeObserver(): KubeObserver {
  const readPods = remembering(readPod);
  const readDeployments = remembering(readDeployment);
  /** Uid of a pod → uid of its Deployment, learnt while there is one: pods outlive it, and do not name it. */
  let owners = new Map<string, WorkloadId>();
  /** Name and revision → the last Deployment that had them, for pods that nobody saw before it went. */
  const lastOwners = new Map<string, WorkloadId>();
  let entries = new Map<WorkloadId, Entry>();
  const records = new WeakMap<object, KubeRecord>();
  let last: { readonly seen: Seen; readonly workloads: readonly ObservedWorkload[]; readonly pods: PodGroups } | undefined;

  const look = (sight: KubeSight): NonNullable<typeof last> => {
    if (last !== undefined && isSameSight(last.seen, sight)) return last;
    const byName = new Map<string, DeploymentFacts>();
    for (const object of sight.deployments.values()) {
      const facts = readDeployments(object);
      if (facts === undefined) continue;
      byName.set(facts.name, facts);
      if (!entries.has(facts.id)) lastOwners.set(keyOf(facts.name, facts.revision), facts.id);
    }
    forgetOldest(lastOwners, byName.size + REMEMBERED);
    const groups = groupPods(sight.pods, readPods, (pod) => ownerOf(pod, byName, owners, lastOwners));
    const nextOwners = new Map<string, WorkloadId>();
    for (const [id, own] of groups.owned) for (const pod of own) nextOwners.set(pod.metadata.uid, id);
    owners = nextOwners;
    const next = new Map<WorkloadId, Entry>();
    for (const facts of byName.values()) {
      const before = entries.get(facts.id);
      const entry = entryOf(before, facts, groups.owned.get(facts.id) ?? [], sight);
      if (entry.record !== before?.record) records.set(entry.record, entry.record);
      next.set(facts.id, entry);
    }
    entries = next;
    const ghosts = [...groups.owned].flatMap(([id, own]) => (next.has(id) ? [] : (ghostOf(id, own) ?? [])));
    last = { seen: seenIn(sight), workloads: [...[...next.values()].map(({ observed }) => observed), ...ghosts], pods: groups };
    return last;
  };

  return {
    observe: (sight) => look(sight).workloads,
    podsOf: (sight, id) => look(sight).pods.owned.get(id) ?? [],
    pods: (sight) => [...look(sight).pods.owned.values()].flat(),
    recordOf({ record }) {
      return typeof record === 'object' && record !== null ? records.get(record) : undefined;
    },
  };
}

interface PodGroups {
  readonly owned: ReadonlyMap<WorkloadId, readonly PodFacts[]>;
}

/** Whose pod is whose. A Deployment made anew under its old name takes over none of the pods that still end. */
function groupPods(pods: Objects, read: (object: KubeObject) => PodFacts | undefined, idOf: (pod: PodFacts) => WorkloadId): PodGroups {
  const owned = new Map<WorkloadId, PodFacts[]>();
  for (const object of pods.values()) {
    const pod = read(object);
    if (pod === undefined || hasEnded(pod)) continue;
    const id = idOf(pod);
    const list = owned.get(id);
    if (list === undefined) owned.set(id, [pod]);
    else list.push(pod);
  }
  for (const list of owned.values()) if (list.length > 1) list.sort(newestFirst);
  return { owned };
}

function ownerOf(
  pod: PodFacts,
  deployments: ReadonlyMap<string, DeploymentFacts>,
  owners: ReadonlyMap<string, WorkloadId>,
  lastOwners: ReadonlyMap<string, WorkloadId>,
): WorkloadId {
  const deployment = deployments.get(instanceOf(pod));
  const fits = deployment !== undefined && pod.metadata.labels[LABELS.revision] === deployment.revision;
  if (fits && !isTerminating(pod)) return deployment.id;
  const known = owners.get(pod.metadata.uid);
  if (known !== undefined) return known;
  if (fits && (instant(pod.metadata.creationTimestamp) ?? 0) >= deployment.createdAt) return deployment.id;
  const key = keyOf(instanceOf(pod), pod.metadata.labels[LABELS.revision] ?? '');
  // Where nothing says which Deployment it was, all that one name and revision left behind goes as one.
  return (fits ? undefined : lastOwners.get(key)) ?? WorkloadId.parse(`gone:${key}`);
}

const keyOf = (name: string, revision: string): string => `${name}:${revision}`;

/** Deployments that are gone; their pods are, too, soon after. */
const REMEMBERED = 1000;

function forgetOldest(names: Map<string, WorkloadId>, most: number): void {
  for (const name of names.keys()) {
    if (names.size <= most) return;
    names.delete(name);
  }
}

const newestFirst = (a: PodFacts, b: PodFacts): number => {
  if (a.metadata.creationTimestamp !== b.metadata.creationTimestamp)
    return a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
};

function entryOf(before: Entry | undefined, facts: DeploymentFacts, pods: readonly PodFacts[], sight: KubeSight): Entry {
  const names = before ?? { serviceName: serviceName(facts.slot), configMapName: revisionedName(facts) };
  const service = sight.services.get(names.serviceName);
  const configMap = sight.configMaps.get(names.configMapName);
  const known = before?.record;
  const sameRecord = known?.deployment === facts && known.service === service && known.configMap === configMap;
  const warnings = pods.map(({ metadata }) => sight.warnings?.get(metadata.uid));
  if (before !== undefined && sameRecord && isSameList(before.pods, pods) && isSameList(before.warnings, warnings)) return before;
  const record = sameRecord ? known : { deployment: facts, service, configMap };
  const port = templatePort(facts);
  const observed: ObservedWorkload = {
    id: facts.id,
    name: facts.name,
    slot: facts.slot,
    revision: facts.revision,
    generation: facts.generation,
    ...doingOf(facts, pods, before?.observed.waitingReason ?? before?.observed.missing, sight.warnings),
    container: { ...UNKNOWN_CONTAINER, port: port === undefined ? undefined : { host: port, container: port } },
    record,
  };
  return { serviceName: names.serviceName, configMapName: names.configMapName, record, pods, warnings, observed };
}

const isSameList = (left: readonly unknown[], right: readonly unknown[]): boolean =>
  left.length === right.length && left.every((each, index) => each === right[index]);

/** Drift is looked for in the objects themselves: see `kube-drift.ts`. */
const UNKNOWN_CONTAINER = { imageId: undefined, argv: undefined, env: undefined, mounts: undefined, devices: undefined } as const;

/** Pods whose Deployment is gone. */
function ghostOf(id: WorkloadId, pods: readonly PodFacts[]): ObservedWorkload | undefined {
  const [newest] = pods;
  const slot = SlotName.safeParse(newest?.metadata.labels[LABELS.slot]);
  const revision = Revision.safeParse(newest?.metadata.labels[LABELS.revision]);
  if (newest === undefined || !slot.success || !revision.success) return undefined;
  if (pods.every(isOver)) return undefined;
  return {
    id,
    name: instanceOf(newest),
    slot: slot.data,
    revision: revision.data,
    generation: 0,
    phase: 'stopping',
    startedAt: undefined,
    endpoints: [],
    container: { ...UNKNOWN_CONTAINER, port: undefined },
    replicas: { present: pods.length, ready: 0 },
  };
}

/** Every object in one order; compared one by one, since the maps are the same while what is in them changes. */
function* objectsIn(sight: KubeSight): Generator<KubeObject> {
  yield* sight.deployments.values();
  yield* sight.services.values();
  yield* sight.configMaps.values();
  yield* sight.pods.values();
}

interface Seen {
  readonly objects: readonly KubeObject[];
  readonly warnings: PodWarnings;
}

const seenIn = (sight: KubeSight): Seen => ({ objects: [...objectsIn(sight)], warnings: sight.warnings });

function isSameSight({ objects: seen, warnings }: Seen, sight: KubeSight): boolean {
  if (warnings !== sight.warnings) return false;
  if (seen.length !== sight.deployments.size + sight.services.size + sight.configMaps.size + sight.pods.size) return false;
  let index = 0;
  for (const object of objectsIn(sight)) {
    if (seen[index] !== object) return false;
    index += 1;
  }
  return true;
}

/** Reads each object once. */
function remembering<Facts>(read: (object: KubeObject) => Facts | undefined): (object: KubeObject) => Facts | undefined {
  const known = new WeakMap<KubeObject, { readonly facts: Facts | undefined }>();
  return (object) => {
    const before = known.get(object);
    if (before !== undefined) return before.facts;
    const facts = read(object);
    known.set(object, { facts });
    return facts;
  };
}
