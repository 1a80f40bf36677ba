/**
 * Answers the question: which phase is a workload in, judged by its Deployment and its pods? Pure.
 *
 *     Deployment is being deleted               stopping
 *     a server runs in some pod                 running, and `missing` says why other replicas do not answer
 *     no server runs
 *       a model is being fetched                created, with `fetching`
 *       something keeps the pods from starting  created, with `waitingReason` (`kube-waiting-reason.ts`)
 *       the server exited                       created, with `exit`; kubelet restarts it
 *
 * Pods that are terminating or over (evicted, node shut down) count for none of these.
 */
import type { ObservedWorkload, WorkloadExit, WaitingReason } from '../../../reconciler/ports.ts';
import {
  isOver,
  isReady,
  isTerminating,
  parseTime,
  serverPort,
  serverStatus,
  type ContainerExit,
  type DeploymentFacts,
  type PodFacts,
} from './pod-facts.ts';
import { fetchingText, deriveWaitingReason, type WaitingHints } from './waiting-reason.ts';

export type PhaseFacts = Pick<
  ObservedWorkload,
  'phase' | 'startedAt' | 'endpoints' | 'exit' | 'fetching' | 'waitingReason' | 'missing' | 'replicas'
>;

/** `pods`: the newest first. */
export function derivePhase(deployment: DeploymentFacts, pods: readonly PodFacts[], hints: WaitingHints = {}): PhaseFacts {
  const living = pods.filter((pod) => !isTerminating(pod) && !isOver(pod));
  const endpoints = deployment.deleting ? [] : living.flatMap(endpointOf).toSorted(byHost);
  const starts = living.flatMap((pod) => parseTime(serverStatus(pod)?.state?.running?.startedAt) ?? []);
  const facts = {
    startedAt: starts.length === 0 ? undefined : Math.min(...starts),
    endpoints,
    replicas: { present: living.length, ready: endpoints.length },
  };
  if (deployment.deleting) return { ...facts, phase: 'stopping' };
  const exit = lastExit(living);
  const crash = exit === undefined ? {} : { exit };
  if (starts.length > 0) {
    const missing = deriveMissing(deployment, pods, hints);
    return { ...facts, ...crash, phase: 'running', ...(missing === undefined ? {} : { missing }) };
  }
  // After a crash only the crashed pod's own reason matters, and not that kubelet could not start the server.
  const reason = deriveWaitingReason(deployment, exit === undefined ? pods : living.slice(0, 1), hints);
  if (reason !== undefined && (exit === undefined || reason.reason !== START_FAILED)) {
    return { ...facts, ...crash, phase: 'created', waitingReason: reason };
  }
  const fetching = fetchingText(living, hints.fetched);
  return { ...facts, ...crash, phase: 'created', ...(fetching === undefined ? {} : { fetching }) };
}

/** Returns why some replicas do not answer while others run. Undefined if they are only slow to start. */
function deriveMissing(deployment: DeploymentFacts, pods: readonly PodFacts[], hints: WaitingHints): WaitingReason | undefined {
  const unready = pods.filter((pod) => !isTerminating(pod) && !isReady(pod));
  const crashed = unready.find(isCrashed);
  return (crashed === undefined ? undefined : crashReason(crashed)) ?? deriveWaitingReason(deployment, unready, hints);
}

/** That the server of this pod has exited, and has not come back. Undefined otherwise. */
export function crashReason(pod: PodFacts): WaitingReason | undefined {
  const end = crashOf(pod);
  if (end === undefined) return undefined;
  const { code, outOfMemory, message = '' } = exitOf(pod, end);
  const why = message === '' ? '' : `: ${message}`;
  return {
    kind: 'other',
    reason: outOfMemory ? 'OutOfMemory' : 'Crashed',
    message: `A replica exited with code ${code ?? 'unknown'} and is being restarted${why}`,
  };
}

/** Kubelet alternates between this reason and its back-off if a server exits immediately. */
const START_FAILED = 'RunContainerError';
/** Most servers print the cause of an exit in their last one or two lines. */
const LOG_TAIL_LINES = 2;
const LOG_TAIL_LENGTH = 300;

/** Whether the server of this pod crashed and has not come back. `apply` replaces such pods. */
export const isCrashed = (pod: PodFacts): boolean => !isTerminating(pod) && !isOver(pod) && !isReady(pod) && crashOf(pod) !== undefined;

function endpointOf(pod: PodFacts): { readonly host: string; readonly port: number }[] {
  const host = pod.status.podIP;
  const port = serverPort(pod);
  return isReady(pod) && host !== undefined && port !== undefined ? [{ host, port }] : [];
}

/** With several pods an exit counts only while no other pod is ready and the newest has not come back. */
function lastExit([newest, ...others]: readonly PodFacts[]): WorkloadExit | undefined {
  if (newest === undefined || others.some(isReady)) return undefined;
  const end = others.length === 0 ? lastEndOf(newest) : crashOf(newest);
  return end === undefined ? undefined : exitOf(newest, end);
}

/** Kubelet restarts a server automatically; until the new one has passed its startup probe, the pod counts as crashed. */
function crashOf(pod: PodFacts): ContainerExit | undefined {
  const status = serverStatus(pod);
  const isBackAgain = status?.state?.running !== undefined && status.started === true;
  return isBackAgain ? undefined : lastEndOf(pod);
}

function lastEndOf(pod: PodFacts): ContainerExit | undefined {
  const status = serverStatus(pod);
  return status?.state?.terminated ?? status?.lastState?.terminated;
}

function exitOf(pod: PodFacts, end: ContainerExit): WorkloadExit {
  const outOfMemory = end.reason === 'OOMKilled';
  const message = exitMessage(pod, end, outOfMemory);
  return {
    code: end.exitCode,
    outOfMemory,
    at: parseTime(end.finishedAt) ?? parseTime(pod.metadata.creationTimestamp) ?? 0,
    ...(message === undefined ? {} : { message }),
    ...(end.containerID === undefined ? {} : { container: end.containerID }),
  };
}

function exitMessage(pod: PodFacts, end: ContainerExit, outOfMemory: boolean): string | undefined {
  if (outOfMemory) {
    const limit = pod.spec.containers.map(({ resources }) => resources?.limits?.['memory']).find((each) => each !== undefined);
    return limit === undefined
      ? 'Killed because its node ran out of memory'
      : `Killed because it exceeded its memory limit of ${limit}: raise "resources.memory"`;
  }
  const text = end.message?.trim() ?? '';
  const absent = /exec: "([^"]+)": (?:executable file not found|stat [^:]*: no such file)/.exec(text);
  if (absent !== null) return `The image does not contain the program "${absent[1]}": choose another toolbox image`;
  return text === '' ? undefined : logTail(text);
}

function logTail(text: string): string {
  const lines = text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
  return lines.slice(-LOG_TAIL_LINES).join(' / ').slice(-LOG_TAIL_LENGTH);
}

const byHost = (a: { readonly host: string }, b: { readonly host: string }): number => (a.host < b.host ? -1 : Number(a.host > b.host));
