/** Rules about the overlay of a slot's pods that its schema cannot express, for zod and for CEL. */
import { EXTENDED_RESOURCE, LABEL_KEY_PATTERN, LABEL_PREFIX, POD_CONTAINERS, tableAt, tablesAt, type PodContainer } from './kube-fields.ts';

type Table = Readonly<Record<string, unknown>>;

/** Kinds of volumes that users may add. Exactly one is set for each volume. */
const VOLUME_SOURCES = [
  'secret',
  'configMap',
  'emptyDir',
  'persistentVolumeClaim',
  'projected',
  'csi',
  'ephemeral',
  'nfs',
  'hostPath',
] as const;
/** Kinds of sources of a projected volume. Exactly one is set for each source. */
const PROJECTED_SOURCES = ['secret', 'configMap', 'serviceAccountToken'] as const;
/** Sources of a variable. Exactly one is set. */
const VARIABLE_SOURCES = ['secretKeyRef', 'configMapKeyRef', 'fieldRef', 'resourceFieldRef'] as const;
/** Secrets or ConfigMaps whose values all become variables. Exactly one is set. */
const VARIABLES_SOURCES = ['secretRef', 'configMapRef'] as const;
/** Volumes of the controller: models, scratch space, and directories and devices of the node. */
const OWN_VOLUME_PATTERN = '^(models|tmp|(mount|device)-[0-9]+)$';
/** Mount paths of the controller; users may mount below `/tmp`. */
const OWN_MOUNT_PATTERN = '^/*(tmp/*)?$|^/+models(/.*)?$';
/** Labels and annotations of the controller. */
const OWN_KEY_PREFIX = `${LABEL_PREFIX}/`;
const OWN_KEYS = [
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/instance',
  'kubectl.kubernetes.io/default-container',
  'cdi.k8s.io/svc',
] as const;
/** Extended resources that stand for a GPU unless `SVC_GPU_RESOURCES` names others. */
const GPU_RESOURCES = ['nvidia.com/gpu', 'amd.com/gpu'] as const;
/** Names of resources: Kubernetes' own, and extended ones with a domain. */
const RESOURCE_NAME_PATTERN = `^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMG]i|${EXTENDED_RESOURCE})$`;

/** One rule about a table in a slot's document, in two forms. */
export interface SlotRule {
  /**
   * Path of the table that the rule applies to; `*` stands for each entry of a list, and an empty path for the slot
   * itself.
   */
  readonly at: readonly string[];
  /** Key of that table that the problem is reported for; undefined: the table itself. */
  readonly key?: string;
  /** Keys are written as `writeKeys` expects them. */
  readonly message: string;
  readonly holds: (table: Table) => boolean;
  /** The same check as a CEL expression about `self`, the table. */
  readonly cel: string;
}

export const has = (table: Table, ...keys: readonly string[]): boolean => keys.some((key) => table[key] !== undefined);

export const POD_RULES: readonly SlotRule[] = [
  ...(['labels', 'annotations'] as const).flatMap(keyRules),
  textsFit(['pod', 'annotations'], 'annotations', 250_000),
  {
    at: ['pod', 'volumes', '*'],
    key: 'name',
    message: 'Volumes called "models", "tmp", "mount-<number>" and "device-<number>" belong to the controller: choose another name',
    holds: ({ name }) => !new RegExp(OWN_VOLUME_PATTERN).test(String(name)),
    cel: `!self.name.matches(${text(OWN_VOLUME_PATTERN)})`,
  },
  oneOf(['pod', 'volumes', '*'], VOLUME_SOURCES),
  oneOf(['pod', 'volumes', '*', 'projected', 'sources', '*'], PROJECTED_SOURCES),
  ...POD_CONTAINERS.flatMap(containerRules),
  {
    at: ['pod', 'model', 'env', '*'],
    key: 'name',
    message: 'Variables that start with "SVC_" are settings, which the controller sets for this container: choose another name',
    holds: ({ name }) => !String(name).startsWith('SVC_'),
    cel: "!self.name.startsWith('SVC_')",
  },
];

/** Rules about keys of the slot itself together with its overlay. */
export const POD_AND_SLOT_RULES: readonly SlotRule[] = [
  {
    at: [],
    key: 'env',
    message: 'A variable is both in "{env}" and in "pod.server.env": set it in one of them',
    holds: ({ env, pod }) => !tablesAt(pod, 'server', 'env').some(({ name }) => Object.hasOwn(tableAt(env), String(name))),
    cel: '!has(self.env) || !has(self.pod) || !has(self.pod.server) || !has(self.pod.server.env) || !self.pod.server.env.exists(each, each.name in self.env)',
  },
  {
    at: [],
    key: 'resources',
    message: 'Both "resources.memory" and "pod.server.resources.limits" limit the memory: set one of them',
    holds: ({ resources, pod }) => !has(tableAt(resources), 'memory') || !has(tableAt(pod, 'server', 'resources', 'limits'), 'memory'),
    cel: "!has(self.resources) || !has(self.resources.memory) || !has(self.pod) || !has(self.pod.server) || !has(self.pod.server.resources) || !has(self.pod.server.resources.limits) || !('memory' in self.pod.server.resources.limits)",
  },
];

