/** The objects of the fake API server: create, read, write with optimistic concurrency, and the history that watches read. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { WITHOUT_DEFINITIONS, type FakeVersions } from './fake-kube-definitions.ts';
import { applied, conflictOf, firstOwners, objectToStore, type Origin } from './fake-kube-ownership.ts';
import { mergePatched, type Fields } from './fake-kube-fields.ts';
import { apiVersionOf, done, refuse, resourceName, SentObject, StoredObject, type FakeResource, type Outcome } from './fake-kube-types.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly version: number;
  readonly resource: FakeResource;
  readonly object: StoredObject;
  /** The previous object. Undefined for a new one. */
  readonly previous: StoredObject | undefined;
}

export interface Address {
  readonly resource: FakeResource;
  /** Empty for cluster-wide resources. */
  readonly namespace: string;
  readonly name: string;
}

export interface FakeStore {
  version(): number;
  /** A stored object as a client sees it in the version of the resource. */
  view: FakeVersions['view'];
  get(address: Address): Outcome<StoredObject>;
  /** Returns all objects of one kind in the namespace, or in all namespaces, in order of namespace and name. */
  list(resource: FakeResource, namespace?: string): readonly StoredObject[];
  /** As they are stored: in the version of their last write. */
  all(): readonly { readonly resource: FakeResource; readonly object: StoredObject }[];
  create(resource: FakeResource, namespace: string, sent: SentObject, origin: Origin, part?: SentObject): Outcome<StoredObject>;
  replace(address: Address, sent: SentObject, origin: Origin): Outcome<StoredObject>;
  mergePatch(address: Address, patch: Fields, origin: Origin): Outcome<StoredObject>;
  apply(
    address: Address,
    sent: SentObject,
    origin: Origin,
    force: boolean,
  ): Outcome<{ readonly object: StoredObject; readonly created: boolean }>;
  /** Writes metadata that only the server can write. */
  mark(address: Address, metadata: Fields): Outcome<StoredObject>;
  erase(address: Address): void;
  /** Returns the changes after a version, or undefined if they have been compacted. */
  since(version: number): readonly Change[] | undefined;
  /** Discards the history. */
  compact(): void;
  subscribe(listener: (change: Change) => void): () => void;
}

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** RFC 3339 in whole seconds, like `metav1.Time`. */
export const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

