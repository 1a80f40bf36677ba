/** Explains the scheduler's message for a pod that fits no node: the cause on each node, and the fix. Pure. */
import type { PodFacts } from './pod-facts.ts';
import { backendLabel, SERVER_CONTAINER } from './object-names.ts';
import { truncate } from '../../client/decide/object-fields.ts';

interface Cause {
  /** The scheduler counts each node once. */
  readonly nodes: number;
  readonly text: string;
}

interface Explanation {
  readonly why: string;
  readonly advice?: string;
}

const LONGEST_CAUSE = 300;

/** `message`: the one of the condition `PodScheduled`. Unknown causes are quoted unchanged. */
export function placementMessage(message: string, pod: PodFacts): string {
  const { total, causes } = parseCauses(message);
  if (causes.length === 0) return `No node fits the pod yet${message === '' ? '' : `: ${truncate(message, LONGEST_CAUSE)}`}`;
  const explained = causes.map((cause) => ({ cause, ...explain(cause.text, pod) }));
  const whys = explained.map(({ cause, why }) => (total > 1 ? `${why} (${cause.nodes} of ${total} nodes)` : why));
  const [first, ...others] = new Set(explained.flatMap(({ advice }) => advice ?? []));
  const alternatives = others.map((each) => `; or ${each.charAt(0).toLowerCase()}${each.slice(1)}`).join('');
  return `No node fits the pod: ${whys.join(', ')}${first === undefined ? '' : `. ${first}${alternatives}`}`;
}

/** `0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable. preemption: …` */
function parseCauses(message: string): { readonly total: number; readonly causes: readonly Cause[] } {
  const match = /^0\/(\d+) nodes are available: ([^]*)$/.exec(message);
  if (match === null) {
    const bare = message.replace(/[. ]+$/, '');
    return { total: 0, causes: isKnown(bare) ? [{ nodes: 0, text: bare }] : [] };
  }
  const [, total = '0', rest = ''] = match;
  const parts = rest
    .replace(/\.? *preemption:[^]*$/, '')
    .replace(/[. ]+$/, '')
    .split(/, (?=\d+ )/);
  const causes = parts
    .map((part) => /^(\d+) ([^]*)$/.exec(part))
    .flatMap((found): Cause[] => (found === null ? [] : [{ nodes: Number(found[1]), text: found[2] ?? '' }]));
  return { total: Number(total), causes };
}

/** Pattern, cause and fix. `$1` stands for the first group of the pattern. */
const KNOWN: readonly (readonly [RegExp, string, string])[] = [
  [/^Insufficient (memory)$/, 'not enough free $1', 'Free memory, add a node, or lower "resources.memory"'],
  [/^Insufficient (cpu|ephemeral-storage)$/, 'not enough free $1', 'Free some $1 or add a node'],
  [
    /^Insufficient (\S+\/\S+)$/,
    'no free "$1"',
    'Add a node that has it with its device plugin, unload another slot, or choose another "backend", "gpus" or "gpuResource"',
  ],
  [
    /had (?:untolerated )?taint \{node\.kubernetes\.io\/([a-z-]+):?[^}]*\}/,
    'currently not usable ($1)',
    'Inspect the node with "kubectl describe node"',
  ],
  [/had (?:untolerated )?taint \{([^}]*?):? *\}/, 'reserved by the taint "$1"', 'Add it to "tolerations"'],
  [/had untolerated taint\(s\)/, 'reserved by taints', 'Add them to "tolerations"'],
  [/were unschedulable/, 'cordoned', 'Allow new pods with "kubectl uncordon NODE"'],
  [/^persistentvolumeclaim "([^"]+)" not found$/, 'the claim "$1" does not exist', 'Create the claim, or name another one in "storage"'],
  [
    /unbound immediate PersistentVolumeClaims/,
    'the claim for the models has no volume yet',
    'See "kubectl describe pvc": the storage class may be missing ("storage.className")',
  ],
  [
    /volume node affinity conflict|didn't find available persistent volumes/,
    'the models are on a volume of another node or zone',
    'Free resources there, or choose another "storage"',
  ],
  [
    /didn't (?:match pod anti-affinity|satisfy existing pods anti-affinity) rules/,
    'pods run there that repel the pod',
    'Add a node, or change "pod.affinity.podAntiAffinity" of the slots',
  ],
  [
    /didn't match pod affinity(?:\/anti-affinity)? rules/,
    'no pod runs there that must attract the pod',
    'Start that pod, or change "pod.affinity.podAffinity"',
  ],
  [
    /didn't match pod topology spread constraints/,
    'too many of the pods that "pod.topologySpreadConstraints" counts run there',
    'Add a node elsewhere, or set "whenUnsatisfiable" to "ScheduleAnyway"',
  ],
  [/^Too many pods$/, 'pod limit reached', 'Add a node'],
  [
    /cannot allocate all claims|resourceclaim|resource claim/i,
    'no free device of the requested class',
    'Add a node that has one and its DRA driver, unload another slot, or set "SVC_GPU_ALLOCATION" to "device-plugin"',
  ],
];

const LABELS_MISMATCH = /didn't match (Pod's )?node (affinity\/selector|affinity|selector)/;

const isKnown = (text: string): boolean => LABELS_MISMATCH.test(text) || KNOWN.some(([pattern]) => pattern.test(text));

function explain(text: string, pod: PodFacts): Explanation {
  if (LABELS_MISMATCH.test(text)) return explainLabels(requiredLabels(pod), Object.keys(pod.spec.nodeSelector ?? {}).length > 0);
  for (const [pattern, why, advice] of KNOWN) {
    const match = pattern.exec(text);
    if (match === null) continue;
    const [, group = ''] = match;
    const fill = (template: string): string => template.replace('$1', () => group);
    return { why: `${fill(why)}${requested(pod, group)}`, advice: fill(advice) };
  }
  return { why: truncate(text, LONGEST_CAUSE) };
}

const BACKEND_LABEL = backendLabel('');

/** `selected`: the first label is one of the slot's `nodeSelector`. */
function explainLabels(labels: readonly string[], selected: boolean): Explanation {
  const [first] = labels;
  if (first === undefined)
    return { why: 'no node has the requested labels', advice: 'Change "pod.affinity.nodeAffinity", or label a node' };
  const keys = first.startsWith(BACKEND_LABEL) ? '"backend" or "deviceAccess"' : selected ? '"nodeSelector"' : '"pod.affinity"';
  return {
    why: `no node has the ${labels.length === 1 ? 'label' : 'labels'} ${labels.map((label) => `"${label}"`).join(', ')}`,
    advice: `Label a suitable node with "kubectl label node NAME ${first}", or change ${keys}`,
  };
}

function requested(pod: PodFacts, resource: string): string {
  const resources = pod.spec.containers.find(({ name }) => name === SERVER_CONTAINER)?.resources;
  const amount = resources?.requests?.[resource] ?? resources?.limits?.[resource];
  return amount === undefined ? '' : ` (${amount} requested)`;
}

function requiredLabels({ spec }: PodFacts): readonly string[] {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  // Other operators require no label with a certain value.
  const expressions = terms.flatMap(({ matchExpressions = [] }) => matchExpressions.filter(({ operator }) => operator === 'In'));
  return [
    ...Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`),
    ...expressions.map(({ key, values }) => `${key}=${values?.[0] ?? ''}`),
  ];
}
