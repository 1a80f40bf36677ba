/** How the fake API server deletes objects: preconditions, grace periods of pods, finalizers, and dependents after their owners. */
import { timestamp, type Address, type FakeStore } from './fake-kube-store.ts';
import { done, refuse, resourceName, type FakeResource, type Outcome, type StoredObject } from './fake-kube-types.ts';

export interface DeleteOptions {
  readonly graceSeconds?: number | undefined;
  readonly propagation?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface FakeDeletion {
  /** Returns the object after the deletion. `gone` if it no longer exists. */
  remove(address: Address, options: DeleteOptions): Outcome<{ readonly object: StoredObject; readonly gone: boolean }>;
  /** Removes dependents without an owner, as the garbage collector does after each removal. */
  collect(): void;
  close(): void;
}

const FOREGROUND = 'foregroundDeletion';
const DEFAULT_GRACE_SECONDS = 30;

/** A pod on a node is removed after its grace period or after `longestGraceMs`, whichever is shorter: the fake has no kubelet that would wait for processes. */
export function createFakeDeletion(store: FakeStore, longestGraceMs: number, collects = true): FakeDeletion {
  const timers = new Map<string, NodeJS.Timeout>();
  let scheduled: NodeJS.Immediate | undefined;

  const addressOf = (resource: FakeResource, { metadata }: StoredObject): Address => ({
    resource,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
  });

  function erase(address: Address): void {
    store.erase(address);
    scheduleCollection();
  }

  function scheduleCollection(): void {
    if (collects) scheduled ??= setImmediate(collect);
  }

  function collect(): void {
    scheduled = undefined;
    const all = store.all();
    const uids = new Set(all.map(({ object }) => object.metadata.uid));
    for (const { resource, object } of all) {
      const owners = object.metadata.ownerReferences ?? [];
      if (owners.length > 0 && owners.every(({ uid }) => !uids.has(uid)) && object.metadata.deletionTimestamp === undefined) {
        deletion.remove(addressOf(resource, object), {});
      }
      if (object.metadata.finalizers?.includes(FOREGROUND) === true) advanceForeground(addressOf(resource, object), object, all);
    }
  }

  function advanceForeground(address: Address, owner: StoredObject, all: ReturnType<FakeStore['all']>): void {
    const dependents = all.filter(({ object }) => object.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) === true);
    for (const { resource, object } of dependents) {
      if (object.metadata.deletionTimestamp === undefined) deletion.remove(addressOf(resource, object), {});
    }
    if (dependents.length > 0) return;
    const finalizers = (owner.metadata.finalizers ?? []).filter((one) => one !== FOREGROUND);
    if (finalizers.length > 0) store.mark(address, { finalizers });
    else erase(address);
  }

  function orphan(owner: StoredObject): void {
    for (const { resource, object } of store.all()) {
      const owners = object.metadata.ownerReferences ?? [];
      const ownerReferences = owners.filter(({ uid }) => uid !== owner.metadata.uid);
      if (ownerReferences.length < owners.length) store.mark(addressOf(resource, object), { ownerReferences });
    }
  }

  function removePod(address: Address, pod: StoredObject, options: DeleteOptions): Outcome<{ object: StoredObject; gone: boolean }> {
    const spec = pod['spec'];
    const isOnNode = typeof spec === 'object' && spec !== null && 'nodeName' in spec;
    const own =
      typeof spec === 'object' && spec !== null && 'terminationGracePeriodSeconds' in spec ? spec.terminationGracePeriodSeconds : undefined;
    const graceSeconds = options.graceSeconds ?? (typeof own === 'number' ? own : DEFAULT_GRACE_SECONDS);
    const left = timers.get(pod.metadata.uid);
    if (graceSeconds === 0 || !isOnNode) {
      clearTimeout(left);
      erase(address);
      return done({ object: pod, gone: true });
    }
    if (left !== undefined && options.graceSeconds === undefined) return done({ object: pod, gone: false });
    clearTimeout(left);
    const deletionTimestamp = timestamp(Date.now() + graceSeconds * 1000);
    const marked = store.mark(address, { deletionTimestamp, deletionGracePeriodSeconds: graceSeconds });
    timers.set(
      pod.metadata.uid,
      setTimeout(() => deletion.remove(address, { graceSeconds: 0, uid: pod.metadata.uid }), Math.min(graceSeconds * 1000, longestGraceMs)),
    );
    return marked.done ? done({ object: marked.value, gone: false }) : marked;
  }

  const deletion: FakeDeletion = {
    remove(address, options) {
      const found = store.get(address);
      if (!found.done) return found;
      const { metadata } = found.value;
      const named = `Operation cannot be fulfilled on ${resourceName(address.resource)} "${address.name}"`;
      if (options.uid !== undefined && options.uid !== metadata.uid) {
        const difference = `the UID in the precondition (${options.uid}) does not match the UID in record (${metadata.uid})`;
        return refuse(409, 'Conflict', `${named}: ${difference}. The object might have been deleted and then recreated`);
      }
      if (options.resourceVersion !== undefined && options.resourceVersion !== metadata.resourceVersion) {
        return refuse(409, 'Conflict', `${named}: Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}`);
      }
      if (address.resource.plural === 'pods') return removePod(address, found.value, options);
      if (options.propagation === 'Orphan') orphan(found.value);
      const finalizers = [...(metadata.finalizers ?? []), ...(options.propagation === 'Foreground' ? [FOREGROUND] : [])];
      if (finalizers.length === 0) {
        erase(address);
        return done({ object: found.value, gone: true });
      }
      if (metadata.deletionTimestamp !== undefined) return done({ object: found.value, gone: false });
      const marked = store.mark(address, { deletionTimestamp: timestamp(Date.now()), deletionGracePeriodSeconds: 0, finalizers });
      scheduleCollection();
      return marked.done ? done({ object: marked.value, gone: false }) : marked;
    },
    collect: scheduleCollection,
    close() {
      for (const timer of timers.values()) clearTimeout(timer);
      if (scheduled !== undefined) clearImmediate(scheduled);
    },
  };
  return deletion;
}
