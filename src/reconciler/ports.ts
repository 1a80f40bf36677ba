/** What the reconciler needs of the outside, and the facts that come through. Adapters live in `sources/`, `runtimes/`, `models/` and `dispatch/`. */
import type { Endpoint, ModelFacts } from '../providers/provider.ts';
import type { Result } from '../schema/failure.ts';
import type { ModelId, Revision, SlotName, WorkloadId } from '../schema/names.ts';
import type { Backend, ProviderKind } from '../schema/provider-kinds.ts';
import type { Reason } from '../schema/reasons.ts';
import type { SlotSpec, SpecProblem } from '../schema/slot-spec.ts';
import type { SlotStatus, TimelineEntry } from '../schema/slot-status.ts';

/** Asks for a pass. Carries no data: knowing what changed must not alter what is done. `withinMs` says how soon (default: now). */
export type Wake = (withinMs?: number) => void;

export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Calls back once, at or after `at`; the returned function cancels. */
  at(at: number, callback: () => void): () => void;
}

// ---- desired ----

export interface DesiredSlot {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  /** Grows by one with each accepted edit; kept over restarts. */
  readonly generation: number;
  /** Problems of the present text; when there are any, `spec` is the last good one. */
  readonly problems: readonly SpecProblem[];
}

export interface DesiredState {
  readonly slots: ReadonlyMap<SlotName, DesiredSlot>;
  /** Slots whose text is refused and that never had a good one. */
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  /** What is wrong with the source and belongs to no slot: a file whose name cannot be a slot's. */
  readonly problems?: readonly SpecProblem[];
}

export interface SlotSource {
  /** Reads everything, each time. An unreadable source is a failure, and the last state read stays in force. */
  read(signal: AbortSignal): Promise<Result<DesiredState>>;
  /** Wakes on each change until the signal aborts. */
  changes(wake: Wake, signal: AbortSignal): void;
}

// ---- workloads ----

export interface Mount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface ImageReference {
  /** `name@sha256:…`, or a `localhost/…` name that was built here. */
  readonly reference: string;
  /** The image id that runs when the name is local: its content's hash. */
  readonly imageId?: string;
}

/** One running copy of a slot's server, complete to the last argument: applying it makes no choice. */
export interface Workload {
  /** `svc-slot-<slot>`, or `svc-slot-<slot>--<revision>` while another one has that name. */
  readonly name: string;
  readonly slot: SlotName;
  readonly revision: Revision;
  readonly generation: number;
  /** Undefined where the runtime has no images. */
  readonly image: ImageReference | undefined;
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  /** Device paths or CDI names. */
  readonly devices: readonly string[];
  /** `host` is published on 127.0.0.1; where the runtime shares the host's network, or gives each replica an address, both are the same. */
  readonly port: { readonly host: number; readonly container: number };
  readonly memoryLimitBytes: number | undefined;
  /** What a cluster needs to know beyond this; undefined where the runtime's network is not `pods`. */
  readonly cluster?: ClusterWorkload;
}

/** Where and how often a workload runs in a cluster. */
export interface ClusterWorkload {
  readonly provider: ProviderKind;
  readonly backend: Backend;
  readonly model: ModelId;
  /** Not part of the revision: changing it applies the same workload again. */
  readonly replicas: number;
  /** Undefined: one where the backend computes on a device, else none. */
  readonly gpus: number | undefined;
  /** What admission counts for one replica. */
  readonly memoryBytes: number;
  /** `GET` on this path answers 200 as soon as the server takes requests. */
  readonly readyPath: string;
  readonly startTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly nodeSelector: SlotSpec['cluster']['nodeSelector'];
  readonly tolerations: SlotSpec['cluster']['tolerations'];
  readonly storage: SlotSpec['cluster']['storage'];
  readonly serviceAccountName: string | undefined;
}

/** The parts of a container that drift is looked for in, without what the image and the runtime bring of their own. Undefined: this runtime cannot tell. */
export interface ContainerFacts {
  readonly imageId: string | undefined;
  readonly argv: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly mounts: readonly Mount[] | undefined;
  readonly devices: readonly string[] | undefined;
  readonly port: { readonly host: number; readonly container: number } | undefined;
}

export interface ObservedWorkload {
  readonly id: WorkloadId;
  readonly name: string;
  /** From the labels. */
  readonly slot: SlotName;
  readonly revision: Revision;
  readonly generation: number;
  readonly phase: 'created' | 'running' | 'stopping' | 'exited';
  /** Unix milliseconds. */
  readonly startedAt: number | undefined;
  /** With phase `exited`, why; with another one, how it ended the last time, where its runtime starts it again by itself. */
  readonly exit?: WorkloadExit;
  /** Where it answers; several where the runtime runs replicas; none before it runs. */
  readonly endpoints: readonly Endpoint[];
  readonly container: ContainerFacts;
  /** Its image or model is being fetched by the runtime itself; with phase `created`. */
  readonly fetching?: string;
  /** What keeps it from running and may pass by itself: no node with room, an image that cannot be pulled. Its start time does not count meanwhile. */
  readonly waitingReason?: WaitingReason;
  /** With phase `running`: why not all of its replicas do. */
  readonly missing?: WaitingReason;
  /** Where a workload may have several. */
  readonly replicas?: { readonly present: number; readonly ready: number };
  /** The runtime's own record of it, for `InPlaceRepair`; opaque to everybody else. The same object for the same facts. */
  readonly record?: unknown;
}