export function createFakeStore(versions: FakeVersions = WITHOUT_DEFINITIONS, firstVersion = 1000): FakeStore {
  const kinds = new Map<string, { readonly resource: FakeResource; readonly objects: Map<string, StoredObject> }>();
  const listeners = new Set<(change: Change) => void>();
  let version = firstVersion;
  let compacted = firstVersion;
  let history: Change[] = [];

  function objectsOf(resource: FakeResource): Map<string, StoredObject> {
    const known = kinds.get(resourceName(resource));
    if (known !== undefined) return known.objects;
    const objects = new Map<string, StoredObject>();
    kinds.set(resourceName(resource), { resource, objects });
    return objects;
  }
  const keyOf = ({ namespace, name }: Pick<Address, 'namespace' | 'name'>): string => `${namespace}/${name}`;
  const absent = ({ resource, name }: Address): Outcome<never> => refuse(404, 'NotFound', `${resourceName(resource)} "${name}" not found`);

  function record(address: Address, object: StoredObject, previous: StoredObject | undefined, type: Change['type']): StoredObject {
    version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    if (type === 'DELETED') objectsOf(address.resource).delete(keyOf(address));
    else objectsOf(address.resource).set(keyOf(address), stored);
    const change: Change = { type, version, resource: address.resource, object: stored, previous };
    history.push(change);
    for (const listener of listeners) listener(change);
    return stored;
  }

  const store: FakeStore = {
    version: () => version,
    view: versions.view,
    get(address) {
      const object = objectsOf(address.resource).get(keyOf(address));
      return object === undefined ? absent(address) : done(versions.view(address.resource, object));
    },
    list(resource, namespace) {
      const objects = [...objectsOf(resource)].filter(([key]) => namespace === undefined || key.startsWith(`${namespace}/`));
      return objects.toSorted(([left], [right]) => (left < right ? -1 : 1)).map(([, object]) => versions.view(resource, object));
    },
    all: () => [...kinds.values()].flatMap(({ resource, objects }) => [...objects.values()].map((object) => ({ resource, object }))),
    create(resource, namespace, sent, origin, part) {
      const name = sent.metadata?.name ?? `${sent.metadata?.generateName ?? ''}${randomUUID().slice(0, 5)}`;
      const address = { resource, namespace, name };
      if (!NAME.test(name))
        return refuse(422, 'Invalid', `${resource.kind}.${resource.group} "${name}" is invalid: metadata.name: Invalid value: "${name}"`);
      if (objectsOf(resource).has(keyOf(address))) {
        return refuse(409, 'AlreadyExists', `${resourceName(resource)} "${name}" already exists`);
      }
      const { status: _, ...withoutStatus } = sent;
      const object = StoredObject.parse({
        ...(resource.hasStatus ? withoutStatus : sent),
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        metadata: {
          ...sent.metadata,
          name,
          ...(resource.namespaced ? { namespace } : {}),
          uid: randomUUID(),
          resourceVersion: '',
          ...(resource.hasStatus && resource.group !== '' ? { generation: 1 } : {}),
          creationTimestamp: timestamp(Date.now()),
        },
      });
      const stored = versions.encode(resource, firstOwners(object, resource, origin, part));
      return done(versions.view(resource, record(address, stored, undefined, 'ADDED')));
    },
    replace(address, sent, origin) {
      return write(address, sent.metadata, () => sent, origin);
    },
    mergePatch(address, patch, origin) {
      const metadata = SentObject.shape.metadata.catch(undefined).parse(patch['metadata']);
      return write(address, metadata, (live) => mergePatched(live, patch), origin);
    },
    apply(address, sent, origin, force) {
      const found = objectsOf(address.resource).get(keyOf(address));
      const undeclared = versions.refuseApply(address.resource, keyOf(address), sent);
      if (undeclared !== undefined) return undeclared;
      if (found === undefined) {
        if (origin.subresource === 'status') return absent(address);
        const named = { ...sent, metadata: { ...sent.metadata, name: address.name } };
        const made = store.create(address.resource, address.namespace, named, origin, sent);
        return made.done ? done({ object: made.value, created: true }) : made;
      }
      const live = versions.view(address.resource, found);
      const conflict = force ? undefined : conflictOf(live, sent, address.resource, origin);
      if (conflict !== undefined) return refuse(409, 'Conflict', `Apply failed with 1 conflict: ${conflict}`);
      const written = write(address, sent.metadata, (present) => applied(present, sent, address.resource, origin), origin, sent);
      return written.done ? done({ object: written.value, created: false }) : written;
    },
    mark(address, metadata) {
      const live = objectsOf(address.resource).get(keyOf(address));
      if (live === undefined) return absent(address);
      const marked = StoredObject.parse(JSON.parse(JSON.stringify({ ...live, metadata: { ...live.metadata, ...metadata } })));
      return done(record(address, marked, live, 'MODIFIED'));
    },
    erase(address) {
      const live = objectsOf(address.resource).get(keyOf(address));
      if (live !== undefined) record(address, live, live, 'DELETED');
    },
    since: (from) => (from < compacted ? undefined : history.filter((change) => change.version > from)),
    compact() {
      compacted = version;
      history = [];
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  function write(
    address: Address,
    sent: SentObject['metadata'],
    next: (live: StoredObject) => unknown,
    origin: Origin,
    part?: SentObject,
  ): Outcome<StoredObject> {
    const found = objectsOf(address.resource).get(keyOf(address));
    if (found === undefined) return absent(address);
    const live = versions.view(address.resource, found);
    const named = `Operation cannot be fulfilled on ${resourceName(address.resource)} "${address.name}"`;
    if (sent?.resourceVersion !== undefined && sent.resourceVersion !== live.metadata.resourceVersion) {
      return refuse(
        409,
        'Conflict',
        `${named}: the object has been modified; please apply your changes to the latest version and try again`,
      );
    }
    if (sent?.uid !== undefined && sent.uid !== live.metadata.uid) {
      return refuse(
        409,
        'Conflict',
        `${named}: Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${live.metadata.uid}`,
      );
    }
    const parsed = SentObject.safeParse(next(live));
    if (!parsed.success) return refuse(400, 'BadRequest', `The object cannot be parsed: ${parsed.error.message}`);
    const object = versions.encode(address.resource, objectToStore(live, parsed.data, address.resource, origin, part));
    // As etcd compares: the same content in another version is another text.
    if (object === found || isDeepStrictEqual(object, found)) return done(live);
    const refused = versions.refuseWrite(address.resource, object);
    if (refused !== undefined) return refused;
    const stored = record(address, object, found, 'MODIFIED');
    const isDone = stored.metadata.deletionTimestamp !== undefined && (stored.metadata.finalizers ?? []).length === 0;
    if (isDone && address.resource.plural !== 'pods') store.erase(address);
    return done(versions.view(address.resource, stored));
  }

  return store;
}
