/**
 * Finds the pods of each Deployment, and caches, so that observing thousands of workloads is cheap. Facts of unchanged
 * objects are the same objects.
 */
import type { KubeObject } from '../client/ports.ts';
import { parseOnce } from '../client/object-copy.ts';
import type { ObservedWorkload } from '../../reconciler/ports.ts';
import { WorkloadId } from '../../schema/words/names.ts';
import { LABELS } from '../../schema/pod/kube-fields.ts';
import {
  hasEnded,
  instanceOf,
  isTerminating,
  parseDeployment,
  parsePod,
  parseTime,
  type DeploymentFacts,
  type PodFacts,
} from './decide/pod-facts.ts';
import { revisionedName, slotObjectName } from './decide/object-names.ts';
import { observeOrphanedPods, observeWorkload, type KubeRecord } from './decide/workload-phase.ts';
import type { FetchProgress } from './decide/waiting-reason.ts';
import type { PodWarnings } from './decide/pod-warnings.ts';
import type { KubeReflectors } from './workload-reflectors.ts';

type Objects = ReadonlyMap<string, KubeObject>;
type PodsByOwner = ReadonlyMap<WorkloadId, readonly PodFacts[]>;

export interface KubeSnapshot extends Readonly<Record<keyof KubeReflectors, Objects>> {
  readonly warnings: PodWarnings;
  readonly fetched?: FetchProgress;
  readonly isPartial?: boolean;
}

export type KubeObserver = ReturnType<typeof createKubeObserver>;

/** The first four inputs are the record. */
interface Entry {
  readonly inputs: readonly unknown[];
  readonly record: KubeRecord;
  readonly observed: ObservedWorkload;
}

interface View {
  readonly inputs: readonly unknown[];
  readonly workloads: readonly ObservedWorkload[];
  readonly pods: PodsByOwner;
}

const MOST_REMEMBERED = 1000;

export function createKubeObserver() {
  const parsePodOnce = parseOnce(parsePod);
  const parseDeploymentOnce = parseOnce(parseDeployment);
  const owners = createPodOwners();
  const records = new WeakMap<object, KubeRecord>();
  let entries: ReadonlyMap<WorkloadId, Entry> = new Map();
  let last: View | undefined;

  const view = (snapshot: KubeSnapshot): View => {
    const { deployments, services, configMaps, pods, warnings, fetched, isPartial = false } = snapshot;
    // Compared one by one, since the maps stay the same while their content changes.
    const inputs = [warnings, fetched, isPartial, ...[deployments, services, configMaps, pods].flatMap((each) => [...each.values()])];
    if (last !== undefined && isSameList(last.inputs, inputs)) return last;
    const present = [...deployments.values()].flatMap((object) => parseDeploymentOnce(object) ?? []);
    const parsed = [...pods.values()].flatMap((object) => parsePodOnce(object) ?? []);
    const byOwner = owners.group(parsed, present);
    const next = new Map<WorkloadId, Entry>();
    for (const facts of present) {
      const entry = updateEntry(entries.get(facts.id), facts, byOwner.get(facts.id) ?? [], snapshot);
      records.set(entry.record, entry.record);
      next.set(facts.id, entry);
    }
    entries = next;
    const orphaned = [...byOwner].flatMap(([id, own]) => (next.has(id) ? [] : (observeOrphanedPods(id, own) ?? [])));
    last = { inputs, workloads: [...[...next.values()].map(({ observed }) => observed), ...orphaned], pods: byOwner };
    return last;
  };

  return {
    observe: (snapshot: KubeSnapshot): readonly ObservedWorkload[] => view(snapshot).workloads,
    /** Newest first, also while the workload is being stopped. */
    podsOf: (snapshot: KubeSnapshot, id: WorkloadId): readonly PodFacts[] => view(snapshot).pods.get(id) ?? [],
    pods: (snapshot: KubeSnapshot): readonly PodFacts[] => [...view(snapshot).pods.values()].flat(),
    recordOf({ record }: ObservedWorkload): KubeRecord | undefined {
      return typeof record === 'object' && record !== null ? records.get(record) : undefined;
    },
  };
}

function updateEntry(before: Entry | undefined, facts: DeploymentFacts, pods: readonly PodFacts[], snapshot: KubeSnapshot): Entry {
  const { warnings, fetched, isPartial = false } = snapshot;
  const service = snapshot.services.get(slotObjectName(facts.slot));
  const configMap = snapshot.configMaps.get(revisionedName(facts));
  const own = [facts, service, configMap, isPartial];
  const inputs = [...own, ...pods.flatMap((pod) => [pod, warnings?.get(pod.metadata.uid), fetched?.get(pod.metadata.uid)])];
  if (before !== undefined && isSameList(before.inputs, inputs)) return before;
  const isSameRecord = before !== undefined && isSameList(before.inputs.slice(0, own.length), own);
  const record = isSameRecord ? before.record : { deployment: facts, service, configMap, isPartial };
  const previous = before?.observed.waitingReason ?? before?.observed.missing;
  return { inputs, record, observed: observeWorkload(record, pods, { previous, warnings, fetched }) };
}

const isSameList = (left: readonly unknown[], right: readonly unknown[]): boolean =>
  left.length === right.length && left.every((each, index) => each === right[index]);

/** Pods do not name the uid: a Deployment of the same name must not take over pods that are still terminating. */
function createPodOwners() {
  /** Deployments by uid of the pod, as long as they exist. */
  let known = new Map<string, WorkloadId>();
  /** The last ones by name and revision, for pods that were never seen together with their Deployment. */
  const lastOwners = new Map<string, WorkloadId>();

  const ownerOf = (pod: PodFacts, deployments: ReadonlyMap<string, DeploymentFacts>): WorkloadId => {
    const key = ownerKey(instanceOf(pod), pod.metadata.labels[LABELS.revision] ?? '');
    const deployment = deployments.get(key);
    if (deployment !== undefined && !isTerminating(pod)) return deployment.id;
    const before = known.get(pod.metadata.uid);
    if (before !== undefined) return before;
    if (deployment !== undefined && (parseTime(pod.metadata.creationTimestamp) ?? 0) >= deployment.createdAt) return deployment.id;
    // Pods of unknown Deployments with the same name and revision count as one workload.
    return (deployment === undefined ? lastOwners.get(key) : undefined) ?? WorkloadId.parse(`gone:${key}`);
  };

  return {
    group(pods: readonly PodFacts[], deployments: readonly DeploymentFacts[]): PodsByOwner {
      const byKey = new Map(deployments.map((each) => [ownerKey(each.name, each.revision), each]));
      for (const [key, { id }] of byKey) lastOwners.set(key, id);
      for (const key of lastOwners.keys()) {
        if (lastOwners.size <= byKey.size + MOST_REMEMBERED) break;
        lastOwners.delete(key);
      }
      const present = pods.filter((pod) => !hasEnded(pod));
      const groups = Map.groupBy(present, (pod) => ownerOf(pod, byKey));
      known = new Map([...groups].flatMap(([id, own]) => own.map(({ metadata }) => [metadata.uid, id])));
      for (const own of groups.values()) if (own.length > 1) own.sort(newestFirst);
      return groups;
    },
  };
}

const ownerKey = (name: string, revision: string): string => `${name}:${revision}`;

const newestFirst = ({ metadata: a }: PodFacts, { metadata: b }: PodFacts): number => {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp ? 1 : -1;
  return a.name < b.name ? -1 : 1;
};
