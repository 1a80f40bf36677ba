/** The schema of helm/svc/values.yaml. Slots, settings and toolbox images have the schemas with which the service itself validates them. */
import { OF_HOSTS } from './host-settings.ts';
import { z } from 'zod';
import { CountServerUrl } from '../../src/schema/settings/setting-values.ts';
import { SettingsSchema } from '../../src/schema/settings/settings.ts';
import { SCOPES } from '../../src/schema/words/access.ts';
import { SLOT_NAME_LENGTH, SLOT_NAME_PATTERN } from '../../src/schema/words/name-rules.ts';
import { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { ToolboxManifest } from '../../src/schema/slot/toolbox-images.ts';

const Labels = z.record(z.string(), z.string());
const LabelKey = z
  .string()
  .max(317)
  .regex(/^([a-z0-9]([a-z0-9.-]*[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/);
const LabelValue = z.string().regex(/^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/);
/** Parts of Kubernetes objects, which the API server validates, and lists of them. */
const Part = z.looseObject({});
const Parts = z.array(Part);
const OrEmpty = (schema: z.ZodString) => z.union([z.literal(''), schema]);
const Digest = OrEmpty(z.string().regex(/^sha256:[0-9a-f]{64}$/));
const ObjectName = OrEmpty(z.string().regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/));
const Name = z.string().max(253);
/** May be longer than a name of an object, because the chart cuts it. */
const NamePart = OrEmpty(Name.regex(/^[a-z]([a-z0-9-]*[a-z0-9])?$/));
const HostName = Name.regex(/^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/);
const CountOrPercentage = z.union([z.int().min(0), z.string().regex(/^[0-9]+%$/)]);
const Port = z.int().min(1).max(65_535);
const Quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$/);

/** Settings that the chart sets itself, that have no effect in a cluster, or that are secrets and belong in `extraEnv`. */
const NOT_FOR_VALUES = {
  SVC_LISTEN: true,
  SVC_MANAGEMENT_LISTEN: true,
  SVC_WYOMING: true,
  SVC_IDENTITY_ROLES: true,
  SVC_RUNTIME: true,
  SVC_PODMAN_SOCKET: true,
  SVC_CONFIG_DIR: true,
  SVC_STATE_DIR: true,
  SVC_MODELS_DIR: true,
  SVC_AUTH_ENABLED: true,
  SVC_TRUSTED_PROXIES: true,
  SVC_PROXY_SECRET: true,
  SVC_TOKENS_SECRET: true,
  SVC_LIMITS_URL: true,
  SVC_HARDWARE_FILE: true,
  SVC_PORT_RANGE: true,
  SVC_ON_EXIT: true,
  ...OF_HOSTS,
  SVC_WORKERS: true,
  SVC_CONTROL_PLANE: true,
  SVC_NAMESPACE: true,
  SVC_SERVICE_NAME: true,
  SVC_POD_NAME: true,
  SVC_POD_UID: true,
  SVC_IMAGE: true,
  SVC_IMAGE_PULL_SECRETS: true,
  SVC_POD_USER: true,
  SVC_POD_PROXY_SECRET: true,
  SVC_MODELS_CLAIM: true,
  SVC_WORKFLOWS_CONFIG_MAP: true,
  SVC_MODELS_HOST_PATH: true,
  SVC_GPU_RESOURCES: true,
  SVC_GPU_ALLOCATION: true,
  SVC_STOP_DELAY: true,
  SVC_STOP_GRACE: true,
  SVC_HF_TOKEN_SECRET: true,
  SVC_ACCEPTED_LICENSES: true,
  SVC_PULL_CONNECTIONS: true, // The pods of slots download models, not the gateway.
  SVC_PULL_BANDWIDTH: true,
} as const;
/** Variables that the chart gives to every gateway. A second entry of the same name would replace them, or make an upgrade fail. */
export const SET_BY_CHART = [
  'SVC_RUNTIME',
  'SVC_LISTEN',
  'SVC_MANAGEMENT_LISTEN',
  'SVC_IDENTITY_ROLES',
  'SVC_SERVICE_NAME',
  'SVC_ALLOWED_HOSTS',
  'SVC_NAMESPACE',
  'SVC_POD_NAME',
  'SVC_POD_UID',
  'SVC_STOP_DELAY',
  'SVC_STOP_GRACE',
  'SVC_IMAGE',
  'SVC_TOKENS_SECRET',
  'SVC_GPU_RESOURCES',
  'SVC_GPU_ALLOCATION',
] as const;

const Models = z.strictObject({
  claim: z.strictObject({
    name: ObjectName.describe('Name of an existing claim, or of the claim to create'),
    create: z.boolean().describe('Whether to create a claim. It is kept when the release is uninstalled'),
    size: Quantity,
    accessModes: z.array(z.enum(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'])).min(1),
    storageClassName: z.string(),
  }),
  hostPath: OrEmpty(z.string().startsWith('/')).describe('Directory on each node, instead of a claim'),
  catalogue: z.string().max(900_000).describe('Text of models.toml, which adds models to the shipped catalogue'),
  hub: z.strictObject({
    endpoint: OrEmpty(z.string().regex(/^https?:\/\/[^\s@]+$/)).describe(
      'Address of a mirror of the Hugging Face Hub, without credentials',
    ),
    tokenSecretName: ObjectName,
  }),
  enginesConfigMapName: ObjectName.describe('ConfigMap with engines, under keys that end in ".toml"'),
  workflowsConfigMapName: ObjectName.describe('ConfigMap with workflows for images, under keys that end in ".workflow.json"'),
  acceptedLicenses: z
    .array(z.string().regex(/^[A-Za-z0-9._-]+$/))
    .describe('Licences that restrict the use of models, and that you accept'),
  mountInGateway: z.boolean().describe('Whether to mount the models into the gateway too, read-only'),
});

const Proxy = OrEmpty(z.string().regex(/^https?:\/\/[^\s@]+$/)).describe('URL of a proxy, without credentials');

const SlotPods = z.strictObject({
  imagePullSecrets: Parts,
  user: z
    .union([z.literal(['', 'any']), z.int().min(1).max(2_147_483_647)])
    .describe('Id of the user and of the group of the processes; "any": the cluster decides'),
  proxy: z.strictObject({ httpProxy: Proxy, httpsProxy: Proxy, noProxy: z.string(), secretName: ObjectName }),
});

const Gpus = z.strictObject({
  resources: z.record(z.string().regex(/^[a-z]+$/), z.string().regex(/^[a-z0-9.-]+\/[a-z0-9._-]+$/)),
  allocation: z.enum(['auto', 'device-plugin', 'dra']),
});

const NetworkPolicy = z.strictObject({
  enabled: z.boolean(),
  gatewayFrom: Parts.describe('Peers that may connect to the port for models. Default: all'),
  managementFrom: Parts.describe('Peers, besides the pods of the namespace, that may connect to the management port'),
  slotsFrom: Parts.describe('Peers, besides the gateway, that may connect to the servers in slots'),
  limitsPorts: z.array(Port).min(1).describe('Ports of the server of "limits"'),
  modelSources: z
    .strictObject({ to: Parts.min(1), ports: z.array(Port).min(1) })
    .nullable()
    .describe('Destinations from which the pods of slots may download models; null allows none'),
  apiServerPorts: z.array(Port).min(1),
});

const Service = z.strictObject({
  separateManagement: z.boolean().describe('Whether management has a port and a Service of its own'),
  type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
  port: Port,
  nodePort: z.int().min(1).max(65_535).nullable(),
  externalTrafficPolicy: z.enum(['', 'Cluster', 'Local']),
  loadBalancerSourceRanges: z.array(z.string().regex(/^[0-9a-fA-F.:]+\/[0-9]{1,3}$/)).describe('Networks, for example 10.0.0.0/8'),
  loadBalancerClass: z.string(),
  annotations: Labels,
});

const Ingress = z.strictObject({
  enabled: z.boolean(),
  className: z.string(),
  host: OrEmpty(HostName),
  hosts: z.array(
    z.strictObject({
      host: HostName,
      management: z.boolean().optional().describe('Whether the host leads to the management port, which serves models too'),
      paths: z
        .array(
          z.strictObject({ path: z.string().startsWith('/'), pathType: z.enum(['Exact', 'ImplementationSpecific', 'Prefix']).optional() }),
        )
        .optional(),
    }),
  ),
  tlsSecretName: ObjectName,
  tls: z.array(z.strictObject({ secretName: z.string().min(1).optional(), hosts: z.array(HostName).min(1) })),
  annotations: Labels,
});

/** Users remove a default with null. Helm does that before it applies the schema, but editors apply the schema to the file itself. */
const UserId = z.int().min(0).nullable().optional();
const PodSecurityContext = z.looseObject({
  runAsNonRoot: z.boolean().nullable().optional(),
  runAsUser: UserId,
  runAsGroup: UserId,
  fsGroup: UserId,
});
const SecurityContext = z.looseObject({
  allowPrivilegeEscalation: z.boolean().nullable().optional(),
  readOnlyRootFilesystem: z.boolean().nullable().optional(),
  privileged: z.boolean().nullable().optional(),
  runAsNonRoot: z.boolean().nullable().optional(),
  runAsUser: UserId,
  runAsGroup: UserId,
});

/** Parts with a name, as in the pod of the gateway. */
const Named = z.array(z.looseObject({ name: z.string().min(1) }));

/** A key of an existing Secret. */
const SecretKey = z.strictObject({ name: ObjectName, key: z.string().regex(/^[-._a-zA-Z0-9]+$/) });

const Auth = z.strictObject({
  enabled: z.boolean().describe('Whether requests need credentials'),
  tokensSecret: z.strictObject({ name: ObjectName, create: z.boolean() }).describe('The Secret with the tokens'),
  trustedProxies: z
    .array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]))
    .describe('Addresses and ranges of proxies whose X-Forwarded-Email counts; with authentication, they require proxySecret'),
  identityRoles: z
    .record(z.string().regex(/^(\*|\*@[^\s@,*]+|[^\s,*]+)$/), z.enum(SCOPES))
    .describe('Scopes of forwarded identities, by address, "*@domain" or "*"'),
  proxySecret: SecretKey.describe('Secret with which the proxy proves itself'),
});

const ChatUi = z.strictObject({
  enabled: z.boolean(),
  image: z.strictObject({ repository: z.string().min(1), tag: z.string(), digest: Digest }),
  claimName: ObjectName,
  tokenSecret: SecretKey.describe('Secret with the token of Open WebUI'),
  env: Named,
  podSecurityContext: PodSecurityContext,
  securityContext: SecurityContext,
  resources: Part,
});

export const HelmValues = z.strictObject({
  replicas: z.int().min(0).max(100).describe('Number of gateways'),
  image: z.strictObject({
    repository: z.string().min(1),
    tag: z.string().describe('Tag of the image. Default: the appVersion of the chart'),
    digest: Digest.describe('Digest of the image, instead of a tag'),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
  }),
  imagePullSecrets: Named,
  nameOverride: NamePart,
  fullnameOverride: NamePart,
  commonLabels: z.record(LabelKey, LabelValue),
  commonAnnotations: z.record(LabelKey, z.string()),
  auth: Auth.describe('Who may use the service'),
  limits: z
    .strictObject({ url: OrEmpty(CountServerUrl.regex(/^(redis|valkey)s?:\/\/[^\s@]+$/)), urlSecret: SecretKey })
    .describe('Server of counts of callers'),
  settings: SettingsSchema.omit(NOT_FOR_VALUES).describe('Settings of the service; see docs/reference/settings.md'),
  extraEnv: Named.describe('Additional environment variables of the gateway, for example from secrets'),
  extraEnvFrom: z.array(
    z.strictObject({ prefix: z.string().optional(), configMapRef: Named.element.optional(), secretRef: Named.element.optional() }),
  ),
  extraVolumes: Named,
  extraVolumeMounts: z.array(z.looseObject({ name: z.string().min(1), mountPath: z.string().startsWith('/') })),
  slots: z
    .record(z.string().max(SLOT_NAME_LENGTH).regex(new RegExp(SLOT_NAME_PATTERN)), SlotDocument)
    .describe('Slots to create with the release, by name'),
  slotPods: SlotPods.describe('What the pods of all slots have in common'),
  toolboxes: ToolboxManifest.describe('Images in which slots run, by provider and backend'),
  models: Models.describe('Storage for the models of slots that do not set "storage"'),
  gpus: Gpus,
  service: Service,
  ingress: Ingress,
  httpRoute: z.strictObject({ enabled: z.boolean(), parentRefs: Parts, hostnames: z.array(z.string()), annotations: Labels }),
  serviceAccount: z.strictObject({ create: z.boolean(), name: ObjectName, annotations: Labels }),
  rbac: z.strictObject({
    create: z.boolean(),
    editSlots: z.boolean(),
    readLogs: z.boolean(),
    createClaims: z.boolean(),
    migrateVersions: z.boolean(),
    migrateAllNamespaces: z.boolean(),
  }),
  networkPolicy: NetworkPolicy,
  podDisruptionBudget: z.strictObject({
    enabled: z.boolean(),
    maxUnavailable: z.union([z.int().min(1), z.string().regex(/^[0-9]+%$/)]),
  }),
  serviceMonitor: z.strictObject({ enabled: z.boolean(), interval: z.string().regex(/^[0-9]+(ms|s|m|h)$/), labels: Labels }),
  prometheusRule: z.strictObject({ enabled: z.boolean(), labels: Labels }),
  grafanaDashboard: z.strictObject({
    enabled: z.boolean(),
    labels: Labels.describe('Labels by which the sidecar of Grafana selects ConfigMaps'),
    folder: z.string().describe('Folder of the dashboard in Grafana. Default: the sidecar’s'),
    folderAnnotation: z.string().min(1).describe('Annotation in which the sidecar looks for the folder'),
  }),
  chatUi: ChatUi.describe('Open WebUI, connected to the gateway'),
  resources: Part,
  podSecurityContext: PodSecurityContext,
  securityContext: SecurityContext,
  deploymentStrategy: z.strictObject({
    type: z.enum(['RollingUpdate', 'Recreate']),
    rollingUpdate: z.strictObject({ maxUnavailable: CountOrPercentage, maxSurge: CountOrPercentage }),
  }),
  revisionHistoryLimit: z.int().min(0).max(100),
  terminationGracePeriodSeconds: z.int().min(15).max(86_400),
  priorityClassName: z.string(),
  nodeSelector: Labels,
  tolerations: Parts,
  affinity: Part,
  topologySpreadConstraints: z.array(
    z.looseObject({
      maxSkew: z.int().min(1),
      topologyKey: z.string().min(1),
      whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']),
    }),
  ),
  podLabels: z.record(LabelKey, LabelValue),
  podAnnotations: Labels,
});
