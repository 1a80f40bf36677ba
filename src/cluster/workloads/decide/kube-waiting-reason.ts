/** Why a workload does not come to run, in words for people. Pure. */
import type { WaitingReason } from '../../../reconciler/ports.ts';
import { parseReason, type Reason } from '../../../schema/reasons.ts';
import { isOver, isTerminating } from './kube-facts.ts';
import type { ContainerStatus, DeploymentFacts, PodFacts } from './kube-facts.ts';
import { MODEL_CONTAINER, MODELS_TARGET } from './kube-names.ts';
import { warnedTrouble } from './kube-pod-warnings.ts';
import type { PodWarnings } from './kube-pod-warnings.ts';
import { MODELS_VOLUME } from './kube-volumes.ts';
import { placementMessage } from './kube-placement.ts';

/**
 * Of pods none of which runs, newest first. `before` is what was said last: kubelets tell the cause of a failed pull and then only that they wait,
 * turn and turn about.
 */
export function troubleOf(
  deployment: DeploymentFacts,
  pods: readonly PodFacts[],
  before: WaitingReason | undefined,
  warnings: PodWarnings,
): WaitingReason | undefined {
  const living = pods.filter((pod) => !isOver(pod) && !isTerminating(pod));
  for (const pod of living) {
    const waitingReason = unscheduled(pod) ?? stuckContainer(pod, before) ?? warnedTrouble(pod, warnings?.get(pod.metadata.uid));
    if (waitingReason !== undefined) return waitingReason;
  }
  const failed = pods.find((pod) => isOver(pod) && pod.status.reason !== undefined);
  return notCreated(deployment, living) ?? (failed === undefined ? undefined : ended(failed));
}

function unscheduled(pod: PodFacts): WaitingReason | undefined {
  const condition = pod.status.conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  if (condition === undefined) return undefined;
  if (condition.reason === 'SchedulingGated') {
    return {
      kind: 'placement',
      reason: 'SchedulingGated',
      message: 'The pod is held back by a scheduling gate; see "kubectl describe pod"',
    };
  }
  return { kind: 'placement', reason: 'Unschedulable', message: placementMessage(condition.message ?? '', pod) };
}

function stuckContainer(pod: PodFacts, before: WaitingReason | undefined): WaitingReason | undefined {
  for (const status of pod.status.initContainerStatuses) {
    const waitingReason = waitingTrouble(pod, status, before) ?? failedFetch(pod, status);
    if (waitingReason !== undefined) return waitingReason;
  }
  for (const status of pod.status.containerStatuses) {
    const waitingReason = waitingTrouble(pod, status, before);
    if (waitingReason !== undefined) return waitingReason;
  }
  return undefined;
}

const IMAGE_REASONS = [
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'RegistryUnavailable',
  'ImageInspectError',
  'SignatureValidationFailed',
] as const satisfies readonly Reason[];
const CONFIG_REASONS = [
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'PostStartHookError',
] as const satisfies readonly Reason[];

function waitingTrouble(pod: PodFacts, status: ContainerStatus, before: WaitingReason | undefined): WaitingReason | undefined {
  const reason = status.state?.waiting?.reason ?? '';
  const cause = status.state?.waiting?.message ?? '';
  if (reason === 'InvalidImageName') {
    const message = `Correct the name of the image ${quoted(imageOf(pod, status))}: it is none${cause === '' ? '' : ` (${lastPart(cause)})`}`;
    return { kind: 'image', reason, message };
  }
  const ofImage = IMAGE_REASONS.find((known) => known === reason);
  if (ofImage !== undefined) return pullTrouble(ofImage, cause, imageOf(pod, status), before);
  const ofConfig = CONFIG_REASONS.find((known) => known === reason);
  return ofConfig === undefined ? undefined : { kind: 'other', reason: ofConfig, message: configMessage(cause, status.name) };
}

/** Both reasons of a failed pull are told as one, so that its condition does not change with each attempt. */
function pullTrouble(
  reason: (typeof IMAGE_REASONS)[number],
  cause: string,
  image: string,
  before: WaitingReason | undefined,
): WaitingReason {
  const told = reason === 'ErrImagePull' || reason === 'ImagePullBackOff' ? 'ImagePullBackOff' : reason;
  const known =
    reason === 'ImagePullBackOff' && !/: (ErrImagePull|Err)/.test(cause) ? '' : cause.replace(/^Back-off pulling image "[^"]*": \w+: /, '');
  const opening = `The node cannot pull the image ${quoted(image)}`;
  if (known === '' && before?.reason === told && before.message.startsWith(opening)) return before;
  return { kind: 'image', reason: told, message: `${opening}${pullAdvice(known)}` };
}

function pullAdvice(cause: string): string {
  if (cause === '') return '; it is tried again';
  if (/not present with pull policy/i.test(cause)) return ': it is not there, and must not be pulled';
  if (/not found|manifest unknown|repository does not exist|NotFound/i.test(cause))
    return ': its registry does not have it. Push it, or correct its name in the toolbox manifest';
  if (/unauthorized|authentication required|denied|forbidden/i.test(cause))
    return ': its registry refuses. Add credentials to the service account ("imagePullSecrets")';
  if (/no such host|connection refused|i\/o timeout|deadline exceeded|network is unreachable/i.test(cause))
    return `: its registry does not answer (${lastPart(cause)})`;
  if (/no space left/i.test(cause)) return ': its disk is full';
  return `: ${cut(cause)}`;
}

