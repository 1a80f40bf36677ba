/** Renders the pod template of a workload, in the order and form in which the server stores it. Pure. */
import type { ClusterWorkload } from '../../../reconciler/ports.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import type { PodOverlay } from '../../../schema/pod/pod-overlay.ts';
import { deviceDemand, isPrivileged, needsRoot, nodeAffinity, type DeviceDemand, type GpuAllocation } from './container-devices.ts';
import {
  MODEL_CONTAINER,
  MODELS_TARGET,
  podLabels,
  PORT_NAME,
  revisionedName,
  SERVER_CONTAINER,
  type KubeSettings,
  type KubeWorkload,
} from './object-names.ts';
import {
  containerSecurity,
  mergeAffinity,
  overlayContainer,
  overlayVolumes,
  podFields,
  podSecurity,
  pullSecrets,
} from './apply-overlay.ts';
import { PIN_KEY, PIN_VARIABLE } from '../../../models/decide/pin.ts';
import { proxyEntries } from './pod-proxy.ts';
import { quantityOfBytes } from '../../client/decide/object-fields.ts';
import { podVolumes, type PodVolumes } from './model-volumes.ts';

type Part = Readonly<Record<string, unknown>>;

/** Enough, since a fetched model is streamed to disk. */
const FETCH_MEMORY = '64Mi';
/** A slot opens when this probe passes. It fails after the reconciler's timeout, whose message is clearer. */
const STARTUP_PERIOD_S = 1;
const STARTUP_MARGIN_S = 15;

export function podTemplate(workload: KubeWorkload, settings: KubeSettings, allocation: GpuAllocation): Part {
  const { cluster } = workload;
  const { pod = {} } = cluster;
  const demand = deviceDemand(workload, settings.SVC_GPU_RESOURCES, allocation);
  const volumes = podVolumes(workload, demand, settings);
  return {
    metadata: {
      labels: { ...pod.labels, ...podLabels(workload) },
      annotations: {
        ...pod.annotations,
        'kubectl.kubernetes.io/default-container': SERVER_CONTAINER,
        ...(demand.kind === 'files' && demand.cdiNames.length > 0 ? { 'cdi.k8s.io/svc': demand.cdiNames.join(',') } : {}),
      },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...defined({ serviceAccountName: cluster.serviceAccountName }),
      terminationGracePeriodSeconds: graceSeconds(cluster.drainTimeoutMs),
      ...pullSecrets(pod, settings.SVC_IMAGE_PULL_SECRETS),
      ...podFields(pod, podLabels(workload)),
      securityContext: podSecurity(pod, settings.SVC_POD_USER),
      ...mergeAffinity(pod, nodeAffinity(cluster, demand)),
      nodeSelector: cluster.nodeSelector,
      tolerations: cluster.tolerations,
      ...(demand.kind === 'claim' ? { resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: demand.template }] } : {}),
      ...initContainers(cluster, volumes, settings),
      containers: [overlayContainer(server(workload, demand, volumes, settings), pod.server, demand)],
      volumes: [...volumes.volumes, ...overlayVolumes(pod)],
    },
  };
}

function server(workload: KubeWorkload, demand: DeviceDemand, volumes: PodVolumes, settings: KubeSettings): Part {
  const { cluster, port } = workload;
  const { pod = {} } = cluster;
  const [program, ...rest] = workload.argv;
  const env = proxies(settings, pod.server, Object.keys(workload.env));
  return {
    name: SERVER_CONTAINER,
    image: workload.image.reference,
    imagePullPolicy: 'IfNotPresent',
    // Both are set, so that the entrypoint of the image never adds arguments.
    command: [verbatim(program)],
    args: rest.map(verbatim),
    ...(env.length === 0 ? {} : { env }),
    envFrom: [{ configMapRef: { name: revisionedName(workload) } }],
    ports: [{ name: PORT_NAME, containerPort: port.container, protocol: 'TCP' }],
    resources: resources(workload, demand),
    // The end of the log explains why the server exited.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: volumes.mounts,
    securityContext: securityContext(demand, cluster),
    ...probes(cluster),
    lifecycle: preStopHook(port.container),
  };
}

/** Escapes `$`: Kubernetes expands `$(NAME)` and turns `$$` into `$`. */
export const verbatim = (text: string): string => text.replaceAll('$', '$$$$');

/**
 * Requests the memory that admission counts, but at most the limit: the server would reject more. A model on a GPU is
 * in the GPU's memory: requesting the same amount of node memory would exclude nodes that can run it.
 */
function resources(workload: KubeWorkload, demand: DeviceDemand): Part {
  const limit = workload.memoryLimitBytes;
  const hasGpu = demand.kind === 'resource' || demand.kind === 'claim';
  const countedBytes = (hasGpu ? limit : workload.cluster.memoryBytes) ?? 0;
  const requestedBytes = Math.min(countedBytes, limit ?? countedBytes);
  const device = demand.kind === 'resource' ? { [demand.resource]: String(demand.count) } : {};
  const limits = { ...(limit === undefined ? {} : { memory: quantityOfBytes(limit) }), ...device };
  return {
    ...(requestedBytes > 0 ? { requests: { memory: quantityOfBytes(requestedBytes) } } : {}),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(demand.kind === 'claim' ? { claims: [{ name: 'gpu' }] } : {}),
  };
}

