/** Which keys of a SlotSpec resource users write, which the API server writes, and which are unknown. Pure. */
import { z } from 'zod';
import { isTable } from '../../schema/words/key-case.ts';
import type { Manifest, ManifestMetadata } from './manifest.ts';

/** Conversions keep these. */
const KEPT = ['namespace', 'labels', 'annotations'] as const;
/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/ */
const SERVER_KEYS = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
  'selfLink',
];
/** Users write these too, but conversions lose them. */
const DROPPED = ['generateName', 'finalizers', 'ownerReferences'];
const METADATA = ['name', ...KEPT, ...SERVER_KEYS, ...DROPPED];
/** `kubectl apply` stores the whole text here for itself. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export type Path = readonly (string | number)[];

const any = z.unknown();

/** All keys outside of the spec that Kubernetes knows. */
export const ResourceKeys = z.strictObject({
  apiVersion: any,
  kind: any,
  metadata: z.strictObject(Object.fromEntries(METADATA.map((key) => [key, any.optional()]))),
  spec: any,
  status: any.optional(),
});

/** Returns the paths of keys that are not in the schema. */
export function unknownKeys(schema: z.ZodType, value: unknown): readonly Path[] {
  const issues = schema.safeParse(value).error?.issues ?? [];
  return issues.flatMap((issue) => {
    const path = issue.path.filter((part) => typeof part !== 'symbol');
    return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [];
  });
}

export function metadataOf(resource: unknown): Pick<Manifest, 'metadata' | 'dropped'> {
  const found = isTable(resource) && isTable(resource['metadata']) ? resource['metadata'] : {};
  const { namespace, labels, annotations } = found;
  const own = isTable(annotations) ? Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== LAST_APPLIED)) : {};
  const metadata: ManifestMetadata = {
    ...(typeof namespace === 'string' ? { namespace } : {}),
    ...(isTable(labels) && Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(own).length > 0 ? { annotations: own } : {}),
  };
  return { metadata, dropped: DROPPED.filter((key) => key in found).map((key) => `metadata.${key}`) };
}
