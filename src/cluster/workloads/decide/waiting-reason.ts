/**
 * Derives why no pod of a workload runs. Pure.
 *
 *     Situation                             Reported by the cluster in          `reason`
 *     no node fits the pod                  pod condition `PodScheduled`        Unschedulable, SchedulingGated
 *     the image cannot be pulled            container state `waiting`           ImagePullBackOff, InvalidImageName, …
 *     the container cannot be created       container state `waiting`           CreateContainerConfigError, …
 *     the model cannot be fetched           init container state `terminated`   ModelPullFailed, InitContainerFailed
 *     a volume or the network is not ready  Events only (`pod-warnings.ts`)     FailedMount, NetworkNotReady, …
 *     the pod cannot be created             Deployment `ReplicaFailure`         QuotaExceeded, PodForbidden, …
 *     the node ended the pod                pod phase `Failed`                  Evicted, OutOfmemory, …
 */
import type { WaitingReason } from '../../../reconciler/ports.ts';
import { quoteOutput } from '../../../schema/words/failure.ts';
import { parseReason, type Reason } from '../../../schema/status/reasons.ts';
import { isOver, isTerminating, type ContainerStatus, type DeploymentFacts, type PodFacts } from './pod-facts.ts';
import { MODEL_CONTAINER, MODELS_TARGET } from './object-names.ts';
import { warningReason, type PodWarnings } from './pod-warnings.ts';
import { truncate } from '../../client/decide/object-fields.ts';
import { MODELS_VOLUME } from './model-volumes.ts';
import { placementMessage } from './pod-placement.ts';

export interface WaitingHints {
  /** Kubelets alternate between the cause of a failed pull and a message without one. */
  readonly previous?: WaitingReason | undefined;
  readonly warnings?: PodWarnings;
  readonly fetched?: FetchProgress;
}

/** `pods`: the newest first, none of them running. */
export function deriveWaitingReason(
  deployment: DeploymentFacts,
  pods: readonly PodFacts[],
  hints: WaitingHints,
): WaitingReason | undefined {
  const living = pods.filter((pod) => !isOver(pod) && !isTerminating(pod));
  for (const pod of living) {
    const found = podWaitingReason(pod, hints);
    if (found !== undefined) return found;
  }
  const failed = pods.find((pod) => isOver(pod) && pod.status.reason !== undefined);
  return notCreated(deployment, living) ?? (failed === undefined ? undefined : endReason(failed));
}

export function podWaitingReason(pod: PodFacts, hints: WaitingHints): WaitingReason | undefined {
  return unscheduled(pod) ?? stuckContainer(pod, hints) ?? warningReason(pod, hints.warnings?.get(pod.metadata.uid));
}

function unscheduled(pod: PodFacts): WaitingReason | undefined {
  const condition = pod.status.conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  if (condition === undefined) return undefined;
  if (condition.reason === 'SchedulingGated') {
    const message = 'The pod is held back by a scheduling gate; see "kubectl describe pod"';
    return { kind: 'placement', reason: 'SchedulingGated', message };
  }
  return { kind: 'placement', reason: 'Unschedulable', message: placementMessage(condition.message ?? '', pod) };
}

