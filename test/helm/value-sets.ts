/** Values with which tests render the chart. Together they enable all of its features. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { renderChart } from '../../scripts/render-manifests.ts';

type Json = Readonly<Record<string, unknown>>;

const DIGEST = `sha256:${'a'.repeat(64)}`;
const peer = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'apps' } } };

/** With an empty line, a text of several lines, and what templates and YAML treat specially. */
const MODELS_TOML = `[[models]]
id = "own"
kind = "chat"
family = "{{ not a template }}: '#'"

[[models.files]]
repo = "o/r"
file = "m.gguf"
size = 42
sha256 = "${'a'.repeat(64)}"
`;

export const VALUE_SETS: Readonly<Record<string, Json>> = {
  default: {},
  small: {
    replicas: 1,
    gpus: { allocation: 'device-plugin' },
    networkPolicy: { enabled: false },
    podDisruptionBudget: { enabled: false },
    slots: { primary: { backend: 'cpu', model: { default: 'demo-fox' } } },
  },
  everything: {
    replicas: 3,
    image: { repository: 'registry.example/svc', digest: DIGEST, pullPolicy: 'Always' },
    imagePullSecrets: [{ name: 'registry' }],
    slotPods: {
      imagePullSecrets: [{ name: 'toolboxes' }, { name: 'registry' }],
      user: 1_000_680_000,
      proxy: { httpsProxy: 'http://proxy.example:3128', noProxy: '.example', secretName: 'proxy' },
    },
    fullnameOverride: 'inference',
    commonLabels: { 'example.com/cost-center': 'ml', team: 'platform' },
    commonAnnotations: { 'example.com/owner': 'platform@example.com' },
    auth: {
      enabled: true,
      trustedProxies: ['10.244.0.0/16', '2001:db8::1'],
      identityRoles: { 'Anna@example.com': 'admin', '*@example.com': 'v1-only' },
      proxySecret: { name: 'proxy', key: 'value' },
    },
    limits: { urlSecret: { name: 'limits', key: 'address' } },
    settings: { SVC_LOG_LEVEL: 'debug', SVC_MAX_CONNECTIONS: 1_000_000, SVC_RESYNC: '1m', SVC_BODY_LIMIT: '128Mi' },
    extraEnv: [
      { name: 'MIRROR_PASSWORD', valueFrom: { secretKeyRef: { name: 'mirror', key: 'password' } } },
      { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/private-ca/ca.crt' },
    ],
    extraEnvFrom: [{ secretRef: { name: 'gateway-env', optional: true } }, { prefix: 'APP_', configMapRef: { name: 'app' } }],
    extraVolumes: [{ name: 'private-ca', configMap: { name: 'private-ca', optional: true } }],
    extraVolumeMounts: [{ name: 'private-ca', mountPath: '/etc/private-ca', readOnly: true }],
    slots: {
      primary: {
        backend: 'cuda',
        model: { default: 'dir/model.gguf', aliases: ['gpt-4'], context: 8192, args: ['--flash-attn'] },
        resources: { gpus: 2, memory: '24Gi' },
        env: { CUDA_LAUNCH_BLOCKING: '1' },
        replicas: 2,
        storage: { size: '50Gi', className: 'fast' },
        tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
        pod: {
          labels: { team: 'search' },
          securityContext: { runAsUser: 1_000_680_000 },
          server: {
            resources: { limits: { cpu: 2, 'ephemeral-storage': '1Gi' } },
            env: [{ name: 'API_TOKEN', valueFrom: { secretKeyRef: { name: 'credentials', key: 'token' } } }],
          },
        },
      },
      embed: { backend: 'cpu', load: 'on-demand', lifecycle: { idleTimeout: '15m' }, model: { default: 'demo-embed' } },
    },
    toolboxes: {
      gguf: { cuda: { image: 'registry.example/gguf-cuda:v1', digest: DIGEST }, cpu: { image: 'localhost/gguf:v1', id: DIGEST } },
      stt: { cpu: { image: 'localhost/stt:v1' } },
    },
    models: {
      claim: { create: true, storageClassName: 'shared' },
      catalogue: MODELS_TOML,
      workflowsConfigMapName: 'workflows',
      enginesConfigMapName: 'engines',
      hub: { endpoint: 'https://mirror.example', tokenSecretName: 'hugging-face' },
      acceptedLicenses: ['llama3.2', 'gemma'],
    },
    service: {
      type: 'LoadBalancer',
      port: 8000,
      nodePort: 30080,
      externalTrafficPolicy: 'Local',
      loadBalancerSourceRanges: ['10.0.0.0/8', '2001:db8::/32'],
      loadBalancerClass: 'example.com/internal',
      annotations: { 'example.dev/a': 'b' },
    },
    ingress: {
      enabled: true,
      className: 'nginx',
      host: 'llm.example',
      hosts: [
        { host: 'models.example', paths: [{ path: '/v1' }, { path: '/v2/rerank', pathType: 'Exact' }] },
        { host: '*.llm.example', management: true },
      ],
      tlsSecretName: 'llm-tls',
      tls: [{ secretName: 'models-tls', hosts: ['models.example'] }],
      annotations: { 'nginx.ingress.kubernetes.io/proxy-buffering': 'off' },
    },
    httpRoute: { enabled: true, parentRefs: [{ name: 'public', namespace: 'gateways' }], hostnames: ['llm.example'] },
    serviceAccount: { annotations: { 'example.dev/role': 'inference' } },
    networkPolicy: {
      gatewayFrom: [peer],
      managementFrom: [peer],
      slotsFrom: [peer],
      limitsPorts: [6380],
      modelSources: { to: [{ ipBlock: { cidr: '203.0.113.0/24' } }], ports: [443, 8443] },
    },
    podDisruptionBudget: { maxUnavailable: '25%' },
    serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
    prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
    grafanaDashboard: { enabled: true, folder: 'Inference' },
    chatUi: {
      enabled: true,
      claimName: 'chats',
      tokenSecret: { name: 'chat-token', key: 'token' },
      env: [{ name: 'WEBUI_NAME', value: 'Chat' }],
    },
    deploymentStrategy: { rollingUpdate: { maxUnavailable: '25%', maxSurge: 2 } },
    revisionHistoryLimit: 1,
    priorityClassName: 'system-cluster-critical',
    nodeSelector: { 'kubernetes.io/arch': 'amd64' },
    tolerations: [{ key: 'infra', operator: 'Exists' }],
    affinity: { podAntiAffinity: {} },
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' }],
    podLabels: { team: 'inference' },
    podAnnotations: { 'example.dev/scrape': 'true' },
  },
  'one port and few rights': {
    service: { separateManagement: false },
    auth: { enabled: true },
    settings: { SVC_DISRUPTION_BUDGETS: false },
    rbac: { editSlots: false, readLogs: false, createClaims: false },
    serviceMonitor: { enabled: true },
    gpus: { allocation: 'device-plugin' },
  },
  'models on nodes': {
    rbac: { migrateVersions: true, migrateAllNamespaces: true },
    models: { hostPath: '/srv/models' },
    networkPolicy: { modelSources: null },
    gpus: { allocation: 'dra', resources: { cuda: 'nvidia.com/mig-1g.10gb' } },
  },
  'existing claim, role and service account': {
    models: { claim: { name: 'models' }, mountInGateway: false },
    rbac: { create: false },
    serviceAccount: { create: false, name: 'given' },
    service: { type: 'NodePort' },
    chatUi: { enabled: true },
    auth: { tokensSecret: { create: false, name: 'given-tokens' } },
  },
  'OpenShift, where the cluster chooses users': {
    podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null },
    chatUi: { enabled: true, securityContext: { runAsNonRoot: true, capabilities: { drop: ['ALL'] } } },
    deploymentStrategy: { type: 'Recreate' },
  },
  'long names': {
    fullnameOverride: `${'a'.repeat(70)}`,
    chatUi: { enabled: true },
    models: { claim: { create: true } },
    ingress: { enabled: true, host: 'llm.example' },
  },
};

/** Returns the objects of the chart with these values. */
export async function renderValues(values: Json, namespace = 'inference', release: readonly string[] = []): Promise<readonly Json[]> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-values-'));
  try {
    const file = join(directory, 'values.yaml');
    await writeFile(file, JSON.stringify(values));
    return (await renderChart(['--namespace', namespace, '--values', file, ...release])).map(([, object]) => object);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
