/**
 * Fields that many Kubernetes objects have (names, shapes and limits of the Kubernetes API 1.36), the labels of our own
 * objects, and the names that the overlay of a slot's pods, its rules and the controller share.
 */
import { z } from 'zod';
import { isTable } from '../words/key-case.ts';

type Table = Readonly<Record<string, unknown>>;

/** The value at a path of keys; undefined if something on the path is missing. */
export const valueAt = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce((inner, key) => (isTable(inner) ? inner[key] : undefined), value);

/** The table at a path of keys; empty if there is none. */
export function tableAt(value: unknown, ...path: readonly string[]): Table {
  const found = valueAt(value, ...path);
  return isTable(found) ? found : {};
}

/** The tables in the list at a path of keys. */
export function tablesAt(value: unknown, ...path: readonly string[]): readonly Table[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found.filter(isTable) : [];
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Drops the keys whose value is undefined, as JSON does. */
export function defined<T extends object>(table: T): Defined<T>;
export function defined(table: object): object {
  return Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined));
}

/** Keys of labels and annotations: a name, with or without a domain in front of it. */
export const LABEL_KEY_PATTERN = '^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$';

/** Name of an object: a DNS subdomain. */
const OBJECT_NAME_PATTERN = '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$';
export const ObjectName = z
  .string()
  .min(1)
  .max(253)
  .regex(new RegExp(OBJECT_NAME_PATTERN), 'Write the name of a Kubernetes object: lower-case letters, digits, "-" and "."');

/** Name of a volume or of a container: a DNS label. */
export const PartName = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, 'Write a name of lower-case letters, digits and "-"');

/** Key of a Secret or a ConfigMap. */
export const DataKey = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[A-Za-z0-9._-]+$/, 'Write a key of letters, digits, "-", "_" and "."');

export const AbsolutePath = z.string().max(1024).startsWith('/', 'Write an absolute path');
/** Path below another one; the API server refuses "..". */
export const RelativePath = z.string().min(1).max(1024).regex(/^[^/]/, 'Write a path that does not start with "/"');

const QUANTITY_RULE = 'Write a quantity such as 2, "500m", "1.5", "512Mi" or "9Gi", with at most 15 digits';
/** With more than 15 digits, the API server could not count. */
const QUANTITY_PATTERN = '^[0-9]{1,15}(\\.[0-9]{1,9})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$';
export const Quantity = z.union([z.int().min(0), z.string().regex(new RegExp(QUANTITY_PATTERN), QUANTITY_RULE)], QUANTITY_RULE);

/** File permissions, as a number: 0o440 in TOML and 0440 in YAML. */
export const FileMode = z.int().min(0).max(0o777);
/** User or group, with the limits of Linux. */
export const NumericId = z.int().min(0).max(2_147_483_647);

/** A part that may be left out. */
export const optional = <Type extends z.ZodType>(meaning: string, type: Type) => type.optional().describe(meaning);

/** A table that may be left out, with these keys and no others. */
export const table = <Shape extends z.ZodRawShape>(meaning: string, shape: Shape) => optional(meaning, z.strictObject(shape));

/** A table with keys of the user's choice; API servers need a bound to estimate the cost of validation rules. */
export function boundedRecord<Value extends z.ZodType>(value: Value, entries: number, key = z.string().min(1).max(317)) {
  return z
    .record(key, value)
    .refine((table) => Object.keys(table).length <= entries, `Use at most ${entries} entries`)
    .meta({ maxProperties: entries });
}

export const LabelValue = z
  .string()
  .max(63)
  .regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/, 'Write a label of letters, digits, "-", "_" and ".", at most 63 characters');
const LABEL_KEY_RULE = 'Write the key of a label, such as "team" or "example.com/team"';
export const LabelKey = z.string().min(1).max(317).regex(new RegExp(LABEL_KEY_PATTERN), LABEL_KEY_RULE);

const Expression = z.strictObject({
  key: LabelKey.describe('Key of the label'),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared'),
  values: optional('Values, for "In" and "NotIn"', z.array(LabelValue).max(50)),
});

export const LabelSelector = z.strictObject({
  matchLabels: optional('Labels that an object must have', boundedRecord(LabelValue, 32)),
  matchExpressions: optional('Further conditions on the labels of an object', z.array(Expression).max(20)),
});

/** Labels and annotations on every object that the service creates, the same for containers and in a cluster. */
export const LABEL_PREFIX = 'inference.svc.dev';

export const LABELS = {
  /** Name of the slot. */
  slot: `${LABEL_PREFIX}/slot`,
  /** Revision of the workload. */
  revision: `${LABEL_PREFIX}/revision`,
  /** Generation of the slot that the workload was created for. */
  generation: `${LABEL_PREFIX}/generation`,
  /** `gateway` on the Leases of the replicas. */
  component: `${LABEL_PREFIX}/component`,
  /** Hash of the name on the record of a model; `license` on accepted licences. */
  model: `${LABEL_PREFIX}/model`,
  /** Set by users on a ConfigMap with cases that judge new models; its value does not matter. */
  checks: `${LABEL_PREFIX}/checks`,
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

/** Value of `app.kubernetes.io/managed-by` on every Kubernetes object that the service creates. */
export const MANAGER = 'svc';
/** Field manager of everything that the controller applies. */
export const FIELD_MANAGER = 'svc-controller';
/** The Lease of the leader. svcctl finds it by this name. */
export const CONTROLLER_LEASE = 'svc-controller';

/** `server`: the model server. `model`: the init container that fetches and verifies the model. */
export const POD_CONTAINERS = ['server', 'model'] as const;
export type PodContainer = (typeof POD_CONTAINERS)[number];

export const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'] as const;
export const EXTENDED_RESOURCE = '[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?';
