/** The interfaces of a cluster. Objects are JSON as the server sent it: code that reads a field checks it first. */
import type { Agent } from 'node:http';
import type { RequestOptions } from 'node:https';
import type { Wake } from '../../reconciler/ports.ts';
import type { Result } from '../../schema/words/failure.ts';

export type TlsOptions = Readonly<Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'servername' | 'rejectUnauthorized'>>;

export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  /** The same object as long as its contents are the same: connections depend on it. */
  readonly tls: TlsOptions;
  readonly agent?: Agent;
}

export interface Credentials {
  /** `https://10.0.0.1:443`, without user and password. */
  readonly server: string;
  readonly namespace: string | undefined;
  /** Reads rotated tokens from time to time. Throws if there are no credentials. */
  access(): Promise<Access>;
  /** Discards cached credentials after the server rejected them. Returns false if that happened a moment ago. */
  renew(): boolean;
}

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

/** An object to be sent. The client adds `apiVersion`, `kind` and the namespace. */
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
  /** Owner of the fields that are sent. */
  readonly fieldManager: string;
  /** Whether conflicts are resolved in our favour; otherwise they fail. Default: yes, since the fields are ours. */
  readonly force?: boolean;
  readonly subresource?: 'status';
  readonly dryRun?: boolean;
}

export interface PatchTarget {
  readonly name: string;
  /** Default: the namespace of the client. */
  readonly namespace?: string;
  readonly subresource?: 'status';
}

export interface RemoveOptions {
  readonly graceSeconds?: number;
  readonly uid?: string;
}

export type Transform = (object: KubeObject) => KubeObject;

export interface Selectors {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ListOptions extends Selectors {
  /** Called for each object while the list arrives: complete lists are large. */
  readonly transform?: Transform;
  /**
   * The server may answer from its cache if that reaches this resource version ("0": any age); otherwise it fails with
   * `Expired`. Undefined: the newest state, which older servers read from etcd.
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
 * Requests in one namespace, a limited number at a time. Failures are values, among them `Invalid` (stalled, with the
 * server's message), `Forbidden` (stalled), `ApiBusy` (429, 503), `ApiFailed` (other 5xx, or a malformed response),
 * `ApiUntrusted` (certificates) and `Expired` (410, or 504 for a version that the server does not have yet).
 */
export interface KubeApi {
  readonly namespace: string;
  readonly server: string;
  get(type: ResourceType, name: string, signal: AbortSignal): Promise<Result<KubeObject>>;
  list(type: ResourceType, options: ListOptions, signal: AbortSignal): Promise<Result<ObjectList>>;
  /** Server-side apply. Creates the object if it does not exist. */
  apply(type: ResourceType, manifest: KubeManifest, options: ApplyOptions, signal: AbortSignal): Promise<Result<KubeObject>>;
  create(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** With `metadata.resourceVersion`: fails with `Conflict` if the object has another version. */
  replace(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** JSON merge patch. A `metadata.resourceVersion` in it is a precondition. */
  mergePatch(type: ResourceType, target: string | PatchTarget, patch: object, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** Removes the object, and its dependents in the background. Succeeds if the object does not exist. */
  remove(type: ResourceType, name: string, options: RemoveOptions, signal: AbortSignal): Promise<Result<void>>;
  /** Streams a watch (`watch: 'true'` in the query) or a log of any length. Ends when the signal aborts. */
  stream(type: ResourceType, options: StreamOptions, signal: AbortSignal): Promise<Result<AsyncIterable<Uint8Array>>>;
  serves(type: ResourceType, signal: AbortSignal): Promise<Result<boolean>>;
}

/** `unreachable`: since when (monotonic milliseconds), why, and whether a list ever succeeded. */
export type CopyHealth =
  | { readonly kind: 'starting' | 'current' }
  | { readonly kind: 'unreachable'; readonly sinceMs: number; readonly message: string; readonly listed: boolean };

/** Copies all objects of one kind, or those with a label. It lags behind the server; note our own writes in it. */
export interface Reflector {
  /** Objects by name. Returns the same object as long as its resource version is the same. */
  items(): ReadonlyMap<string, KubeObject>;
  health(): CopyHealth;
  noteWritten(object: KubeObject): void;
  /** Removes an object that we removed. Only another UID or a later list lets it reappear, not an older event. */
  noteRemoved(name: string, uid: string): void;
  changes(wake: Wake, signal: AbortSignal): void;
  start(signal: AbortSignal): void;
}

export interface Leadership {
  /** Whether this replica leads now. False as soon as its lease may have expired, whatever the server says later. */
  leads(): boolean;
  /** Aborts when the current term ends; already aborted while this replica does not lead. Pass it to every write. */
  term(): AbortSignal;
  holder(): string | undefined;
  changes(wake: Wake, signal: AbortSignal): void;
  /** Takes part in the election until the signal aborts. Then releases a lease that it holds, and resolves. */
  start(signal: AbortSignal): Promise<void>;
}
