/** Which keys of a SlotSpec resource users write, which the API server writes, and which are unknown. Pure. */
import { isTable } from '../../schema/key-case.ts';
import { SlotDocument } from '../../schema/slot-spec.ts';
import type { Manifest, ManifestMetadata } from './manifest.ts';

const TOP = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];
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

type Path = readonly (string | number)[];

/** Returns the paths of keys outside of the spec that Kubernetes does not know. */
export function strayKeys(resource: unknown): readonly Path[] {
  if (!isTable(resource)) return [];
  const metadata = isTable(resource['metadata']) ? resource['metadata'] : {};
  return [
    ...Object.keys(resource)
      .filter((key) => !TOP.includes(key))
      .map((key) => [key]),
    ...Object.keys(metadata)
      .filter((key) => !METADATA.includes(key))
      .map((key) => ['metadata', key]),
  ];
}

/** Returns the paths in the spec, as JSON, of keys that are not in the schema. */
export function unknownKeys(document: unknown): ReadonlySet<string> {
  const parsed = SlotDocument.safeParse(document);
  const issues = parsed.success ? [] : parsed.error.issues;
  return new Set(
    issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys.map((key) => JSON.stringify([...issue.path, key])) : [])),
  );
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
