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
  type PodContainer,
} from './kube-fields.ts';
import { rulesAt } from '../slot/slot-rules.ts';

const Confinement = z.strictObject({
  type: z.enum(['RuntimeDefault', 'Localhost', 'Unconfined']).describe('Which profile is used'),
  localhostProfile: z.string().min(1).max(253).optional().describe('Name of a profile on the node, for "Localhost"'),
});

/** Keys of the security contexts of both pods and containers. */
const SHARED = {
  runAsUser: NumericId.optional().describe('User id of the processes'),
  runAsGroup: NumericId.optional().describe('Group id of the processes'),
  runAsNonRoot: z
    .boolean()
    .optional()
    .describe('Whether user 0 is refused. Default: true, except where the devices of a GPU belong to root'),
  seLinuxOptions: z
    .strictObject({
      level: z.string().max(253).optional().describe('SELinux level'),
      role: z.string().max(253).optional().describe('SELinux role'),
      type: z.string().max(253).optional().describe('SELinux type'),
      user: z.string().max(253).optional().describe('SELinux user'),
    })
    .optional()
    .describe('SELinux labels of the processes'),
  seccompProfile: Confinement.optional().describe('System calls that are allowed. Default: "RuntimeDefault"'),
  appArmorProfile: Confinement.optional().describe(
    'AppArmor profile, for Kubernetes 1.30 and newer. Default: that of the container runtime',
  ),
};

const Capability = z
  .string()
  .max(63)
  .regex(/^[A-Z0-9_]+$/, 'Write the name of a capability, such as "SYS_NICE" or "ALL"');

export const PodSecurity = z.strictObject({
  ...SHARED,
  fsGroup: NumericId.optional().describe('Group that owns the volumes'),
  fsGroupChangePolicy: z
    .enum(['OnRootMismatch', 'Always'])
    .optional()
    .describe('When the owner of the files in a volume is changed. Default: "OnRootMismatch"'),
  supplementalGroups: z
    .array(NumericId)
    .max(50)
    .optional()
    .describe('Further groups of the processes, such as the one that owns the devices of a GPU'),
});

const ContainerSecurity = z.strictObject({
  ...SHARED,
  allowPrivilegeEscalation: z.boolean().optional().describe('Whether a process may gain more rights than its parent has. Default: false'),
  privileged: z
    .boolean()
    .optional()
    .describe('Whether the container may do what root of the node may. Default: false, except with device files'),
  readOnlyRootFilesystem: z.boolean().optional().describe('Whether the files of the image are read-only. Default: true'),
  capabilities: z
    .strictObject({
      add: z.array(Capability).max(50).optional().describe('Capabilities that are added. Default: none'),
      drop: z.array(Capability).max(50).optional().describe('Capabilities that are removed. Default: "ALL"'),
    })
    .optional()
    .describe('Capabilities of the processes'),
});

export const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]*$';
export const ENV_NAME_RULE = 'The name of an environment variable consists of letters, digits and "_" and does not start with a digit';

export const EnvName = z.string().regex(new RegExp(ENV_NAME_PATTERN), ENV_NAME_RULE);

export const PlainText = z
  .string()
  // eslint-disable-next-line no-control-regex -- NUL or a line break would end an argument or a line of an env file early
  .regex(/^[^\x00\r\n]*$/, 'Line breaks and NUL characters are not allowed here');

const Optional = z.boolean().optional().describe('Whether the container starts even if it does not exist');
const KeyRef = (kind: string) =>
  z
    .strictObject({ name: ObjectName.describe(`Name of the ${kind}`), key: DataKey.describe('Key of the value'), optional: Optional })
    .optional()
    .describe(`A value of a ${kind}`);

/** `at`: path of the container in a slot, for its rules. */
const valueSource = (at: string) =>
  z
    .strictObject({
      secretKeyRef: KeyRef('Secret'),
      configMapKeyRef: KeyRef('ConfigMap'),
      fieldRef: z
        .strictObject({ fieldPath: z.string().min(1).max(253).describe('Path of the field, such as "spec.nodeName"') })
        .optional()
        .describe('A field of the pod'),
      resourceFieldRef: z
        .strictObject({
          resource: z.string().min(1).max(253).describe('Resource of the container, such as "limits.cpu"'),
          divisor: Quantity.optional().describe('Unit of the value. Default: 1'),
        })
        .optional()
        .describe('A resource of the container'),
    })
    .superRefine(rulesAt(`${at}.env.*.valueFrom`));

const variable = (at: string) =>
  z
    .strictObject({
      name: EnvName.max(253).describe('Name of the variable'),
      value: z.string().max(32_768).optional().describe('Value. Secrets belong into "valueFrom"'),
      valueFrom: valueSource(at).optional().describe('Where the value comes from'),
    })
    .superRefine(rulesAt(`${at}.env.*`));

const variables = (at: string) =>
  z
    .strictObject({
      prefix: z.string().max(253).optional().describe('Text in front of each name'),
      secretRef: z
        .strictObject({ name: ObjectName.describe('Name of the Secret'), optional: Optional })
        .optional()
        .describe('A Secret'),
      configMapRef: z
        .strictObject({ name: ObjectName.describe('Name of the ConfigMap'), optional: Optional })
        .optional()
        .describe('A ConfigMap'),
    })
    .superRefine(rulesAt(`${at}.envFrom.*`));

const mount = (at: string) =>
  z
    .strictObject({
      name: PartName.describe('Name of a volume in "pod.volumes"'),
      mountPath: AbsolutePath.describe('Absolute path in the container'),
      subPath: RelativePath.optional().describe('Path in the volume. Default: all of it'),
      readOnly: z.boolean().optional().describe('Whether it is mounted read-only'),
    })
    .superRefine(rulesAt(`${at}.volumeMounts.*`));

const Amounts = boundedRecord(Quantity, 16);

function containerOverlay(container: PodContainer) {
  const at = `pod.${container}`;
  return z.strictObject({
    resources: z
      .strictObject({
        requests: Amounts.superRefine(rulesAt(`${at}.resources.requests`))
          .optional()
          .describe('What the scheduler reserves. Default: memory, as "resources.memory" or the estimate for the model says'),
        limits: Amounts.superRefine(rulesAt(`${at}.resources.limits`))
          .optional()
          .describe('What the container may use at most. Default: memory, as "resources.memory" says'),
      })
      .optional()
      .describe('CPU, memory, ephemeral storage and extended resources. GPUs are in "resources.gpus" of the slot'),
    env: z
      .array(variable(at))
      .max(100)
      .superRefine(rulesAt(`${at}.env`))
      .optional()
      .describe('Environment variables, also with values of Secrets and ConfigMaps'),
    envFrom: z
      .array(variables(at))
      .max(50)
      .optional()
      .describe('Secrets and ConfigMaps all of whose values become variables. Variables that are set by name win'),
    volumeMounts: z
      .array(mount(at))
      .max(50)
      .superRefine(rulesAt(`${at}.volumeMounts`))
      .optional()
      .describe('Where the volumes of "pod.volumes" are mounted'),
    securityContext: ContainerSecurity.optional().describe('Security context, over that of the pod'),
  });
}

export const ServerContainer = containerOverlay('server');
export const ModelContainer = containerOverlay('model');
