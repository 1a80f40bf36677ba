/**
 * The reasons that only occur in a cluster, or that end up in the log only. Kubernetes' own words are kept where it has one, so that they
 * can be searched for. Each text is a row of `docs/reference/conditions.md`.
 */
import type { ReasonFacts } from './slot-reasons.ts';

/** Why a pod of a slot does not start, run or stay. */
export const POD_REASONS = {
  ReplicasNotReady: {
    meaning: 'The slot answers, but with fewer replicas than it should have',
    action: 'Read the message: it says what is missing',
  },
  NoReplicaReady: { meaning: 'The pods run, and none of them is ready', action: 'Wait; if it lasts, read `svcctl slot logs <slot>`' },
  Unschedulable: {
    meaning: 'No node can take the pod',
    action: 'Add a node or free one, lower `resources`, or correct `node_selector` and `tolerations`',
  },
  SchedulingGated: { meaning: 'A scheduling gate holds the pod back', action: 'Read `kubectl describe pod` and lift the gate' },
  QuotaExceeded: { meaning: 'A quota of the namespace does not allow the pod', action: 'Raise the quota, or unload another slot' },
  ServiceAccountMissing: {
    meaning: 'The service account of the pod does not exist',
    action: 'Create it, or correct `service_account_name`',
  },
  PodForbidden: {
    meaning: 'The Pod Security level of the namespace does not allow the pod',
    action: 'Set `backend` to another one, or raise the level of the namespace',
  },
  FailedCreate: { meaning: 'The cluster rejects the pod', action: 'Read the message, which quotes the cluster' },
  ErrImagePull: { meaning: 'The node cannot pull the image', action: 'Check the image name and the registry' },
  ImagePullBackOff: {
    meaning: 'The node cannot pull the image; the pull is tried again',
    action: 'Push the image, correct its name in the toolbox manifest, or add `imagePullSecrets`',
  },
  ErrImageNeverPull: {
    meaning: 'The image is not on the node and must not be pulled',
    action: 'Load the image onto the node, or change the pull policy',
  },
  InvalidImageName: { meaning: 'The name of the image is not valid', action: 'Correct it in the toolbox manifest' },
  RegistryUnavailable: { meaning: 'The registry does not answer', action: 'Check the registry and the network of the node' },
  ImageInspectError: { meaning: 'The node cannot read the image', action: 'Remove the image from the node, so that it is pulled again' },
  SignatureValidationFailed: {
    meaning: 'The signature of the image is not valid',
    action: 'Sign the image, or correct the policy of the node',
  },
  CreateContainerConfigError: {
    meaning: 'The container cannot be configured, often because a Secret or ConfigMap is missing',
    action: 'Create what the message names',
  },
  CreateContainerError: { meaning: 'The node cannot create the container', action: 'Read the message, which quotes the node' },
  RunContainerError: { meaning: 'The node cannot start the container', action: 'Read the message, which quotes the node' },
  PostStartHookError: { meaning: 'A hook of the container failed', action: 'Read `kubectl describe pod`' },
  InitContainerFailed: { meaning: 'A container that runs before the server failed', action: 'Read the message, which has its last output' },
  FailedMount: {
    meaning: 'The node cannot mount a volume of the pod',
    action: 'Correct `storage`, or the claim or path that the message names',
  },
  FailedAttachVolume: {
    meaning: 'A volume cannot be attached to the node',
    action: 'Wait until the other node releases it, or use `ReadWriteMany`',
  },
  FailedMapVolume: { meaning: 'The node cannot map a block volume', action: 'Correct the claim that the message names' },
  FailedCreatePodSandBox: {
    meaning: 'The node cannot set up the pod; it is tried again',
    action: 'Check the container runtime of the node',
  },
  NetworkNotReady: { meaning: 'The network of the node is not ready', action: 'Check the network plug-in of the node' },
  FailedPrepareDynamicResources: { meaning: 'The node cannot prepare a device for the pod', action: 'Check the device driver of the node' },
  Evicted: {
    meaning: 'The node evicted the pod; another one is created',
    action: 'Free memory or disk on the node that the message names',
  },
  Preempting: {
    meaning: 'The node ended the pod in favour of a more important one; another one is created',
    action: 'Free resources on the node',
  },
  NodeAffinity: {
    meaning: 'The node rejected the pod, because its labels do not match any more',
    action: 'Correct `node_selector` or the labels',
  },
  NodeShutdown: { meaning: 'The node is shutting down; another pod is created', action: 'Wait' },
  Terminated: { meaning: 'The pod ended because its node is shutting down; another one is created', action: 'Wait' },
  UnexpectedAdmissionError: { meaning: 'The node rejected the pod, often for want of a device', action: 'Check the devices of the node' },
  OutOf: {
    meaning: 'The node rejected the pod, because it has no more of the resource that follows: `OutOfcpu`, `OutOfamd.com/gpu`',
    action: 'Free the resource on the node, or add a node',
  },
} as const satisfies Record<string, ReasonFacts>;

/** Answers of the API server. */
export const API_REASONS = {
  ApiUnreachable: { meaning: 'The API server does not answer', action: 'Check its address, its certificates and the network' },
  ApiBusy: { meaning: 'The API server is overloaded; the request is sent again', action: 'Wait' },
  ApiFailed: { meaning: 'The API server failed, or its answer cannot be understood', action: 'Read the log of the API server' },
  Unauthorized: { meaning: 'The API server does not accept the credentials', action: 'Renew the credentials' },
  Forbidden: {
    meaning: 'The role of the service, or an admission rule, does not allow the request',
    action: 'Extend the role or adapt the rule as the message says',
    stalled: true,
  },
  Invalid: { meaning: 'The API server rejects the object', action: 'Correct the field that the message names', stalled: true },
  NotFound: { meaning: 'The object, its kind or its namespace does not exist', action: 'Create what the message names' },
  AlreadyExists: { meaning: 'An object of this name exists already', action: 'Nothing; the service reads it and continues' },
  Conflict: { meaning: 'The object was changed in the meantime', action: 'Nothing; the service reads it and continues' },
  Expired: { meaning: 'The API server no longer has this version of a list', action: 'Nothing; the service lists again' },
  NotLeading: { meaning: 'Another replica is the leader now, so this one does not write', action: 'Nothing' },
  SlotGone: { meaning: 'The slot was removed while its workload was being applied', action: 'Nothing' },
  PulledByPods: {
    meaning: 'In a cluster, the pods of a slot download its model',
    action: 'Name the model in a slot instead of pulling it',
    stalled: true,
  },
} as const satisfies Record<string, ReasonFacts>;

/** What keeps the service itself from starting or from reading its slots. In the log only. */
export const SERVICE_REASONS = {
  Aborted: { meaning: 'The work was cancelled before it was done', action: 'Nothing' },
  SlotsUnreadable: {
    meaning: 'The slots cannot be read; the last ones that were read stay in force',
    action: 'Make the directory readable, or check the API server',
  },
  SettingUnusable: { meaning: 'A setting cannot be used here', action: 'Change the setting that the message names', stalled: true },
  ListenFailed: { meaning: 'The address of the service cannot be used', action: 'Free the address, or change `SVC_LISTEN`', stalled: true },
  PodmanNotFound: { meaning: 'podman is not installed', action: 'Install podman, or set `SVC_RUNTIME` to `process`', stalled: true },
  NoCluster: { meaning: 'No cluster is configured', action: 'Set `KUBECONFIG`, or run in a pod with a service account', stalled: true },
} as const satisfies Record<string, ReasonFacts>;
