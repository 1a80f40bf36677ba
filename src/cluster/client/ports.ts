/**
 * The interfaces of a cluster. The adapters are in this folder (requests, and copies of the objects of the API server) and in
 * `cluster/leadership/` (which replica leads). Objects are plain JSON as the server sent them: code that reads a field checks it first.
 */
import type { Wake } from '../../reconciler/ports.ts';
import type { Result } from '../../schema/words/failure.ts';

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [key: string]: unknown;
}

/** An object to be sent: without the fields that the server adds. `apiVersion`, `kind` and the namespace are added by the client. */
export interface KubeManifest {
  readonly metadata: Pick<ObjectMeta, 'name' | 'labels' | 'annotations' | 'ownerReferences' | 'resourceVersion' | 'uid'>;
  readonly [key: string]: unknown;
}

/** A kind of object and its path on the server. Cluster-wide resources have `namespaced: false`. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export interface ApplyOptions {
  /** Owner of the fields that are sent. Conflicts are always resolved in our favour (`force`): the fields are ours. */
  readonly fieldManager: string;
  readonly subresource?: 'status';
  readonly dryRun?: boolean;
}

export interface RemoveOptions {
  readonly graceSeconds?: number;
  /** Removes the object only if it has this UID. */
  readonly uid?: string;
}

/** Reduces an object to what is stored of it. */
export type Transform = (object: KubeObject) => KubeObject;

/** Which objects of a type are meant. Default: all. */
export interface Selectors {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ListOptions extends Selectors {
  /** Called for each object while the list arrives: complete lists are large. */
  readonly transform?: Transform;
  /**
   * The server may answer from its cache, if that is not older than this resource version; any age will do for "0". Fails with `Expired` if the cache does
   * not reach that version. Undefined: the newest state, which older servers read from etcd.
   */
  readonly notOlderThan?: string;
}

export interface StreamOptions {
  /** Undefined for a watch. */
  readonly name?: string;
  readonly subresource?: 'log';
  readonly query: Readonly<Record<string, string | undefined>>;
}

export interface ObjectList {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

/**
 * Requests in one namespace. Expected failures are not thrown. Reasons: `NotFound`, `AlreadyExists`, `Conflict`, `Invalid` (stalled; with the message
 * of the server, which names the field), `Forbidden` (stalled; names verb and resource), `Unauthorized`, `ApiBusy` (429, 503; waiting if the
 * server sent a Retry-After header), `ApiFailed` (other 5xx, or a malformed response), `ApiUnreachable`, `ApiUntrusted`
 * (certificates), `Expired` (410, and 504 for a version that the server does not have yet), `Aborted`.
 * The number of requests at the same time is limited; the others wait in order.
 */
export interface KubeApi {
  readonly namespace: string;
  /** For messages. */
  readonly server: string;
  get(type: ResourceType, name: string, signal: AbortSignal): Promise<Result<KubeObject>>;
  list(type: ResourceType, options: ListOptions, signal: AbortSignal): Promise<Result<ObjectList>>;
  /** Server-side apply. Creates the object if it does not exist. */
  apply(type: ResourceType, manifest: KubeManifest, options: ApplyOptions, signal: AbortSignal): Promise<Result<KubeObject>>;
  create(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** With `metadata.resourceVersion`: fails with `Conflict` if the object has another version. */
  replace(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** JSON merge patch. A `metadata.resourceVersion` in it is a precondition. */
  mergePatch(type: ResourceType, name: string, patch: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** Removes the object, and its dependents in the background. Succeeds if the object does not exist. */
  remove(type: ResourceType, name: string, options: RemoveOptions, signal: AbortSignal): Promise<Result<void>>;
  /** Streams a response of any length: a watch (`watch: 'true'` in the query) or a log. The stream ends when the signal aborts. */
  stream(type: ResourceType, options: StreamOptions, signal: AbortSignal): Promise<Result<AsyncIterable<Uint8Array>>>;
  /** Whether the server currently serves this type of resource. */
  serves(type: ResourceType, signal: AbortSignal): Promise<Result<boolean>>;
}

/**
 * A copy of all objects of one kind in the namespace (or of those with a label), kept up to date by list, watch and periodic lists, since a watch may
 * go silent without an error. The copy lags behind the server; our own writes are added with `noteWritten` and `noteRemoved`.
 */
export interface Reflector {
  /** By name. Returns the same object as long as its resource version is the same. */
  items(): ReadonlyMap<string, KubeObject>;
  /**
   * `starting` until the first list succeeded. While the server is unreachable: since when (monotonic milliseconds), why, and whether a list ever succeeded.
   */
  health():
    | { readonly kind: 'starting' | 'current' }
    | { readonly kind: 'unreachable'; readonly sinceMs: number; readonly message: string; readonly listed: boolean };
  /** Adds the object that a write returned. Ignored if the copy has a newer version. */
  noteWritten(object: KubeObject): void;
  /** Removes an object that we removed. It does not reappear through older events, only with another UID, or if a later list still contains it. */
  noteRemoved(name: string, uid: string): void;
  changes(wake: Wake, signal: AbortSignal): void;
  /** Runs until the signal aborts. */
  start(signal: AbortSignal): void;
}

/** Which replica reconciles. */
export interface Leadership {
  /** Whether this replica leads now. False as soon as its lease may have expired, whatever the server says later. */
  leads(): boolean;
  /** Aborts when the current term ends; already aborted while this replica does not lead. Pass it to every write. */
  term(): AbortSignal;
  /** Name of the lease holder, if known. */
  holder(): string | undefined;
  changes(wake: Wake, signal: AbortSignal): void;
  /** Takes part in the leader election until the signal aborts. Then releases the lease if this replica holds it, and resolves. */
  start(signal: AbortSignal): Promise<void>;
}