function stuckContainer(pod: PodFacts, { previous, fetched }: WaitingHints): WaitingReason | undefined {
  const { initContainerStatuses, containerStatuses } = pod.status;
  for (const status of [...initContainerStatuses, ...containerStatuses]) {
    const isInit = initContainerStatuses.includes(status);
    const found = waitingContainer(pod, status, previous) ?? (isInit ? failedInit(pod, status, fetched) : undefined);
    if (found !== undefined) return found;
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

function waitingContainer(pod: PodFacts, status: ContainerStatus, previous: WaitingReason | undefined): WaitingReason | undefined {
  const reason = status.state?.waiting?.reason ?? '';
  const cause = status.state?.waiting?.message ?? '';
  if (reason === 'InvalidImageName') {
    const detail = cause === '' ? '' : ` (${lastPart(cause)})`;
    const message = `The image name "${imageOf(pod, status)}" is not valid${detail}: correct it in the toolbox manifest`;
    return { kind: 'image', reason, message };
  }
  const ofImage = IMAGE_REASONS.find((known) => known === reason);
  if (ofImage !== undefined) return failedPull(ofImage, cause, imageOf(pod, status), previous);
  const ofConfig = CONFIG_REASONS.find((known) => known === reason);
  return ofConfig === undefined ? undefined : { kind: 'other', reason: ofConfig, message: configMessage(cause, status.name) };
}

/** Publishes both reasons of a failed pull as one, so that the condition does not change with each attempt. */
function failedPull(
  reason: (typeof IMAGE_REASONS)[number],
  cause: string,
  image: string,
  previous: WaitingReason | undefined,
): WaitingReason {
  const published = reason === 'ErrImagePull' ? 'ImagePullBackOff' : reason;
  const known = reason === 'ImagePullBackOff' && !/: Err/.test(cause) ? '' : cause.replace(/^Back-off pulling image "[^"]*": \w+: /, '');
  const opening = `The node cannot pull the image "${image}"`;
  if (known === '' && previous?.reason === published && previous.message.startsWith(opening)) return previous;
  return { kind: 'image', reason: published, message: `${opening}${pullAdvice(known)}` };
}

function pullAdvice(cause: string): string {
  if (cause === '') return ' and will retry';
  if (/not present with pull policy/i.test(cause)) return ': the image is not on the node, and its pull policy forbids pulling it';
  if (/not found|manifest unknown|repository does not exist|NotFound/i.test(cause))
    return ': the registry does not have it. Push the image, or correct its name in the toolbox manifest';
  if (/unauthorized|authentication required|denied|forbidden/i.test(cause))
    return ': the registry denied access. Name a Secret with credentials in "pod.imagePullSecrets" of the slot, or in "imagePullSecrets" of the chart';
  if (/no such host|connection refused|i\/o timeout|deadline exceeded|network is unreachable/i.test(cause))
    return `: the registry does not respond (${lastPart(cause)})`;
  if (/no space left/i.test(cause)) return ': the disk of the node is full';
  return `: ${truncate(cause)}`;
}

/** Prefixes of the names of the controller's objects. */
const OWN_OBJECTS = /^svc-(slot|model)-/;

function configMessage(cause: string, container: string): string {
  const absent = /^(configmap|secret) "([^"]+)" not found/.exec(cause);
  if (absent !== null) {
    const [, type, name = ''] = absent;
    const advice = OWN_OBJECTS.test(name) ? 'the controller recreates it' : 'create it, or correct its name in "pod" of the slot';
    return `The pod waits for the ${type === 'secret' ? 'Secret' : 'ConfigMap'} "${name}", which does not exist; ${advice}`;
  }
  const key = /^couldn't find key (\S+) in (Secret|ConfigMap) \S*?([^/\s]+)$/.exec(cause);
  if (key !== null)
    return `The pod waits for the key "${key[1]}" of the ${key[2]} "${key[3]}", which does not exist; add it, or correct "pod" of the slot`;
  if (/runAsNonRoot/.test(cause)) {
    const advice = 'set "pod.securityContext.runAsUser", or build the image with another user';
    return `The container "${container}" would run as root, which its security context forbids; ${advice}`;
  }
  return `The container "${container}" cannot be created: ${truncate(cause.replace(/ \(pod: "[^"]*", container: [^)]*\)/, ''))}`;
}

/**
 * Between two attempts, only the last state holds the container's message. The next attempt to fetch a model has failed
 * in the same way until it receives something: otherwise the reason would come and go with each attempt.
 */
function failedInit(pod: PodFacts, status: ContainerStatus, fetched: FetchProgress): WaitingReason | undefined {
  const end = status.state?.terminated ?? status.lastState?.terminated;
  if (end === undefined || end.exitCode === 0) return undefined;
  const goesOn = status.name !== MODEL_CONTAINER || fetched?.has(pod.metadata.uid) === true;
  if (status.state?.running !== undefined && goesOn) return undefined;
  const reported = splitReason(end.message ?? '');
  const exit = `it exited with code ${end.exitCode}`;
  const logged = logTail(reported.message);
  const output = logged || exit;
  if (status.name !== MODEL_CONTAINER) {
    const why = logged === '' ? exit : quoteOutput('last log line', logged);
    return { kind: 'other', reason: 'InitContainerFailed', message: `The init container "${status.name}" failed: ${why}` };
  }
  const why = end.reason === 'OOMKilled' ? fetchOutOfMemory(pod) : `${output}${modelsLocation(output, pod)}`;
  const reason = end.reason === 'OOMKilled' ? 'ModelPullFailed' : reported.reason;
  return { kind: 'model', reason, message: `The model could not be fetched, and is tried again: ${why}` };
}

/** The container that fetches models puts the reason of a failure in front of its message. */
function splitReason(text: string): { readonly reason: Reason; readonly message: string } {
  const [, word, message = ''] = /^([A-Z][A-Za-z]+): (.*)$/s.exec(text) ?? [];
  const reason = parseReason(word);
  return reason === undefined ? { reason: 'ModelPullFailed', message: text } : { reason, message };
}

function fetchOutOfMemory(pod: PodFacts): string {
  const limited = pod.spec.containers.some(({ resources }) => resources?.limits?.['memory'] !== undefined);
  const advice = limited ? 'raise "resources.memory", which limits the whole pod' : 'the node is short of memory';
  return `the container that fetches it ran out of memory: ${advice}`;
}

