/**
 * The overlay of a slot's pods: what users may add to the pod template that the controller renders, and change in it. Keys and shapes are those of a pod
 * template of Kubernetes. Strict everywhere: what is not listed belongs to the controller (`pod-owned-keys.ts` says why), so it is refused.
 */
import { z } from 'zod';
import { boundedRecord, LabelValue, ObjectName } from './kube-fields.ts';
import { Affinity, TopologySpreadConstraint } from '../pod-affinity.ts';
import { ModelContainer, ServerContainer } from './pod-containers.ts';
import { PodSecurity } from '../pod-security.ts';
import { Volume } from './pod-volumes.ts';
import { rulesAt } from '../slot/slot-rules.ts';

export const PodOverlay = z
  .strictObject({
    labels: boundedRecord(LabelValue, 32).superRefine(rulesAt('pod.labels')).optional().describe('Additional labels of the pods'),
    annotations: boundedRecord(z.string().max(32_768), 32)
      .superRefine(rulesAt('pod.annotations'))
      .optional()
      .describe('Additional annotations of the pods'),
    imagePullSecrets: z
      .array(z.strictObject({ name: ObjectName.describe('Name of the Secret') }))
      .max(16)
      .superRefine(rulesAt('pod.imagePullSecrets'))
      .optional()
      .describe('Secrets with credentials for registries, in addition to those of the installation'),
    priorityClassName: ObjectName.optional().describe('Priority class: which pods the scheduler may evict for these'),
    runtimeClassName: ObjectName.optional().describe('Runtime class: the container runtime, such as "nvidia"'),
    schedulerName: ObjectName.optional().describe('Scheduler of the pods. Default: that of the cluster'),
    affinity: Affinity.optional().describe('Nodes and pods that attract or repel the pods, in addition to the "nodeSelector" of the slot'),
    topologySpreadConstraints: z
      .array(TopologySpreadConstraint)
      .max(16)
      .superRefine(rulesAt('pod.topologySpreadConstraints'))
      .optional()
      .describe('How the pods of the slot are spread over nodes and zones'),
    securityContext: PodSecurity.optional().describe(
      'Security context of the pods, merged into the default. If it sets one of "runAsUser", "runAsGroup" and "fsGroup", the others have no default',
    ),
    volumes: z
      .array(Volume)
      .max(50)
      .superRefine(rulesAt('pod.volumes'))
      .optional()
      .describe('Volumes that containers mount with "volumeMounts"; the models are in "storage"'),
    server: ServerContainer.optional().describe('The container of the model server'),
    model: ModelContainer.optional().describe('The init container that fetches and verifies the model'),
  })
  .superRefine(rulesAt('pod'));
export type PodOverlay = z.output<typeof PodOverlay>;
