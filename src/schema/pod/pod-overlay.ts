/**
 * The overlay of a slot's pods: the additions and changes to the pod template that the controller renders. Keys and
 * shapes are those of a pod template of Kubernetes. Strict everywhere: keys that are not listed belong to the
 * controller.
 */
import { z } from 'zod';
import { boundedRecord, LabelValue, ObjectName, LabelKey, LabelSelector } from './kube-fields.ts';
import { ModelContainer, ServerContainer, PodSecurity } from './pod-containers.ts';
import { Volume } from './pod-volumes.ts';
import { rulesAt } from '../slot/slot-rules.ts';

const TopologyKey = LabelKey.describe('Label of nodes; all nodes with the same value are one topology, such as a zone');
const Weight = z.int().min(1).max(100).describe('How much this preference counts, from 1 to 100');
const PodLabelKeys = z.array(LabelKey).max(16).optional();

const NodeExpression = z.strictObject({
  key: LabelKey.describe('Key of the label, or of the field'),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']).describe('How the value is compared'),
  values: z.array(z.string().max(253)).max(50).optional().describe('Values; one number for "Gt" and "Lt"'),
});

const NodeSelectorTerm = z.strictObject({
  matchExpressions: z.array(NodeExpression).max(20).optional().describe('Conditions on the labels of a node'),
  matchFields: z.array(NodeExpression).max(5).optional().describe('Conditions on the fields of a node, such as "metadata.name"'),
});

const NodeAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .strictObject({
      nodeSelectorTerms: z
        .array(NodeSelectorTerm)
        .min(1)
        .max(20)
        .describe('A node must match one of these; conditions of the controller apply to each'),
    })
    .optional()
    .describe('What a node must have'),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight: Weight, preference: NodeSelectorTerm.describe('Nodes that are preferred') }))
    .max(20)
    .optional()
    .describe('What a node should have'),
});

const PodTerm = z.strictObject({
  topologyKey: TopologyKey,
  labelSelector: LabelSelector.optional().describe('Pods that are meant. Those of a slot have the label "inference.svc.dev/slot"'),
  namespaces: z.array(LabelKey).max(20).optional().describe('Namespaces of these pods. Default: that of the slot'),
  namespaceSelector: LabelSelector.optional().describe('Labels of the namespaces of these pods'),
  matchLabelKeys: PodLabelKeys.describe('Labels in which the values of these pods must be those of the pod itself'),
  mismatchLabelKeys: PodLabelKeys.describe('Labels in which the values of these pods must not be those of the pod itself'),
});

const PodAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z.array(PodTerm).max(20).optional().describe('What must be the case'),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight: Weight, podAffinityTerm: PodTerm.describe('What is preferred') }))
    .max(20)
    .optional()
    .describe('What should be the case'),
});

const Affinity = z.strictObject({
  nodeAffinity: NodeAffinity.optional().describe('Nodes on which the pods may or should run'),
  podAffinity: PodAffinity.optional().describe('Pods near which the pods must or should run'),
  podAntiAffinity: PodAffinity.optional().describe('Pods near which the pods must not or should not run'),
});

const TopologySpreadConstraint = z.strictObject({
  maxSkew: z.int().min(1).max(1000).describe('By how many pods two topologies may differ'),
  topologyKey: TopologyKey,
  whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']).describe('What happens to a pod for which that is impossible'),
  labelSelector: LabelSelector.optional().describe('Pods that are counted. Default: those of this revision of the slot'),
  minDomains: z.int().min(1).max(1000).optional().describe('Minimum number of topologies, for "DoNotSchedule"'),
  nodeAffinityPolicy: z.enum(['Honor', 'Ignore']).optional().describe('Whether only nodes that the affinity of the pod allows are counted'),
  nodeTaintsPolicy: z.enum(['Honor', 'Ignore']).optional().describe('Whether only nodes whose taints the pod tolerates are counted'),
  matchLabelKeys: PodLabelKeys.describe('Labels in which the counted pods must have the values of the pod itself'),
});

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
