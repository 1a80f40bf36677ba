/** What a workload is doing, judged by its pods. Pure. */
import type { ObservedWorkload, WorkloadExit, WaitingReason } from '../../../reconciler/ports.ts';
import { instant, isOver, isReady, isTerminating, serverPort, serverStatus } from './kube-facts.ts';
import type { ContainerStatus, DeploymentFacts, PodFacts } from './kube-facts.ts';
import { MODEL_CONTAINER } from './kube-names.ts';
import type { PodWarnings } from './kube-pod-warnings.ts';
import { troubleOf } from './kube-waiting-reason.ts';

export type Doing = Pick<
  ObservedWorkload,
  'phase' | 'startedAt' | 'endpoints' | 'exit' | 'fetching' | 'waitingReason' | 'missing' | 'replicas'
>;

/** How a server ended. */
type End = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

/** `pods` newest first; `before` is the waitingReason that was told last. */
export function doingOf(
  deployment: DeploymentFacts,
  pods: readonly PodFacts[],
  before: WaitingReason | undefined,
  warnings: PodWarnings,
): Doing {
  const living = pods.filter((pod) => !isTerminating(pod) && !isOver(pod));
  const endpoints = deployment.deleting ? [] : living.flatMap(endpointOf).toSorted(byHost);
  const starts = living.flatMap((pod) => instant(serverStatus(pod)?.state?.running?.startedAt) ?? []);
  const facts = {
    startedAt: starts.length === 0 ? undefined : Math.min(...starts),
    endpoints,
    replicas: { present: living.length, ready: endpoints.length },
  };
  if (deployment.deleting) return { ...facts, phase: 'stopping' };
  const exit = lastExit(living);
  const crash = exit === undefined ? {} : { exit };
  if (starts.length > 0) {
    const missing = whyMissing(deployment, pods, before, warnings);
    return { ...facts, ...crash, phase: 'running', ...(missing === undefined ? {} : { missing }) };
  }
  // Of what crashed, only its own waitingReason with coming back is told.
  const told = exit === undefined ? pods : living.slice(0, 1);
  const found = troubleOf(deployment, told, before, warnings);
  const waitingReason = exit !== undefined && found?.reason === START_FAILED ? undefined : found;
  const fetching = waitingReason === undefined ? living.map(fetchingOf).find((each) => each !== undefined) : undefined;
  return {
    ...facts,
    ...crash,
    phase: 'created',
    ...(waitingReason === undefined ? {} : { waitingReason }),
    ...(fetching === undefined ? {} : { fetching }),
  };
}

/** Why some of its pods do not answer while others run. Of one that is only slow to start there is nothing to say. */
function whyMissing(
  deployment: DeploymentFacts,
  pods: readonly PodFacts[],
  before: WaitingReason | undefined,
  warnings: PodWarnings,
): WaitingReason | undefined {
  const silent = pods.filter((pod) => !isTerminating(pod) && !isReady(pod));
  const crashed = silent.find(isCrashed);
  const end = crashed === undefined ? undefined : crashOf(crashed);
  if (crashed === undefined || end === undefined) return troubleOf(deployment, silent, before, warnings);
  const { code, outOfMemory, message = '' } = exitOf(crashed, end);
  const why = message === '' ? '' : `: ${message}`;
  return {
    kind: 'other',
    reason: outOfMemory ? 'OutOfMemory' : 'Crashed',
    message: `A replica ended with code ${code ?? 'unknown'} and is started again${why}`,
  };
}

/** What kubelets say, turn and turn about with their back-off, of a server that ended at once. */
const START_FAILED = 'RunContainerError';
const WORDS_LINES = 2;
const WORDS_LENGTH = 300;

/** A pod whose server crashed and has not come back: what `apply` replaces. */
export const isCrashed = (pod: PodFacts): boolean => !isTerminating(pod) && !isOver(pod) && !isReady(pod) && crashOf(pod) !== undefined;

function endpointOf(pod: PodFacts): { readonly host: string; readonly port: number }[] {
  const host = pod.status.podIP;
  const port = serverPort(pod);
  return isReady(pod) && host !== undefined && port !== undefined ? [{ host, port }] : [];
}

/** Of one of several pods it is of interest only while none answers and that one is not back. */
function lastExit([newest, ...others]: readonly PodFacts[]): WorkloadExit | undefined {
  if (newest === undefined || others.some(isReady)) return undefined;
  const end = others.length === 0 ? lastEndOf(newest) : crashOf(newest);
  return end === undefined ? undefined : exitOf(newest, end);
}

/** Kubelet starts a server again by itself; until that one has started up, it has crashed. */
function crashOf(pod: PodFacts): End | undefined {
  const status = serverStatus(pod);
  const isBackAgain = status?.state?.running !== undefined && status.started === true;
  return isBackAgain ? undefined : lastEndOf(pod);
}

function lastEndOf(pod: PodFacts): End | undefined {
  const status = serverStatus(pod);
  return status?.state?.terminated ?? status?.lastState?.terminated;
}

function exitOf(pod: PodFacts, end: End): WorkloadExit {
  const outOfMemory = end.reason === 'OOMKilled';
  const message = exitMessage(pod, end, outOfMemory);
  return {
    code: end.exitCode,
    outOfMemory,
    at: instant(end.finishedAt) ?? instant(pod.metadata.creationTimestamp) ?? 0,
    ...(message === undefined ? {} : { message }),
    ...(end.containerID === undefined ? {} : { container: end.containerID }),
  };
}

function exitMessage(pod: PodFacts, end: End, outOfMemory: boolean): string | undefined {
  if (outOfMemory) {
    const limit = pod.spec.containers.find(({ resources }) => resources?.limits?.['memory'] !== undefined)?.resources?.limits?.['memory'];
    return limit === undefined
      ? 'Killed for want of memory on its node'
      : `Killed for going over its memory limit of ${limit}: raise "resources.memory"`;
  }
  const text = end.message?.trim() ?? '';
  const absent = /exec: "([^"]+)": (?:executable file not found|stat [^:]*: no such file)/.exec(text);
  if (absent !== null) return `The image has no program "${absent[1]}": choose another toolbox image`;
  return text === '' ? undefined : lastLines(text);
}

/** What a server says last is why it ended, in a line or two. */
function lastLines(text: string): string {
  const lines = text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
  return lines.slice(-WORDS_LINES).join(' / ').slice(-WORDS_LENGTH);
}

function fetchingOf(pod: PodFacts): string | undefined {
  const fetcher = pod.status.initContainerStatuses.find(({ name }) => name === MODEL_CONTAINER);
  return fetcher?.state?.running === undefined ? undefined : 'Its pods fetch and verify the model';
}

const byHost = (a: { readonly host: string }, b: { readonly host: string }): number => (a.host < b.host ? -1 : Number(a.host > b.host));
