/** What users may set for the containers in the pods of a slot. Everything else in these containers belongs to the controller. */
import { z } from 'zod';
import { EnvName } from '../env-variables.ts';
import { AbsolutePath, boundedRecord, DataKey, ObjectName, PartName, Quantity, RelativePath } from './kube-fields.ts';
import { ContainerSecurity } from '../pod-security.ts';
import type { PodContainer } from '../pod-names.ts';
import { rulesAt } from '../slot/slot-rules.ts';

const Optional = z.boolean().optional().describe('Whether the container starts even if it does not exist');
const KeyRef = (kind: string) =>
  z
    .strictObject({ name: ObjectName.describe(`Name of the ${kind}`), key: DataKey.describe('Key of the value'), optional: Optional })
    .optional()
    .describe(`A value of a ${kind}`);

/** `at`: path of the container in a slot, which the rules are for. */
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