export interface WorkloadExit {
  readonly code: number | undefined;
  readonly outOfMemory: boolean;
  readonly at: number;
  readonly message?: string;
  /** Which run of it that was, where `at` cannot tell two apart. */
  readonly container?: string;
}

export interface WaitingReason {
  /** `placement`: no node takes it. `image`, `model`: it cannot be fetched. */
  readonly kind: 'placement' | 'image' | 'model' | 'other';
  /** `Unschedulable`, `ImagePullBackOff`. */
  readonly reason: Reason;
  /** For people, with what to do about it where there is something. */
  readonly message: string;
}

/** Of a runtime where applying a workload again inPlace it in place. Pure functions. */
export interface InPlaceRepair {
  /** What was altered from outside since it was applied, a phrase for each field: `replicas 0 instead of 2`. Foreign fields are nobody's business. */
  findAltered(wanted: Workload, observed: ObservedWorkload): readonly string[];
  /** Whether an edit asks for something that needs no new revision. */
  isOutdated(wanted: Workload, observed: ObservedWorkload): boolean;
}

export interface ImageFact {
  readonly reference: string;
  readonly present: boolean;
  readonly imageId?: string;
}

/** What a runtime is like; constant for its life. */
export interface RuntimeTraits {
  readonly kind: 'in-memory' | 'process' | 'podman' | 'kube';
  /** Whether workloads need an image. */
  readonly images: boolean;
  /**
   * `shared`: the server binds `127.0.0.1:<host port>` itself. `published`: it binds its container port on all addresses, and a host port leads there.
   * `pods`: each replica has an address of its own, and no host port is taken.
   */
  readonly network: 'shared' | 'published' | 'pods';
  /** Where a workload sees the model store; undefined: at its host path. */
  readonly modelsTarget: string | undefined;
  /** Undefined: an altered workload is replaced. */
  readonly inPlace?: InPlaceRepair;
}

export interface RuntimeFacts {
  readonly workloads: readonly ObservedWorkload[];
  readonly images: readonly ImageFact[];
}

export interface LogLine {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

export interface Progress {
  readonly what: string;
  readonly doneBytes: number;
  readonly totalBytes?: number;
}

/**
 * Where workloads run. Every method may be called twice and after a crash of the caller; none throws for an expected failure.
 * - `apply` creates and starts; when a workload of this name and revision is there already, starts it if need be and answers its id.
 *   Fails with reason `PortTaken` when the host port is in use, `ImageMissing`, `NameTaken`, `DeviceMissing`, `StartFailed`.
 * - `stop` ends (asks, waits `graceMs`, kills) and removes. Already gone is success.
 */
export interface Runtime {
  readonly traits: RuntimeTraits;
  observe(images: readonly ImageReference[], signal: AbortSignal): Promise<Result<RuntimeFacts>>;
  pull(image: ImageReference, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Result<void>>;
  apply(workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>>;
  stop(id: WorkloadId, options: { readonly graceMs: number }, signal: AbortSignal): Promise<Result<void>>;
  logs(id: WorkloadId, options: { readonly tail: number; readonly follow: boolean }, signal: AbortSignal): AsyncIterable<LogLine>;
  changes(wake: Wake, signal: AbortSignal): void;
}

// ---- models, host, traffic ----

export type ModelPresence =
  | { readonly kind: 'present'; readonly facts: ModelFacts }
  /** Not there, but `pull` can fetch it. */
  | { readonly kind: 'pullable'; readonly sizeBytes: number | undefined }
  /** Not there and unknown: a person must put it there. */
  | { readonly kind: 'missing'; readonly message: string };

export interface ModelStore {
  /** Absolute host path of the store. */
  readonly root: string;
  observe(ids: readonly ModelId[], signal: AbortSignal): Promise<ReadonlyMap<ModelId, ModelPresence>>;
  pull(id: ModelId, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Result<void>>;
  changes(wake: Wake, signal: AbortSignal): void;
}

export interface HostFacts {
  /** Undefined: not known, and admission lets everything in. */
  readonly memoryTotalBytes: number | undefined;
  readonly memoryAvailableBytes: number | undefined;
}

export interface HostProbe {
  read(signal: AbortSignal): Promise<HostFacts>;
}

/** What the gateway knows of one workload. */
export interface WorkloadActivity {
  readonly inFlight: number;
  /** Unix milliseconds of the last request's end, or begin while one runs. */
  readonly lastUsedAt: number | undefined;
}

export interface Demand {
  /** Requests parked for the slot now. */
  readonly waiting: number;
  /** Unix milliseconds of the last request that asked for the slot. */
  readonly lastAskedAt: number;
}

/** Read-only window on the gateway's holds and parking, and the one thing the reconciler may ask of it. */
export interface Traffic {
  read(): {
    readonly workloads: ReadonlyMap<WorkloadId, WorkloadActivity>;
    readonly demand: ReadonlyMap<SlotName, Demand>;
  };
  /** Ends the requests in flight on a workload whose drain time is over; they fail with `upstream.failed`. */
  abort(workload: WorkloadId): void;
  changes(wake: Wake, signal: AbortSignal): void;
}

// ---- what comes out ----

export interface Report {
  readonly at: number;
  readonly statuses: readonly SlotStatus[];
  /** Slots whose text never was good; they have no status. */
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  /** New since the last report. */
  readonly entries: readonly TimelineEntry[];
}

export interface StatusSink {
  /** Never blocks a pass and never throws; a sink that fails says so in its own log. */
  write(report: Report): void;
}

export type { ProbeIo } from '../providers/provider.ts';
