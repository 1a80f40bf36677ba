/** How the API server changes an object and its `managedFields` on a write. Pure. */
import { isDeepStrictEqual } from 'node:util';
import {
  changedFields,
  existing,
  fieldsOf,
  isFields,
  overlay,
  subtract,
  union,
  without,
  type FieldTree,
  type Fields,
} from './fake-kube-fields.ts';
import { StoredObject, type FakeResource, type SentObject } from './fake-kube-types.ts';

export interface Origin {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource?: 'status' | undefined;
}

interface Owner extends Origin {
  readonly fields: FieldTree;
}

const OWNED_METADATA = ['labels', 'annotations', 'ownerReferences', 'finalizers'];
const UNOWNED = new Set(['apiVersion', 'kind', 'metadata']);

/** The part of an object whose fields have owners. */
function content(object: Fields, resource: FakeResource, scope: 'all' | 'status' | undefined): Record<string, unknown> {
  const status = 'status' in object ? { status: object['status'] } : {};
  if (scope === 'status') return status;
  const metadata = isFields(object['metadata']) ? object['metadata'] : {};
  const owned = Object.fromEntries(OWNED_METADATA.flatMap((key) => (key in metadata ? [[key, metadata[key]]] : [])));
  const rest = Object.fromEntries(Object.entries(object).filter(([key]) => !UNOWNED.has(key) && key !== 'status'));
  const withStatus = scope === 'all' || !resource.hasStatus ? status : {};
  return { ...rest, ...withStatus, ...(Object.keys(owned).length === 0 ? {} : { metadata: owned }) };
}

const ownersOf = (live: StoredObject | undefined): Owner[] =>
  (live?.metadata.managedFields ?? []).map(({ manager, operation, subresource, fieldsV1 }) => ({
    manager,
    operation,
    subresource: subresource === 'status' ? 'status' : undefined,
    fields: asTree(fieldsV1),
  }));

function asTree(value: unknown): FieldTree {
  return isFields(value) ? Object.fromEntries(Object.entries(value).map(([key, below]) => [key, asTree(below)])) : {};
}

const isSame = (owner: Owner, origin: Origin): boolean =>
  owner.manager === origin.manager && owner.operation === origin.operation && owner.subresource === origin.subresource;

/** Returns the manager and the field of the first conflict: an applied value that differs from one that another manager owns. */
export function conflictOf(
  live: StoredObject | undefined,
  applied: SentObject,
  resource: FakeResource,
  origin: Origin,
): string | undefined {
  if (live === undefined) return undefined;
  const before = content(live, resource, 'all');
  const wanted = changedFields(before, overlay(before, content(applied, resource, origin.subresource)));
  for (const owner of ownersOf(live).filter((owner) => !isSame(owner, origin) && owner.manager !== origin.manager)) {
    const kept = subtract(owner.fields, wanted);
    const lost = Object.keys(subtract(owner.fields, kept))[0];
    if (!isDeepStrictEqual(kept, owner.fields)) return `conflict with "${owner.manager}": .${(lost ?? '').replace('f:', '')}`;
  }
  return undefined;
}

/** Returns the object after a server-side apply: the applied fields are merged into it, and fields that this manager no longer applies are removed. */
export function applied(live: StoredObject, sent: SentObject, resource: FakeResource, origin: Origin): Record<string, unknown> {
  const part = content(sent, resource, origin.subresource);
  const owners = ownersOf(live);
  const before = owners.find((owner) => isSame(owner, origin))?.fields ?? {};
  const others = owners.filter((owner) => !isSame(owner, origin)).reduce<FieldTree>((all, owner) => union(all, owner.fields), {});
  const dropped = subtract(subtract(before, fieldsOf(part)), others);
  const kept = without(live, dropped);
  const merged = overlay(isFields(kept) ? kept : {}, part);
  return isFields(merged) ? { ...merged, metadata: { ...live.metadata, ...pickMetadata(merged) } } : { ...live };
}

