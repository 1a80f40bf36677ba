/** Which keys of a SlotSpec resource are people's, which the API server's, and which nobody's. Pure. */
import { isTable } from '../../schema/key-case.ts';
import { SlotDocument } from '../../schema/slot-spec.ts';
import type { Manifest, ManifestMetadata } from './manifest.ts';

const TOP = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];
/** Beside the name; other forms of the slot have a place for them. */
const KEPT = ['namespace', 'labels', 'annotations'] as const;
/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/ */
const OF_SERVER = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
  'selfLink',
];
const OF_PEOPLE = ['generateName', 'finalizers', 'ownerReferences'];
const METADATA = ['name', ...KEPT, ...OF_SERVER, ...OF_PEOPLE];
/** Written by `kubectl apply` for itself: the whole text once more. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

type Path = readonly (string | number)[];

/** Keys outside of the spec that Kubernetes does not know. */
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

/** Paths in the spec, as JSON, of keys that the schema does not have. */
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
  return { metadata, dropped: OF_PEOPLE.filter((key) => key in found).map((key) => `metadata.${key}`) };
}
