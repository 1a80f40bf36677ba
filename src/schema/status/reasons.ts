/**
 * Every reason there is: why a slot is as it is, and why an operation failed. Findings, failures, conditions, Events,
 * timeline causes and log lines all use these words, and `docs/reference/conditions.md` is generated from them. A
 * reason outside of the table does not compile.
 */
import { AT_REST_REASONS, PROBLEM_REASONS, PROGRESS_REASONS, reason, stalling } from './slot-reasons.ts';

/** Why a pod of a slot does not start, run or stay. Kubernetes' own words, so that they can be searched for. */
const POD_REASONS = {
  ReplicasNotReady: reason('The slot answers, but with fewer replicas than it should have', 'Read the message: it says what is missing'),
  NoReplicaReady: reason('The pods run, and none of them is ready', 'Wait; if it lasts, read `svcctl slot logs <slot>`'),
  Unschedulable: reason(
    'No node can take the pod',
    'Add a node or free one, lower `resources`, or correct `node_selector` and `tolerations`',
  ),
  SchedulingGated: reason('A scheduling gate holds the pod back', 'Read `kubectl describe pod` and lift the gate'),
  QuotaExceeded: reason('A quota of the namespace does not allow the pod', 'Raise the quota, or unload another slot'),
  ServiceAccountMissing: reason('The service account of the pod does not exist', 'Create it, or correct `service_account_name`'),
  PodForbidden: reason(
    'The Pod Security level of the namespace does not allow the pod',
    'Set `backend` to another one, or raise the level of the namespace',
  ),
  FailedCreate: reason('The cluster rejects the pod', 'Read the message, which quotes the cluster'),
  ErrImagePull: reason('The node cannot pull the image', 'Check the image name and the registry'),
  ImagePullBackOff: reason(
    'The node cannot pull the image; the pull is tried again',
    'Push the image, correct its name in the toolbox manifest, or add `imagePullSecrets`',
  ),
  ErrImageNeverPull: reason(
    'The image is not on the node and must not be pulled',
    'Load the image onto the node, or change the pull policy',
  ),
  InvalidImageName: reason('The name of the image is not valid', 'Correct it in the toolbox manifest'),
  RegistryUnavailable: reason('The registry does not answer', 'Check the registry and the network of the node'),
  ImageInspectError: reason('The node cannot read the image', 'Remove the image from the node, so that it is pulled again'),
  SignatureValidationFailed: reason('The signature of the image is not valid', 'Sign the image, or correct the policy of the node'),
  CreateContainerConfigError: reason(
    'The container cannot be configured, often because a Secret or ConfigMap is missing',
    'Create what the message names',
  ),
  CreateContainerError: reason('The node cannot create the container', 'Read the message, which quotes the node'),
  RunContainerError: reason('The node cannot start the container', 'Read the message, which quotes the node'),
  PostStartHookError: reason('A hook of the container failed', 'Read `kubectl describe pod`'),
  InitContainerFailed: reason('A container that runs before the server failed', 'Read the message, which has its last output'),
  FailedMount: reason('The node cannot mount a volume of the pod', 'Correct `storage`, or the claim or path that the message names'),
  FailedAttachVolume: reason('A volume cannot be attached to the node', 'Wait until the other node releases it, or use `ReadWriteMany`'),
  FailedMapVolume: reason('The node cannot map a block volume', 'Correct the claim that the message names'),
  FailedCreatePodSandBox: reason('The node cannot set up the pod; it is tried again', 'Check the container runtime of the node'),
  NetworkNotReady: reason('The network of the node is not ready', 'Check the network plug-in of the node'),
  FailedPrepareDynamicResources: reason('The node cannot prepare a device for the pod', 'Check the device driver of the node'),
  Evicted: reason('The node evicted the pod; another one is created', 'Free memory or disk on the node that the message names'),
  Preempting: reason('The node ended the pod in favour of a more important one; another one is created', 'Free resources on the node'),
  NodeAffinity: reason('The node rejected the pod, because its labels do not match any more', 'Correct `node_selector` or the labels'),
  NodeShutdown: reason('The node is shutting down; another pod is created', 'Wait'),
  Terminated: reason('The pod ended because its node is shutting down; another one is created', 'Wait'),
  UnexpectedAdmissionError: reason('The node rejected the pod, often for want of a device', 'Check the devices of the node'),
  OutOf: reason(
    'The node rejected the pod, because it has no more of the resource that follows: `OutOfcpu`, `OutOfamd.com/gpu`',
    'Free the resource on the node, or add a node',
  ),
};