function configMessage(cause: string, container: string): string {
  const absent = /^(configmap|secret) "([^"]+)" not found/.exec(cause);
  if (absent !== null)
    return `The pod waits for the ${absent[1] === 'secret' ? 'Secret' : 'ConfigMap'} "${absent[2]}", which is not there; what the controller makes comes back by itself`;
  if (/runAsNonRoot/.test(cause))
    return `The container "${container}" would run as root, which its security context forbids; build the image for another user`;
  return `The container "${container}" cannot be made: ${cut(cause.replace(/ \(pod: "[^"]*", container: [^)]*\)/, ''))}`;
}

/** What the container said at its end; between two attempts it says nothing of its own. */
function failedFetch(pod: PodFacts, status: ContainerStatus): WaitingReason | undefined {
  const end = status.state?.terminated ?? status.lastState?.terminated;
  if (end === undefined || end.exitCode === 0) return undefined;
  if (status.state?.running !== undefined) return undefined;
  const words = end.message === undefined || end.message.trim() === '' ? `it ended with code ${end.exitCode}` : lastWords(end.message);
  if (status.name !== MODEL_CONTAINER) {
    return { kind: 'other', reason: 'InitContainerFailed', message: `The init container "${status.name}" failed: ${words}` };
  }
  const why = end.reason === 'OOMKilled' ? fetchOutOfMemory(pod) : `${words}${whereModelsLie(words, pod)}`;
  return { kind: 'model', reason: 'ModelPullFailed', message: `The model cannot be fetched, it is tried again: ${why}` };
}

function fetchOutOfMemory(pod: PodFacts): string {
  const limited = pod.spec.containers.some(({ resources }) => resources?.limits?.['memory'] !== undefined);
  const advice = limited ? 'raise "resources.memory", which is the limit of the whole pod' : 'its node is short of memory';
  return `the container that fetches it went out of memory: ${advice}`;
}

/** A path inside of a pod tells nobody where to put a file. */
function whereModelsLie(words: string, { spec }: PodFacts): string {
  if (!words.includes(`"${MODELS_TARGET}/`)) return '';
  const volume = spec.volumes?.find(({ name }) => name === MODELS_VOLUME);
  if (volume === undefined) return '';
  if (volume.persistentVolumeClaim !== undefined) return `. "${MODELS_TARGET}" is the claim "${volume.persistentVolumeClaim.claimName}"`;
  if (volume.hostPath !== undefined) return `. "${MODELS_TARGET}" is "${volume.hostPath.path}" of node "${spec.nodeName ?? ''}"`;
  return `. "${MODELS_TARGET}" is empty in each new pod: give the slot a "storage", or the chart "models.claim" or "models.hostPath"`;
}

function notCreated({ conditions }: DeploymentFacts, living: readonly PodFacts[]): WaitingReason | undefined {
  const condition = conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  if (condition === undefined || living.length > 0) return undefined;
  const cause = (condition.message ?? '').replace(/^pods "[^"]*" is forbidden: /, '');
  const quota = /^exceeded quota: ([^,]+), requested: (.*?), used: (.*?), limited: (.*)$/.exec(cause);
  if (quota !== null) {
    const message = `The quota "${quota[1]}" of the namespace does not allow the pod: ${quota[2]} asked for, ${quota[3]} used of ${quota[4]}. Raise it, or unload another slot`;
    return { kind: 'placement', reason: 'QuotaExceeded', message };
  }
  const account = /serviceaccount "([^"]+)" not found/.exec(cause);
  if (account !== null) {
    const message = `Make the service account "${account[1]}", or change "serviceAccountName": the namespace has none of that name`;
    return { kind: 'other', reason: 'ServiceAccountMissing', message };
  }
  const security = /^violates PodSecurity "([^"]+)": (.*)$/.exec(cause);
  if (security !== null) {
    const message = `The namespace's Pod Security level "${security[1]}" does not allow the pod: ${cut(security[2] ?? '')}. Choose another "backend" or raise the level`;
    return { kind: 'other', reason: 'PodForbidden', message };
  }
  return { kind: 'other', reason: parseReason(condition.reason) ?? 'FailedCreate', message: `The cluster refuses the pod: ${cut(cause)}` };
}

/** It is over, and the one that replaces it is not there yet. */
function ended(pod: PodFacts): WaitingReason {
  const reason = parseReason(pod.status.reason) ?? 'Failed';
  const cause = cut((pod.status.message ?? '').trim().replace(/\.$/, ''));
  const node = pod.spec.nodeName === undefined ? 'Its node' : `Node "${pod.spec.nodeName}"`;
  const own = pod.status.reason === undefined || reason === pod.status.reason ? '' : ` (${pod.status.reason})`;
  const why = `${own}${cause === '' ? '' : `: ${cause}`}`;
  if (reason === 'Evicted') return { kind: 'placement', reason, message: `${node} evicted the pod${why}; another one is made` };
  if (reason === 'UnexpectedAdmissionError' || reason.startsWith('OutOf') || reason === 'NodeAffinity') {
    return { kind: 'placement', reason, message: `${node} refused the pod${why}; another one is made` };
  }
  return { kind: 'other', reason, message: `The pod ended${why}; another one is made` };
}

function imageOf(pod: PodFacts, status: ContainerStatus): string {
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  return all.find(({ name }) => name === status.name)?.image ?? status.image ?? '';
}

const quoted = (text: string): string => `"${text}"`;
const cut = (text: string): string => (text.length > 400 ? `${text.slice(0, 400)}…` : text);
/** The end of a chain of causes says what happened. */
const lastPart = (cause: string): string => cut(cause.split(': ').slice(-2).join(': '));
/** At most what a condition should hold, in one line; the end of it. */
function lastWords(message: string): string {
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' / ');
  return line.length > 500 ? `…${line.slice(-500)}` : line;
}
