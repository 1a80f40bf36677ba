/**
 * Derives the reconciler's facts about a workload from its Deployment and its pods. Pure.
 *
 *     Deployment is being deleted               stopping
 *     a server runs in some pod                 running, and `missing` says why other replicas do not answer
 *     no server runs
 *       a model is being fetched                created, with `fetching`
 *       something keeps the pods from starting  created, with `waitingReason` (`waiting-reason.ts`)
 *       the server exited                       created, with `exit` (`kubelet-restarts.ts`)
 *     Deployment is gone
 *       some pods are still there               stopping, under the Deployment's id
 *       all pods failed or were evicted         not observed: no process is left
 *
 * Pods that are terminating or over (evicted, node shut down) count for none of the others.
 */
import type { KubeObject } from '../../client/ports.ts';
import type { ObservedWorkload, WaitingReason } from '../../../reconciler/ports.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import type { WorkloadId } from '../../../schema/words/names.ts';
import { crashReason, isCrashed, lastExit } from './kubelet-restarts.ts';
import { podSelector } from './object-names.ts';
import {
  instanceOf,
  isOver,
  isReady,
  isTerminating,
  parseIdentity,
  parseTime,
  serverPort,
  serverStatus,
  templatePort,
  type DeploymentFacts,
  type PodFacts,
} from './pod-facts.ts';
import { fetchingText, deriveWaitingReason, type WaitingHints } from './waiting-reason.ts';

export interface KubeRecord {
  readonly deployment: DeploymentFacts;
  readonly service: KubeObject | undefined;
  readonly configMap: KubeObject | undefined;
  /** This replica does not lead. */
  readonly isPartial: boolean;
}

/** `template-drift.ts` finds drift in the objects themselves. */
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

export type PhaseFacts = Pick<
  ObservedWorkload,
  'phase' | 'startedAt' | 'endpoints' | 'exit' | 'fetching' | 'waitingReason' | 'missing' | 'replicas'
>;

/** The kubelet alternates between this reason and its back-off if a server exits immediately. */
const START_FAILED = 'RunContainerError';

/** `pods`: the newest first. */
export function derivePhase(deployment: DeploymentFacts, pods: readonly PodFacts[], hints: WaitingHints = {}): PhaseFacts {
  const living = pods.filter((pod) => !isTerminating(pod) && !isOver(pod));
  const endpoints = deployment.deleting ? [] : living.flatMap(endpointOf).toSorted(byHost);
  const starts = living.flatMap((pod) => parseTime(serverStatus(pod)?.state?.running?.startedAt) ?? []);
  const startedAt = starts.length === 0 ? undefined : Math.min(...starts);
  const facts = { startedAt, endpoints, replicas: { present: living.length, ready: endpoints.length } };
  if (deployment.deleting) return { ...facts, phase: 'stopping' };
  const exit = lastExit(living);
  const crash = defined({ exit });
  if (starts.length > 0) return { ...facts, ...crash, phase: 'running', ...defined({ missing: deriveMissing(deployment, pods, hints) }) };
  // After a crash only the crashed pod's own reason matters, and not that the kubelet could not start the server.
  const waitingReason = deriveWaitingReason(deployment, exit === undefined ? pods : living.slice(0, 1), hints);
  if (waitingReason !== undefined && (exit === undefined || waitingReason.reason !== START_FAILED))
    return { ...facts, ...crash, phase: 'created', waitingReason };
  return { ...facts, ...crash, phase: 'created', ...defined({ fetching: fetchingText(living, hints.fetched) }) };
}

/** Undefined if the replicas are only slow to start. */
function deriveMissing(deployment: DeploymentFacts, pods: readonly PodFacts[], hints: WaitingHints): WaitingReason | undefined {
  const unready = pods.filter((pod) => !isTerminating(pod) && !isReady(pod));
  const crashed = unready.find(isCrashed);
  return (crashed === undefined ? undefined : crashReason(crashed)) ?? deriveWaitingReason(deployment, unready, hints);
}

function endpointOf(pod: PodFacts): { readonly host: string; readonly port: number }[] {
  const host = pod.status.podIP;
  const port = serverPort(pod);
  return isReady(pod) && host !== undefined && port !== undefined ? [{ host, port }] : [];
}

const byHost = (a: { readonly host: string }, b: { readonly host: string }): number => (a.host < b.host ? -1 : Number(a.host > b.host));