/** Answers of the API server. */
const API_REASONS = {
  ApiUnreachable: reason('The API server does not answer', 'Check its address and the network'),
  ApiUntrusted: reason(
    'The certificate of the API server is not trusted, or it does not accept ours',
    'Renew the certificate that has expired, or correct the certificate authority of the kubeconfig',
  ),
  ApiBusy: reason('The API server is overloaded; the request is sent again', 'Wait'),
  ApiFailed: reason('The API server failed, or its answer cannot be understood', 'Read the log of the API server'),
  Unauthorized: reason('The API server does not accept the credentials', 'Renew the credentials'),
  Forbidden: stalling(
    'The role of the service, or an admission rule, does not allow the request',
    'Extend the role or adapt the rule as the message says',
  ),
  Invalid: stalling('The API server rejects the object', 'Correct the field that the message names'),
  NotFound: reason('The object, its kind or its namespace does not exist', 'Create what the message names'),
  AlreadyExists: reason('An object of this name exists already', 'Nothing; the service reads it and continues'),
  Conflict: reason('The object was changed in the meantime', 'Nothing; the service reads it and continues'),
  Expired: reason('The API server no longer has this version of a list', 'Nothing; the service lists again'),
  NotLeading: reason('Another replica is the leader now, so this one does not write', 'Nothing'),
  SlotGone: reason('The slot was removed while its workload was being applied', 'Nothing'),
  PulledByPods: stalling('In a cluster, the pods of a slot download its model', 'Name the model in a slot instead of pulling it'),
};

/** What keeps the service itself from starting or from reading its slots. In the log only. */
const SERVICE_REASONS = {
  Aborted: reason('The work was cancelled before it was done', 'Nothing'),
  SlotsUnreadable: reason(
    'The slots cannot be read; the last ones that were read stay in force',
    'Make the directory readable, or check the API server',
  ),
  SettingUnusable: stalling('A setting cannot be used here', 'Change the setting that the message names'),
  ListenFailed: stalling('The address of the service cannot be used', 'Free the address, or change `SVC_LISTEN`'),
  PodmanNotFound: stalling('podman is not installed', 'Install podman, or set `SVC_RUNTIME` to `process`'),
  NoCluster: stalling('No cluster is configured', 'Set `KUBECONFIG`, or run in a pod with a service account'),
};

/** Groups in the order of the documentation. */
export const REASON_GROUPS = [
  { title: 'The slot is at rest', reasons: AT_REST_REASONS },
  { title: 'Everything is in order', reasons: PROGRESS_REASONS },
  { title: 'Something is wrong', reasons: PROBLEM_REASONS },
  { title: 'Pods of a cluster', reasons: POD_REASONS },
  { title: 'The API server of a cluster', reasons: API_REASONS },
  { title: 'The service itself', reasons: SERVICE_REASONS },
] as const;

export const REASONS = {
  ...AT_REST_REASONS,
  ...PROGRESS_REASONS,
  ...PROBLEM_REASONS,
  ...POD_REASONS,
  ...API_REASONS,
  ...SERVICE_REASONS,
} as const;

/** Kubelets name the resource that a node ran out of, and there may be any: `OutOfamd.com/gpu`. */
type OutOfResource = `OutOf${string}`;

export type Reason = keyof typeof REASONS | OutOfResource;

/** Reasons after which somebody must act. */
export type StalledReason = {
  [Each in keyof typeof REASONS]: (typeof REASONS)[Each] extends { stalled: true } ? Each : never;
}[keyof typeof REASONS];

/** Undefined for a word that is not in the table. */
export function parseReason(text: unknown): Reason | undefined {
  if (typeof text !== 'string') return undefined;
  return isListed(text) || isOutOfResource(text) ? text : undefined;
}

/** What to do about it. */
export const adviceFor = (reason: Reason): string => REASONS[isListed(reason) ? reason : 'OutOf'].action;

/** Whether the slot is at rest on purpose. */
export const isAtRestReason = (reason: Reason): boolean => Object.hasOwn(AT_REST_REASONS, reason);

const isListed = (text: string): text is keyof typeof REASONS => Object.hasOwn(REASONS, text);
const isOutOfResource = (text: string): text is OutOfResource => text.startsWith('OutOf');
