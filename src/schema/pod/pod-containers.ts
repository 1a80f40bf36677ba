/** The parts of a slot's containers that users may set. Everything else belongs to the controller. */
import { z } from 'zod';
import {
  AbsolutePath,
  boundedRecord,
  DataKey,
  ObjectName,
  PartName,
  Quantity,
  RelativePath,
  NumericId,
  optional,
  table,
  type PodContainer,
} from './kube-fields.ts';
import { list, rulesAt } from '../slot/slot-rules.ts';

const Confinement = z.strictObject({
  type: z.enum(['RuntimeDefault', 'Localhost', 'Unconfined']).describe('Which profile is used'),
  localhostProfile: optional('Name of a profile on the node, for "Localhost"', z.string().min(1).max(253)),
});

/** Keys of the security contexts of both pods and containers. */
const SHARED = {
  runAsUser: optional('User id of the processes', NumericId),
  runAsGroup: optional('Group id of the processes', NumericId),
  runAsNonRoot: optional('Whether user 0 is refused. Default: true, except where the devices of a GPU belong to root', z.boolean()),
  seLinuxOptions: table('SELinux labels of the processes', {
    level: optional('SELinux level', z.string().max(253)),
    role: optional('SELinux role', z.string().max(253)),
    type: optional('SELinux type', z.string().max(253)),
    user: optional('SELinux user', z.string().max(253)),
  }),
  seccompProfile: optional('System calls that are allowed. Default: "RuntimeDefault"', Confinement),
  appArmorProfile: optional('AppArmor profile, for Kubernetes 1.30 and newer. Default: that of the container runtime', Confinement),
};

const Capability = z
  .string()
  .max(63)
  .regex(/^[A-Z0-9_]+$/, 'Write the name of a capability, such as "SYS_NICE" or "ALL"');

export const PodSecurity = z.strictObject({
  ...SHARED,
  fsGroup: optional('Group that owns the volumes', NumericId),
  fsGroupChangePolicy: optional(
    'When the owner of the files in a volume is changed. Default: "OnRootMismatch"',
    z.enum(['OnRootMismatch', 'Always']),
  ),
  supplementalGroups: optional(
    'Further groups of the processes, such as the one that owns the devices of a GPU',
    z.array(NumericId).max(50),
  ),
});

const ContainerSecurity = z.strictObject({
  ...SHARED,
  allowPrivilegeEscalation: optional('Whether a process may gain more rights than its parent has. Default: false', z.boolean()),
  privileged: optional('Whether the container may do what root of the node may. Default: false, except with device files', z.boolean()),
  readOnlyRootFilesystem: optional('Whether the files of the image are read-only. Default: true', z.boolean()),
  capabilities: table('Capabilities of the processes', {
    add: optional('Capabilities that are added. Default: none', z.array(Capability).max(50)),
    drop: optional('Capabilities that are removed. Default: "ALL"', z.array(Capability).max(50)),
  }),
});

export const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]*$';
export const ENV_NAME_RULE = 'The name of an environment variable consists of letters, digits and "_" and does not start with a digit';

export const EnvName = z.string().regex(new RegExp(ENV_NAME_PATTERN), ENV_NAME_RULE);

export const PlainText = z
  .string()
  // eslint-disable-next-line no-control-regex -- NUL or a line break would end an argument or a line of an env file early
  .regex(/^[^\x00\r\n]*$/, 'Line breaks and NUL characters are not allowed here');

const Optional = optional('Whether the container starts even if it does not exist', z.boolean());
const KeyRef = (kind: string) =>
  table(`A value of a ${kind}`, {
    name: ObjectName.describe(`Name of the ${kind}`),
    key: DataKey.describe('Key of the value'),
    optional: Optional,
  });

/** `at`: path of the container in a slot, for its rules. */
const valueSource = (at: string) =>
  z
    .strictObject({
      secretKeyRef: KeyRef('Secret'),
      configMapKeyRef: KeyRef('ConfigMap'),
      fieldRef: table('A field of the pod', {
        fieldPath: z.string().min(1).max(253).describe('Path of the field, such as "spec.nodeName"'),
      }),
      resourceFieldRef: table('A resource of the container', {
        resource: z.string().min(1).max(253).describe('Resource of the container, such as "limits.cpu"'),
        divisor: optional('Unit of the value. Default: 1', Quantity),
      }),
    })
    .superRefine(rulesAt(`${at}.env.*.valueFrom`));

const variable = (at: string) =>
  z
    .strictObject({
      name: EnvName.max(253).describe('Name of the variable'),
      value: optional('Value. Secrets belong into "valueFrom"', z.string().max(32_768)),
      valueFrom: optional('Where the value comes from', valueSource(at)),
    })
    .superRefine(rulesAt(`${at}.env.*`));

const variables = (at: string) =>
  z
    .strictObject({
      prefix: optional('Text in front of each name', z.string().max(253)),
      secretRef: table('A Secret', { name: ObjectName.describe('Name of the Secret'), optional: Optional }),
      configMapRef: table('A ConfigMap', { name: ObjectName.describe('Name of the ConfigMap'), optional: Optional }),
    })
    .superRefine(rulesAt(`${at}.envFrom.*`));

const mount = (at: string) =>
  z
    .strictObject({
      name: PartName.describe('Name of a volume in "pod.volumes"'),
      mountPath: AbsolutePath.describe('Absolute path in the container'),
      subPath: optional('Path in the volume. Default: all of it', RelativePath),
      readOnly: optional('Whether it is mounted read-only', z.boolean()),
    })
    .superRefine(rulesAt(`${at}.volumeMounts.*`));

const Amounts = boundedRecord(Quantity, 16);

function containerOverlay(container: PodContainer) {
  const at = `pod.${container}`;
  return z.strictObject({
    resources: table('CPU, memory, ephemeral storage and extended resources. GPUs are in "resources.gpus" of the slot', {
      requests: optional(
        'What the scheduler reserves. Default: memory, as "resources.memory" or the estimate for the model says',
        Amounts.superRefine(rulesAt(`${at}.resources.requests`)),
      ),
      limits: optional(
        'What the container may use at most. Default: memory, as "resources.memory" says',
        Amounts.superRefine(rulesAt(`${at}.resources.limits`)),
      ),
    }),
    env: list('Environment variables, also with values of Secrets and ConfigMaps', variable(at), 100, `${at}.env`),
    envFrom: optional(
      'Secrets and ConfigMaps all of whose values become variables. Variables that are set by name win',
      z.array(variables(at)).max(50),
    ),
    volumeMounts: list('Where the volumes of "pod.volumes" are mounted', mount(at), 50, `${at}.volumeMounts`),
    securityContext: optional('Security context, over that of the pod', ContainerSecurity),
  });
}

export const ServerContainer = containerOverlay('server');
export const ModelContainer = containerOverlay('model');
