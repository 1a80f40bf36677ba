/**
 * Answers the question: what does the reconciler observe of a workload, given its objects? Pure. The other direction is `kube-objects.ts`; which objects
 * belong together is decided in `../kube-observer.ts`.
 *
 *     Deployment  its pods                   observed as
 *     present     any                        one workload, its phase judged by `kube-phase.ts`
 *     gone        some still there           one workload with phase `stopping`, under the Deployment's id
 *     gone        all failed or evicted      nothing: no process is left
 */
import type { KubeObject } from '../../client/ports.ts';
import type { ObservedWorkload } from '../../../reconciler/ports.ts';
import type { WorkloadId } from '../../../schema/words/names.ts';
import { instanceOf, isOver, parseIdentity, templatePort, type DeploymentFacts, type PodFacts } from './pod-facts.ts';
import { derivePhase } from './pod-phase.ts';
import { podSelector } from './object-names.ts';
import type { WaitingHints } from './waiting-reason.ts';

/** The objects of a workload beside its pods; drift is looked for in them. */
export interface KubeRecord {
  readonly deployment: DeploymentFacts;
  readonly service: KubeObject | undefined;
  readonly configMap: KubeObject | undefined;
  /** Service and ConfigMap are not known, because this replica does not lead. */
  readonly isPartial: boolean;
}

/** Drift is found in the objects themselves, by `kube-drift.ts`. */
const UNKNOWN_CONTAINER = { imageId: undefined, argv: undefined, env: undefined, mounts: undefined, devices: undefined } as const;

/** `pods`: the newest first. */
export function observeWorkload(record: KubeRecord, pods: readonly PodFacts[], hints: WaitingHints): ObservedWorkload {
  const { deployment } = record;
  const { id, name, slot, revision, generation } = deployment;
  const port = templatePort(deployment);
  const container = { ...UNKNOWN_CONTAINER, port: port === undefined ? undefined : { host: port, container: port } };
  const phase = derivePhase(deployment, pods, hints);
  const replicas = phase.replicas === undefined ? {} : { replicas: { ...phase.replicas, selector: podSelector(deployment) } };
  return { id, name, slot, revision, generation, ...phase, ...replicas, container, record };
}

/** Pods whose Deployment is gone. Undefined if nothing of them runs. */
export function observeOrphanedPods(id: WorkloadId, pods: readonly PodFacts[]): ObservedWorkload | undefined {
  const [newest] = pods;
  const identity = parseIdentity(newest?.metadata.labels);
  if (newest === undefined || identity === undefined || pods.every(isOver)) return undefined;
  return {
    ...identity,
    id,
    name: instanceOf(newest),
    generation: 0,
    phase: 'stopping',
    startedAt: undefined,
    endpoints: [],
    container: { ...UNKNOWN_CONTAINER, port: undefined },
    replicas: { present: pods.length, ready: 0 },
  };
}
