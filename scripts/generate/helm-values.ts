/** The chart's values: what helm/svc/values.yaml may hold. Slots, settings and toolbox images have the schemas that the program itself reads them by. */
import { z } from 'zod';
import { SettingsSchema } from '../../src/schema/settings.ts';
import { SLOT_NAME_LENGTH, SLOT_NAME_PATTERN } from '../../src/schema/names.ts';
import { SlotDocument } from '../../src/schema/slot-spec.ts';
import { ToolboxManifest } from '../../src/schema/toolbox-images.ts';

const Labels = z.record(z.string(), z.string());
/** Parts of Kubernetes' own objects, which the API server checks. */
const Part = z.looseObject({});
const Parts = z.array(Part);
const OrEmpty = (schema: z.ZodString) => z.union([z.literal(''), schema]);
const Digest = OrEmpty(z.string().regex(/^sha256:[0-9a-f]{64}$/));
const ObjectName = OrEmpty(z.string().regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/));
const Port = z.int().min(1).max(65_535);
const Quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$/);

/** Set by the chart itself from other values, without meaning in a cluster, or a secret, for which `extraEnv` is the place. */
const NOT_FOR_VALUES = {
  SVC_LISTEN: true,
  SVC_RUNTIME: true,
  SVC_PODMAN_SOCKET: true,
  SVC_CONFIG_DIR: true,
  SVC_STATE_DIR: true,
  SVC_MODELS_DIR: true,
  SVC_PROXY_SECRET: true,
  SVC_PORT_RANGE: true,
  SVC_ON_EXIT: true,
  SVC_QUIET_PERIOD: true,
  SVC_NAMESPACE: true,
  SVC_POD_NAME: true,
  SVC_POD_UID: true,
  SVC_IMAGE: true,
  SVC_MODELS_CLAIM: true,
  SVC_MODELS_HOST_PATH: true,
  SVC_GPU_RESOURCES: true,
  SVC_GPU_ALLOCATION: true,
  SVC_STOP_DELAY: true,
  SVC_STOP_GRACE: true,
} as const;

const Models = z.strictObject({
  claim: z.strictObject({
    name: ObjectName.describe('A claim that is there, or a name for the one to be made'),
    create: z.boolean().describe('Makes a claim, and leaves it when the release is uninstalled'),
    size: Quantity,
    accessModes: z.array(z.enum(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'])).min(1),
    storageClassName: z.string(),
  }),
  hostPath: OrEmpty(z.string().startsWith('/')).describe('A directory of each node instead'),
  mountInGateway: z.boolean().describe('Shows them to the gateway too, read-only'),
});

const Gpus = z.strictObject({
  resources: z.record(z.string().regex(/^[a-z]+$/), z.string().regex(/^[a-z0-9.-]+\/[a-z0-9._-]+$/)),
  allocation: z.enum(['auto', 'device-plugin', 'dra']),
});

const NetworkPolicy = z.strictObject({
  enabled: z.boolean(),
  gatewayFrom: Parts.describe('Who may reach the gateway; empty: anybody'),
  slotsFrom: Parts.describe('Who may reach the servers in slots beside the gateway'),
  modelSources: z
    .strictObject({ to: Parts.min(1), ports: z.array(Port).min(1) })
    .nullable()
    .describe('Where pods of slots may fetch models from; null: nowhere'),
  apiServerPorts: z.array(Port).min(1),
});

const ChatUi = z.strictObject({
  enabled: z.boolean(),
  image: z.strictObject({ repository: z.string().min(1), tag: z.string(), digest: Digest }),
  claimName: ObjectName,
  env: Parts,
  resources: Part,
});

export const HelmValues = z.strictObject({
  replicas: z.int().min(0).max(100).describe('How many gateways answer'),
  image: z.strictObject({
    repository: z.string().min(1),
    tag: z.string().describe('Default: the chart’s appVersion'),
    digest: Digest.describe('Instead of a tag'),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
  }),
  imagePullSecrets: Parts,
  fullnameOverride: OrEmpty(z.string().regex(/^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/)),
  settings: SettingsSchema.omit(NOT_FOR_VALUES).describe('Settings of the service'),
  extraEnv: Parts.describe('More of the gateway’s environment, for secrets'),
  slots: z
    .record(z.string().max(SLOT_NAME_LENGTH).regex(new RegExp(SLOT_NAME_PATTERN)), SlotDocument)
    .describe('Slots to make with the release, by name'),
  toolboxes: ToolboxManifest.describe('Images that slots run in, by provider and backend'),
  models: Models.describe('Where models lie that a slot’s own "storage" does not say'),
  gpus: Gpus,
  service: z.strictObject({
    type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
    port: Port,
    nodePort: z.int().min(1).max(65_535).nullable(),
    annotations: Labels,
  }),
  ingress: z.strictObject({
    enabled: z.boolean(),
    className: z.string(),
    host: z.string(),
    tlsSecretName: ObjectName,
    annotations: Labels,
  }),
  httpRoute: z.strictObject({ enabled: z.boolean(), parentRefs: Parts, hostnames: z.array(z.string()), annotations: Labels }),
  serviceAccount: z.strictObject({ create: z.boolean(), name: ObjectName, annotations: Labels }),
  rbac: z.strictObject({ create: z.boolean() }),
  networkPolicy: NetworkPolicy,
  podDisruptionBudget: z.strictObject({
    enabled: z.boolean(),
    maxUnavailable: z.union([z.int().min(1), z.string().regex(/^[0-9]+%$/)]),
  }),
  serviceMonitor: z.strictObject({ enabled: z.boolean(), interval: z.string().regex(/^[0-9]+(ms|s|m|h)$/), labels: Labels }),
  chatUi: ChatUi.describe('Open WebUI, wired to the gateway'),
  resources: Part,
  terminationGracePeriodSeconds: z.int().min(15).max(86_400),
  priorityClassName: z.string(),
  nodeSelector: Labels,
  tolerations: Parts,
  affinity: Part,
  podLabels: Labels,
  podAnnotations: Labels,
});
