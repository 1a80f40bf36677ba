/**
 * What the rest of the program may ask of a cluster. `src/kube/` holds the adapters: credentials and requests, kept-up-to-date copies of what the API
 * server has, and which replica leads. Objects are plain JSON as the server sent them; whoever reads one checks what it uses.
 */
import type { Wake } from '../../reconciler/ports.ts';
import type { Result } from '../../schema/failure.ts';

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

/** What is sent: name and content, without what the server adds. */
export interface KubeManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'labels' | 'annotations' | 'ownerReferences' | 'resourceVersion' | 'uid'>;
  readonly [key: string]: unknown;
}

/** A kind of object by its address. Cluster-wide resources have `namespaced: false`. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export interface ApplyOptions {
  /** Who owns the fields that are sent. Conflicts are always taken over (`force`): the fields are ours. */
  readonly fieldManager: string;
  readonly subresource?: 'status';
  readonly dryRun?: boolean;
}

export interface RemoveOptions {
  readonly graceSeconds?: number;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** Only while it still is this very object. */
  readonly uid?: string;
}

export interface ListOptions {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** What is kept of each object, called page by page: whole lists are large. */
  readonly keep?: (object: KubeObject) => KubeObject;
}

/**
 * Requests in one namespace. None throws for an expected failure. Reasons: `NotFound`, `AlreadyExists`, `Conflict`, `Invalid` (stalled; the server's own
 * message, which names the field), `Forbidden` (stalled; names verb and resource), `Unauthorized`, `ApiBusy` (429, 503; waiting
 * when the server said until when), `ApiFailed` (other 5xx, or an answer that is none), `ApiUnreachable`, `Expired` (410), `Aborted`.
 * At most a fixed number of requests run at once; the others wait in order.
 */
export interface KubeApi {
  readonly namespace: string;
  /** For messages. */
  readonly server: string;
  get(type: ResourceType, name: string, signal: AbortSignal): Promise<Result<KubeObject>>;
  list(
    type: ResourceType,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<Result<{ readonly items: readonly KubeObject[]; readonly resourceVersion: string }>>;
  /** Server-side apply; creates what is not there. */
  apply(type: ResourceType, manifest: KubeManifest, options: ApplyOptions, signal: AbortSignal): Promise<Result<KubeObject>>;
  create(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** With `metadata.resourceVersion`: only while it still has that version, else `Conflict`. */
  replace(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** JSON merge patch; a `metadata.resourceVersion` in it is a precondition. */
  mergePatch(type: ResourceType, name: string, patch: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** Already gone is success. */
  remove(type: ResourceType, name: string, options: RemoveOptions, signal: AbortSignal): Promise<Result<void>>;
  /** An answer of any length as it comes: watches, logs. `path` begins at the server's root; the stream ends when the signal aborts. */
  stream(path: string, signal: AbortSignal): Promise<Result<AsyncIterable<Uint8Array>>>;
  /** Whether the server serves this kind of object now. */
  serves(type: ResourceType, signal: AbortSignal): Promise<Result<boolean>>;
}

/**
 * A copy of all objects of one kind in the namespace (or of those with a label), kept up to date by list, watch and a timed list: a watch may
 * go silent without an error. The copy lags behind the server; own writes are entered by `noteWritten` and `noteRemoved`.
 */
export interface Reflector {
  /** By name. The same object as long as its resource version is the same. */
  items(): ReadonlyMap<string, KubeObject>;
  /** Undefined until the first list succeeded; then, while the server cannot be reached, since when and why. */
  health():
    | { readonly kind: 'starting' | 'current' }
    | { readonly kind: 'unreachable'; readonly sinceMs: number; readonly message: string };
  /** What a write answered; ignored when the copy is newer. */
  noteWritten(object: KubeObject): void;
  /** Removed by us: does not come back by events that are older, only under another uid, or when a list that began later still has it. */
  noteRemoved(name: string, uid: string): void;
  changes(wake: Wake, signal: AbortSignal): void;
  /** Runs until the signal aborts. */
  start(signal: AbortSignal): void;
  /** Resolves when the first list succeeded, or the signal aborts. */
  ready(signal: AbortSignal): Promise<void>;
}

/** Which replica reconciles. */
export interface Leadership {
  /** Whether this one does, now: false as soon as its lease may have run out, whatever the server says later. */
  leads(): boolean;
  /** Aborts when the present term ends; already aborted while this one does not lead. Give it to every write. */
  term(): AbortSignal;
  /** Name of the replica that leads, as far as is known. */
  holder(): string | undefined;
  changes(wake: Wake, signal: AbortSignal): void;
  /** Runs for office until the signal aborts; then gives the lease back if it holds it, and resolves. */
  start(signal: AbortSignal): Promise<void>;
}