/** Lists whose entries are told apart by these keys, as server-side apply does it for the lists of pod templates. */
export const KEYED_LISTS: readonly { readonly at: readonly string[]; readonly keys: readonly string[] }[] = [
  { at: ['model', 'adapters'], keys: ['name'] },
  { at: ['pod', 'imagePullSecrets'], keys: ['name'] },
  { at: ['pod', 'topologySpreadConstraints'], keys: ['topologyKey', 'whenUnsatisfiable'] },
  { at: ['pod', 'volumes'], keys: ['name'] },
  ...POD_CONTAINERS.flatMap((container) => [
    { at: ['pod', container, 'env'], keys: ['name'] },
    { at: ['pod', container, 'volumeMounts'], keys: ['mountPath'] },
  ]),
];

/** Texts that must fit into one object of Kubernetes: all annotations into 256 KiB, a ConfigMap into 1 MiB. */
export function textsFit(at: readonly string[], what: string, most: number): SlotRule {
  return {
    at,
    message: `All ${what} together have at most ${most} bytes: shorten them`,
    holds: (texts) => bytesOf(Object.entries(texts).flat()) <= most,
    // The length of a key has no limit that the estimate of the cost could use; keys are ASCII.
    cel: `self.map(key, size(key) + bytes(self[key]).size()).sum() <= ${most}`,
  };
}

/** Bytes in UTF-8, in which the API server counts. */
export const bytesOf = (texts: readonly unknown[]): number => new TextEncoder().encode(texts.join('')).length;

function keyRules(table: 'labels' | 'annotations'): readonly SlotRule[] {
  return [
    {
      at: ['pod', table],
      message: `Keys that start with "${OWN_KEY_PREFIX}", and ${OWN_KEYS.map((key) => `"${key}"`).join(', ')} belong to the controller: remove them`,
      holds: (keys) => Object.keys(keys).every((key) => !key.startsWith(OWN_KEY_PREFIX) && !OWN_KEYS.some((own) => own === key)),
      cel: `self.all(key, !key.startsWith(${text(OWN_KEY_PREFIX)}) && !(key in ${list(OWN_KEYS)}))`,
    },
    {
      at: ['pod', table],
      message: 'Write each key as a name, such as "team", or as a domain and a name, such as "example.com/team"',
      holds: (keys) => Object.keys(keys).every((key) => new RegExp(LABEL_KEY_PATTERN).test(key)),
      cel: `self.all(key, key.matches(${text(LABEL_KEY_PATTERN)}))`,
    },
  ];
}

function containerRules(container: PodContainer): readonly SlotRule[] {
  const at = ['pod', container] as const;
  return [
    {
      at: [...at, 'env', '*'],
      key: 'value',
      message: 'Both "{value}" and "{valueFrom}" are set: set one of them',
      holds: (variable) => !has(variable, 'value') || !has(variable, 'valueFrom'),
      cel: '!has(self.value) || !has(self.valueFrom)',
    },
    oneOf([...at, 'env', '*', 'valueFrom'], VARIABLE_SOURCES),
    oneOf([...at, 'envFrom', '*'], VARIABLES_SOURCES),
    {
      at: [...at, 'volumeMounts', '*'],
      key: 'mountPath',
      message: 'The paths "/", "/tmp", "/models" and all paths below "/models" belong to the controller: choose another path',
      holds: ({ mountPath }) => !new RegExp(OWN_MOUNT_PATTERN).test(String(mountPath)),
      cel: `!self.mountPath.matches(${text(OWN_MOUNT_PATTERN)})`,
    },
    ...(['requests', 'limits'] as const).flatMap((amounts) => amountRules([...at, 'resources', amounts])),
    {
      at: ['pod'],
      key: container,
      message: `A volume of "pod.${container}.{volumeMounts}" is not in "pod.volumes": declare it there; the volumes of the controller cannot be mounted`,
      holds: (pod) => {
        const names = new Set(tablesAt(pod, 'volumes').map(({ name }) => name));
        return tablesAt(pod, container, 'volumeMounts').every(({ name }) => names.has(name));
      },
      cel: `!has(self.${container}) || !has(self.${container}.volumeMounts) || self.${container}.volumeMounts.all(mount, has(self.volumes) && self.volumes.exists(volume, volume.name == mount.name))`,
    },
  ];
}

function amountRules(at: readonly string[]): readonly SlotRule[] {
  return [
    {
      at,
      message: `The controller requests the GPUs: use "resources.gpus" of the slot instead of ${GPU_RESOURCES.map((name) => `"${name}"`).join(' or ')}`,
      holds: (amounts) => !has(amounts, ...GPU_RESOURCES),
      cel: GPU_RESOURCES.map((name) => `!(${text(name)} in self)`).join(' && '),
    },
    {
      at,
      message:
        'Use the resources "cpu", "memory", "ephemeral-storage", "hugepages-<size>", or one with a domain, such as "example.com/nic"',
      holds: (amounts) => Object.keys(amounts).every((name) => new RegExp(RESOURCE_NAME_PATTERN).test(name)),
      cel: `self.all(name, name.matches(${text(RESOURCE_NAME_PATTERN)}))`,
    },
  ];
}

export function oneOf(at: readonly string[], keys: readonly string[]): SlotRule {
  return {
    at,
    message: `Set exactly one of ${keys.map((key) => `"{${key}}"`).join(', ')}`,
    holds: (table) => keys.filter((key) => has(table, key)).length === 1,
    cel: `[${keys.map((key) => `has(self.${key})`).join(', ')}].filter(isSet, isSet).size() == 1`,
  };
}

/** A CEL literal. */
function text(value: string): string {
  return `'${value.replaceAll('\\', '\\\\')}'`;
}

function list(values: readonly string[]): string {
  return `[${values.map(text).join(', ')}]`;
}