function pickMetadata(object: Fields): Record<string, unknown> {
  const metadata = isFields(object['metadata']) ? object['metadata'] : {};
  return Object.fromEntries(OWNED_METADATA.map((key) => [key, metadata[key]]));
}

/** Returns the owners after a write. `part` is the applied object of a server-side apply. */
function ownersAfter(
  live: StoredObject | undefined,
  next: Fields,
  resource: FakeResource,
  origin: Origin,
  part: SentObject | undefined,
): Owner[] {
  const after = content(next, resource, 'all');
  const changed = changedFields(live === undefined ? {} : content(live, resource, 'all'), after);
  const owners = ownersOf(live);
  const own = owners.find((owner) => isSame(owner, origin))?.fields ?? {};
  const mine = part === undefined ? union(own, changed) : fieldsOf(content(part, resource, origin.subresource));
  const others = owners.filter((owner) => !isSame(owner, origin)).map((owner) => ({ ...owner, fields: subtract(owner.fields, changed) }));
  return [...others, { ...origin, fields: mine }]
    .map((owner) => ({ ...owner, fields: existing(owner.fields, after) }))
    .filter((owner) => Object.keys(owner.fields).length > 0);
}

/** Returns the object to store, with the metadata of the server, updated owners and generation. Returns `live` itself if nothing changed. */
export function objectToStore(
  live: StoredObject,
  next: Fields,
  resource: FakeResource,
  origin: Origin,
  part: SentObject | undefined,
): StoredObject {
  const sentMetadata = isFields(next['metadata']) ? next['metadata'] : {};
  const withStatus = origin.subresource === 'status' ? { ...live, status: next['status'] } : { ...next, status: live['status'] };
  const kept = resource.hasStatus ? withStatus : next;
  const managedFields = ownersAfter(live, kept, resource, origin, part).map(({ fields, subresource, ...owner }) => ({
    ...owner,
    ...(subresource === undefined ? {} : { subresource }),
    apiVersion: live.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
  }));
  const metadata = {
    ...live.metadata,
    ...(origin.subresource === 'status' ? {} : pickMetadata({ metadata: sentMetadata })),
    managedFields,
  };
  const object = clean({ ...kept, apiVersion: live.apiVersion, kind: live.kind, metadata });
  const stored = StoredObject.parse(object);
  if (isDeepStrictEqual(clean({ ...live }), object)) return live;
  // For a Deployment, annotations increase the generation like its spec.
  const annotated = resource.plural === 'deployments' && !isDeepStrictEqual(live.metadata.annotations, stored.metadata.annotations);
  if (live.metadata.generation === undefined || (!annotated && isDeepStrictEqual(specOf(live), specOf(stored)))) return stored;
  return { ...stored, metadata: { ...stored.metadata, generation: live.metadata.generation + 1 } };
}

export function firstOwners(object: StoredObject, resource: FakeResource, origin: Origin, part: SentObject | undefined): StoredObject {
  const seed = { ...object, metadata: { ...object.metadata, managedFields: [] } };
  const bare = StoredObject.parse({ apiVersion: object.apiVersion, kind: object.kind, metadata: { ...object.metadata, ...NO_OWNED } });
  const result = objectToStore(bare, seed, resource, origin, part);
  return { ...result, metadata: { ...result.metadata, ...(object.metadata.generation === undefined ? {} : { generation: 1 }) } };
}

const NO_OWNED = { labels: undefined, annotations: undefined, ownerReferences: undefined, finalizers: undefined, managedFields: [] };

const specOf = (object: Fields): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([key]) => key !== 'metadata' && key !== 'status'));

/** Removes undefined values, like JSON. */
function clean(value: Record<string, unknown>): Record<string, unknown> {
  const copy: unknown = JSON.parse(JSON.stringify(value));
  return isFields(copy) ? copy : {};
}