/** Names the volume of a path inside the pod, so that users know where to put a file. */
function modelsLocation(output: string, { spec }: PodFacts): string {
  if (!output.includes(`"${MODELS_TARGET}/`)) return '';
  const volume = spec.volumes?.find(({ name }) => name === MODELS_VOLUME);
  if (volume === undefined) return '';
  if (volume.persistentVolumeClaim !== undefined) return `. "${MODELS_TARGET}" is the claim "${volume.persistentVolumeClaim.claimName}"`;
  if (volume.hostPath !== undefined)
    return `. "${MODELS_TARGET}" is the directory "${volume.hostPath.path}" of node "${spec.nodeName ?? ''}"`;
  return `. "${MODELS_TARGET}" is empty in each new pod: set "storage" of the slot, or "models.claim" or "models.hostPath" of the chart`;
}

function notCreated({ conditions }: DeploymentFacts, living: readonly PodFacts[]): WaitingReason | undefined {
  const condition = conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  if (condition === undefined || living.length > 0) return undefined;
  const cause = (condition.message ?? '').replace(/^pods "[^"]*" is forbidden: /, '');
  const quota = /^exceeded quota: ([^,]+), requested: (.*?), used: (.*?), limited: (.*)$/.exec(cause);
  if (quota !== null) {
    const message = `The quota "${quota[1]}" of the namespace does not allow the pod (requested: ${quota[2]}, used: ${quota[3]}, limited: ${quota[4]}). Raise the quota, or unload another slot`;
    return { kind: 'placement', reason: 'QuotaExceeded', message };
  }
  const account = /serviceaccount "([^"]+)" not found/.exec(cause);
  if (account !== null) {
    const message = `The namespace has no service account "${account[1]}": create it, or change "serviceAccountName"`;
    return { kind: 'other', reason: 'ServiceAccountMissing', message };
  }
  const security = /^violates PodSecurity "([^"]+)": (.*)$/.exec(cause);
  if (security !== null) {
    const message = `The namespace's Pod Security level "${security[1]}" does not allow the pod: ${truncate(security[2] ?? '')}. Change "pod" or "backend" of the slot, or set a less strict level`;
    return { kind: 'other', reason: 'PodForbidden', message };
  }
  return {
    kind: 'other',
    reason: parseReason(condition.reason) ?? 'FailedCreate',
    message: `The cluster rejects the pod: ${truncate(cause)}`,
  };
}

/** Its replacement may not exist yet. */
export function endReason(pod: PodFacts): WaitingReason {
  const reason = parseReason(pod.status.reason) ?? 'Failed';
  const cause = truncate((pod.status.message ?? '').trim().replace(/\.$/, ''));
  const node = pod.spec.nodeName === undefined ? 'Its node' : `Node "${pod.spec.nodeName}"`;
  const unknown = pod.status.reason === undefined || reason === pod.status.reason ? '' : ` (${pod.status.reason})`;
  const why = `${unknown}${cause === '' ? '' : `: ${cause}`}`;
  if (reason === 'Evicted') return { kind: 'placement', reason, message: `${node} evicted the pod${why}; a new pod will be created` };
  if (reason === 'UnexpectedAdmissionError' || reason.startsWith('OutOf') || reason === 'NodeAffinity') {
    return { kind: 'placement', reason, message: `${node} rejected the pod${why}; a new pod will be created` };
  }
  return { kind: 'other', reason, message: `The pod failed${why}; a new pod will be created` };
}

function imageOf(pod: PodFacts, status: ContainerStatus): string {
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  return all.find(({ name }) => name === status.name)?.image ?? status.image ?? '';
}

const lastPart = (cause: string): string => truncate(cause.split(': ').slice(-2).join(': '));

function logTail(message: string): string {
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' / ');
  return line.length > 500 ? `…${line.slice(-500)}` : line;
}

/** Progress of pods by uid: `1.2 GiB of 6.1 GiB (20 %)`. */
export type FetchProgress = ReadonlyMap<string, string> | undefined;

export const isFetching = (pod: PodFacts): boolean =>
  !isTerminating(pod) &&
  !isOver(pod) &&
  pod.status.initContainerStatuses.some(({ name, state }) => name === MODEL_CONTAINER && state?.running !== undefined);

/** The format of `transferText()`, behind the name of the file. */
const TRANSFER = /: (\d+(?:\.\d+)? (?:B|[KMGT]iB)(?: of \d+(?:\.\d+)? (?:B|[KMGT]iB) \(\d{1,3} %\))?)$/;
const LONGEST_LINE = 2000;

/** Undefined for any other line, so that no text of a container gets into a condition unchecked. */
export function readFetchLine(line: string): string | undefined {
  return line.length > LONGEST_LINE ? undefined : TRANSFER.exec(line.trimEnd())?.[1];
}

/** `pods`: the newest first. */
export function fetchingText(pods: readonly PodFacts[], progress: FetchProgress): string | undefined {
  const fetching = pods.filter(isFetching);
  if (fetching.length === 0) return undefined;
  const known = fetching.flatMap(({ metadata }) => progress?.get(metadata.uid) ?? []);
  const done = known.length === 0 ? '' : `: ${known.join(', ')}`;
  return `Its pods are fetching and verifying the model${done}`;
}
