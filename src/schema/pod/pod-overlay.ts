/**
 * The overlay of a slot's pods: the additions and changes to the pod template that the controller renders. Keys and
 * shapes are those of a pod template of Kubernetes. Strict everywhere: keys that are not listed belong to the
 * controller.
 */
import { z } from 'zod';
import { boundedRecord, LabelValue, ObjectName, LabelKey, LabelSelector, optional, table } from './kube-fields.ts';
import { ModelContainer, ServerContainer, PodSecurity } from './pod-containers.ts';
import { Volume } from './pod-volumes.ts';
import { list, rulesAt } from '../slot/slot-rules.ts';

const TopologyKey = LabelKey.describe('Label of nodes; all nodes with the same value are one topology, such as a zone');
const Weight = z.int().min(1).max(100).describe('How much this preference counts, from 1 to 100');
const PodLabelKeys = z.array(LabelKey).max(16).optional();

const NodeExpression = z.strictObject({
  key: LabelKey.describe('Key of the label, or of the field'),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']).describe('How the value is compared'),
  values: optional('Values; one number for "Gt" and "Lt"', z.array(z.string().max(253)).max(50)),
});

const NodeSelectorTerm = z.strictObject({
  matchExpressions: optional('Conditions on the labels of a node', z.array(NodeExpression).max(20)),
  matchFields: optional('Conditions on the fields of a node, such as "metadata.name"', z.array(NodeExpression).max(5)),
});

const NodeAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: table('What a node must have', {
    nodeSelectorTerms: z
      .array(NodeSelectorTerm)
      .min(1)
      .max(20)
      .describe('A node must match one of these; conditions of the controller apply to each'),
  }),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    'What a node should have',
    z.array(z.strictObject({ weight: Weight, preference: NodeSelectorTerm.describe('Nodes that are preferred') })).max(20),
  ),
});

const PodTerm = z.strictObject({
  topologyKey: TopologyKey,
  labelSelector: optional('Pods that are meant. Those of a slot have the label "inference.svc.dev/slot"', LabelSelector),
  namespaces: optional('Namespaces of these pods. Default: that of the slot', z.array(LabelKey).max(20)),
  namespaceSelector: optional('Labels of the namespaces of these pods', LabelSelector),
  matchLabelKeys: PodLabelKeys.describe('Labels in which the values of these pods must be those of the pod itself'),
  mismatchLabelKeys: PodLabelKeys.describe('Labels in which the values of these pods must not be those of the pod itself'),
});

const PodAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: optional('What must be the case', z.array(PodTerm).max(20)),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    'What should be the case',
    z.array(z.strictObject({ weight: Weight, podAffinityTerm: PodTerm.describe('What is preferred') })).max(20),
  ),
});

const Affinity = z.strictObject({
  nodeAffinity: optional('Nodes on which the pods may or should run', NodeAffinity),
  podAffinity: optional('Pods near which the pods must or should run', PodAffinity),
  podAntiAffinity: optional('Pods near which the pods must not or should not run', PodAffinity),
});

const TopologySpreadConstraint = z.strictObject({
  maxSkew: z.int().min(1).max(1000).describe('By how many pods two topologies may differ'),
  topologyKey: TopologyKey,
  whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']).describe('What happens to a pod for which that is impossible'),
  labelSelector: optional('Pods that are counted. Default: those of this revision of the slot', LabelSelector),
  minDomains: optional('Minimum number of topologies, for "DoNotSchedule"', z.int().min(1).max(1000)),
  nodeAffinityPolicy: optional('Whether only nodes that the affinity of the pod allows are counted', z.enum(['Honor', 'Ignore'])),
  nodeTaintsPolicy: optional('Whether only nodes whose taints the pod tolerates are counted', z.enum(['Honor', 'Ignore'])),
  matchLabelKeys: PodLabelKeys.describe('Labels in which the counted pods must have the values of the pod itself'),
});

export const PodOverlay = z
  .strictObject({
    labels: optional('Additional labels of the pods', boundedRecord(LabelValue, 32).superRefine(rulesAt('pod.labels'))),
    annotations: optional(
      'Additional annotations of the pods',
      boundedRecord(z.string().max(32_768), 32).superRefine(rulesAt('pod.annotations')),
    ),
    imagePullSecrets: list(
      'Secrets with credentials for registries, in addition to those of the installation',
      z.strictObject({ name: ObjectName.describe('Name of the Secret') }),
      16,
      'pod.imagePullSecrets',
    ),
    priorityClassName: optional('Priority class: which pods the scheduler may evict for these', ObjectName),
    runtimeClassName: optional('Runtime class: the container runtime, such as "nvidia"', ObjectName),
    schedulerName: optional('Scheduler of the pods. Default: that of the cluster', ObjectName),
    affinity: optional('Nodes and pods that attract or repel the pods, in addition to the "nodeSelector" of the slot', Affinity),
    topologySpreadConstraints: list(
      'How the pods of the slot are spread over nodes and zones',
      TopologySpreadConstraint,
      16,
      'pod.topologySpreadConstraints',
    ),
    securityContext: optional(
      'Security context of the pods, merged into the default. If it sets one of "runAsUser", "runAsGroup" and "fsGroup", the others have no default',
      PodSecurity,
    ),
    volumes: list('Volumes that containers mount with "volumeMounts"; the models are in "storage"', Volume, 50, 'pod.volumes'),
    server: optional('The container of the model server', ServerContainer),
    model: optional('The init container that fetches and verifies the model', ModelContainer),
  })
  .superRefine(rulesAt('pod'));
export type PodOverlay = z.output<typeof PodOverlay>;