const CONFINED = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true } as const;
const AS_ROOT = { runAsNonRoot: false, runAsUser: 0, runAsGroup: 0 } as const;
/** A pod has no setting for RLIMIT_MEMLOCK: the server of the NPU raises it itself, which root without this may not. */
const MAY_LOCK_MEMORY = { capabilities: { add: ['SYS_RESOURCE'], drop: ['ALL'] } } as const;
const WRITER = { ...AS_ROOT, capabilities: { add: ['DAC_OVERRIDE'], drop: ['ALL'] } } as const;

function securityContext(demand: DeviceDemand, { backend, pod = {} }: Pick<ClusterWorkload, 'backend' | 'pod'>): Part {
  const confined = isPrivileged(demand) ? { privileged: true, readOnlyRootFilesystem: true } : CONFINED;
  const own = { ...(needsRoot(demand) ? AS_ROOT : {}), ...(backend === 'npu' && !isPrivileged(demand) ? MAY_LOCK_MEMORY : {}) };
  return containerSecurity(pod, pod.server, confined, own);
}

function proxies({ podProxy, SVC_POD_PROXY_SECRET }: KubeSettings, overlay: PodOverlay['server'], taken: readonly string[]) {
  const names = [...taken, ...(overlay?.env ?? []).map(({ name }) => name)];
  return proxyEntries(podProxy ?? {}, SVC_POD_PROXY_SECRET, names);
}

/** Readiness removes a pod from load balancing quickly. Liveness is tolerant: a restart would lose requests. */
function probes({ readyPath, startTimeoutMs }: ClusterWorkload): Part {
  const httpGet = { path: readyPath, port: PORT_NAME };
  const startS = Math.ceil(startTimeoutMs / 1000) + STARTUP_MARGIN_S;
  return {
    startupProbe: { httpGet, periodSeconds: STARTUP_PERIOD_S, timeoutSeconds: 5, failureThreshold: Math.ceil(startS / STARTUP_PERIOD_S) },
    readinessProbe: { httpGet, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 3 },
    livenessProbe: { httpGet, periodSeconds: 20, timeoutSeconds: 20, failureThreshold: 6 },
  };
}

/** The token comes only from a Secret. A slot may set the variables of the Hub itself. */
function modelSource({ pinnedBy, pod }: ClusterWorkload, { hubEndpoint, SVC_HF_TOKEN_SECRET: secret }: KubeSettings): readonly Part[] {
  if (pinnedBy === undefined) return [];
  const own = new Set((pod?.model?.env ?? []).map(({ name }) => name));
  const endpoint = hubEndpoint === undefined ? [] : [{ name: 'HF_ENDPOINT', value: verbatim(hubEndpoint) }];
  const token =
    secret === undefined ? [] : [{ name: 'HF_TOKEN', valueFrom: { secretKeyRef: { name: secret, key: 'HF_TOKEN', optional: true } } }];
  return [
    { name: PIN_VARIABLE, valueFrom: { configMapKeyRef: { name: pinnedBy.object, key: PIN_KEY } } },
    ...[...endpoint, ...token].filter(({ name }) => !own.has(name)),
  ];
}

function initContainers(cluster: ClusterWorkload, volumes: PodVolumes, settings: KubeSettings): Part {
  const { SVC_IMAGE: image } = settings;
  if (image === undefined || volumes.modelMounts === undefined) return {};
  const { pod = {} } = cluster;
  const env = proxies(settings, pod.model, []);
  // With it, the container looks for the workflow where the gateway does.
  const workflows = volumes.workflows === undefined ? [] : [{ name: 'SVC_WORKFLOWS_CONFIG_MAP', value: volumes.workflows }];
  const fetcher = {
    name: MODEL_CONTAINER,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['svcctl', 'model', 'fetch', verbatim(cluster.model)],
    args: [],
    env: [{ name: 'SVC_MODELS_DIR', value: MODELS_TARGET }, ...workflows, ...modelSource(cluster, settings), ...env],
    // The reason for a failure is taken from the termination message.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    resources: { requests: { memory: FETCH_MEMORY } },
    volumeMounts: volumes.modelMounts,
    // A directory of the node may belong to any user; this one capability makes it writable on every node.
    securityContext: containerSecurity(pod, pod.model, CONFINED, volumes.modelsOnNode ? WRITER : {}),
  };
  return { initContainers: [overlayContainer(fetcher, pod.model)] };
}

/** Time for every gateway replica to see that the pod is terminating: the delay of watches on a busy cluster. */
const ENDPOINT_LAG_S = 2;
/** Time for the server to exit after its last request. */
const SHUTDOWN_S = 10;

/** A stop that leaves the server less time than it needs to exit does not wait for requests. */
export const isImmediate = (graceMs: number): boolean => graceMs < SHUTDOWN_S * 1000;

const graceSeconds = (drainTimeoutMs: number): number => Math.ceil(drainTimeoutMs / 1000) + ENDPOINT_LAG_S + SHUTDOWN_S;

/**
 * Waits while connections to the port are established (state 01 in `/proc/net/tcp`, the port in hexadecimal). Needs
 * only shell built-ins and `sleep`; in an image without a shell the server is stopped at once.
 */
function preStopHook(port: number): Readonly<Record<string, unknown>> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const script = [
    `sleep ${ENDPOINT_LAG_S}`,
    'busy() {',
    '  for table in /proc/net/tcp /proc/net/tcp6; do',
    '    [ -r "$table" ] || continue',
    `    while read -r _ own _ state _; do case "$own $state" in *":${hex} 01") return 0 ;; esac; done <"$table"`,
    '  done',
    '  return 1',
    '}',
    'while busy; do sleep 1; done',
  ].join('\n');
  return { preStop: { exec: { command: ['/bin/sh', '-c', script] } } };
}
