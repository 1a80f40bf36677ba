/** The reconciler's interfaces to the outside, and the facts it gets. Adapters live in the other folders. */
import type { Endpoint, ModelFacts, PinReference, ProgramOptions } from '../providers/provider.ts';
import type { RolloutState, Settlement } from '../evaluation/decide/rollout-state.ts';
import type { Result } from '../schema/words/failure.ts';
import type { HostFacts } from '../schema/status/hardware.ts';
import type { Progress } from './start-ports.ts';
import type { ModelId, Revision, SlotName, WorkloadId } from '../schema/words/names.ts';
import type { Backend, Capability, ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { Remote } from '../schema/slot/remote-document.ts';
import type { Reason } from '../schema/status/reasons.ts';
import type { SlotSpec, SpecProblem } from '../schema/slot/slot-spec.ts';
import type { Caused, SlotStatus, StateMove, TimelineEntry } from '../schema/status/slot-status.ts';

export type { NextModel, Progress, PromptReport, PromptServer, PromptStore, ReadAhead, ReadAheadReport } from './start-ports.ts';

/** Requests a pass, `withinMs` from now (default: now). Carries no data: the outcome must not depend on it. */
export type Wake = (withinMs?: number) => void;

/** Two clocks that must never be mixed. Times from outside (container start, file change) are wall times. */
export interface Clock {
  /** Milliseconds of a clock that is never set and never goes back. Its origin is arbitrary; suspend may stop it. */
  now(): number;
  /** Unix milliseconds, for timestamps only: anyone may set this clock, in either direction, at any time. */
  wallNow(): number;
  /** Calls `callback` once, at or after `at`, in milliseconds of `now()`. The returned function cancels the call. */
  at(at: number, callback: () => void): () => void;
}

// ---- desired ----
export interface DesiredSlot {
  readonly name: SlotName;
  readonly uid?: string | undefined;
  readonly spec: SlotSpec;
  /** Grows by one with each accepted edit; survives restarts. */
  readonly generation: number;
  /** What is wrong with the present text; if anything is, `spec` is the last good one. */
  readonly problems: readonly SpecProblem[];
  /** Set while rollouts are paused: the newest valid text. `spec` is what was in force before. */
  readonly paused?: { readonly spec: SlotSpec; readonly waits: boolean } | undefined;
  /** Set where cases judge a new model. Its texts decide which spec is in force. */
  readonly rollout?: RolloutState | undefined;
}

export interface DesiredState {
  readonly slots: ReadonlyMap<SlotName, DesiredSlot>;
  /** Slots whose text is refused and that never had a valid one. */
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  /** Problems of the source that belong to no slot, such as a file whose name cannot be a slot's name. */
  readonly problems?: readonly SpecProblem[];
}

export interface SlotSource {
  /** Reads everything, every time. An unreadable source is a failure, and the last state stays in force. */
  read(signal: AbortSignal): Promise<Result<DesiredState>>;
  /** Wakes on each change until the signal aborts. */
  changes(wake: Wake, signal: AbortSignal): void;
  /** The next read returns what follows from it. Default: no slot has cases. */
  settle?(slot: SlotName, settlement: Settlement): void;
}

// ---- workloads ----
export type Mount = { readonly source: string; readonly target: string; readonly readOnly: boolean };

export interface ImageReference {
  /** `name@sha256:…`, or a `localhost/…` name that was built here. */
  readonly reference: string;
  /** The image id that runs when the name is local: its content's hash. */
  readonly imageId?: string;
}

/** One running copy of a slot's server, complete to the last argument: to apply it, a runtime makes no choice. */
export interface Workload {
  /** `svc-slot-<slot>`, or `svc-slot-<slot>--<revision>` while another workload has that name. */
  readonly name: string;
  readonly slot: SlotName;
  readonly revision: Revision;
  readonly generation: number;
  readonly engineName?: string;
  /** Where its server runs, if that is another machine. */
  readonly remote?: Remote;
  /** Undefined where the runtime has no images. */
  readonly image: ImageReference | undefined;
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  /** Device paths or CDI names. */
  readonly devices: readonly string[];
  /** `host` is published on 127.0.0.1; equals the container port on a host network or with addresses per replica. */
  readonly port: { readonly host: number; readonly container: number };
  readonly memoryLimitBytes: number | undefined;
  /** What a cluster needs in addition; undefined unless the runtime's network is `pods`. */
  readonly cluster?: ClusterWorkload;
}

/** `gpus`: undefined means one if the backend computes on a device, else none. */
type Devices = Omit<SlotSpec['resources'], 'memoryBytes'>;
/** Node selection, number of replicas and pod overlay of a workload in a cluster. */
export interface ClusterWorkload extends Devices, Pick<SlotSpec['cluster'], 'nodeSelector' | 'tolerations' | 'storage' | 'pod'> {
  readonly provider: ProviderKind;
  readonly backend: Backend;
  readonly model: ModelId;
  /** Which files its pods fetch. Undefined where they know it themselves, or where the file must be in place. */
  readonly pinnedBy?: PinReference;
  /** Not part of the revision: a new number updates the workload in place. */
  readonly replicas: number;
  /** What admission counts for one replica. Undefined: not known. */
  readonly memoryBytes: number | undefined;
  /** `GET` on this path returns 200 as soon as the server accepts requests. */
  readonly readyPath: string;
  /** Fixed for the life of a replica, also for what the runtime does itself: restarts, replicas removed by others. */
  readonly startTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly serviceAccountName: string | undefined;
}

/** Container fields checked for drift, without those of image and runtime. Undefined if the runtime cannot tell. */
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
  readonly slot: SlotName;
  readonly revision: Revision;
  readonly generation: number;
  readonly phase: 'created' | 'running' | 'stopping' | 'exited';
  /** Unix milliseconds. */
  readonly startedAt: number | undefined;
  /** Why it ended (phase `exited`), or how it ended before its runtime restarted it (any other phase). */
  readonly exit?: WorkloadExit;
  /** Where it answers: several if the runtime runs replicas, none before it runs. */
  readonly endpoints: readonly Endpoint[];
  readonly container: ContainerFacts;
  /** Image or model that the runtime is fetching for it, in phase `created`. */
  readonly fetching?: string;
  /** Why it waits without having failed: no node with room, an image not pulled yet. Pauses the start time. */
  readonly waitingReason?: WaitingReason;
  /** What its server says that it serves. Default: as its provider says. */
  readonly serves?: readonly Capability[];
  /** Why some of its replicas do not run, or what its server misses, in phase `running`. */
  readonly missing?: WaitingReason;
  /** Excludes terminating replicas; undefined for a single process or container. `selector` matches exactly these. */
  readonly replicas?: { readonly present: number; readonly ready: number; readonly selector?: string };
  /** Memory used by its processes, if known: host, mapped files (`mapped`, e.g. weights), and devices. */
  readonly memoryBytes?: { readonly host: number; readonly mapped?: number; readonly device?: number } | undefined;
  /** The runtime's own record of it, for `InPlaceRepair` only. The same object as long as the facts are the same. */
  readonly record?: unknown;
}

export interface WorkloadExit {
  readonly code: number | undefined;
  readonly outOfMemory: boolean;
  readonly at: number;
  readonly message?: string;
  /** Identifies the run that ended, where two runs may end in the same `at`. */
  readonly container?: string;
}

export interface WaitingReason {
  /** `placement`: no node accepts it. `image`, `model`: it cannot be fetched. */
  readonly kind: 'placement' | 'image' | 'model' | 'other';
  /** `Unschedulable`, `ImagePullBackOff`. */
  readonly reason: Reason;
  /** Text for users, including the fix if there is one. */
  readonly message: string;
}

/** Offered by a runtime in which applying a workload again updates it in place. Both functions are pure. */
export interface InPlaceRepair {
  /** Returns alterations since it was applied, one phrase a field: `replicas 0 instead of 2`. Ignores unset fields. */
  findAltered(wanted: Workload, observed: ObservedWorkload): readonly string[];
  /** Whether an edit needs no new revision: another number of replicas. Everything else is in the revision. */
  isOutdated(wanted: Workload, observed: ObservedWorkload): boolean;
}

export type ImageFact = { readonly reference: string; readonly present: boolean; readonly imageId?: string };

/** The properties of a runtime; they never change while it exists. */
export interface RuntimeTraits {
  readonly kind: 'in-memory' | 'process' | 'podman' | 'kube';
  /** Whether workloads need an image. */
  readonly images: boolean;
  /**
   * `shared`: the server binds `127.0.0.1:<host port>` itself. `published`: a host port leads to its container port.
   * `pods`: each replica has an address of its own, and no host port is used.
   */
  readonly network: 'shared' | 'published' | 'pods';
  /** The path at which a workload sees the model store; undefined if it is the host path. */
  readonly modelsTarget: string | undefined;
  /** Undefined if altered workloads are replaced instead. */
  readonly inPlace?: InPlaceRepair;
}

export interface RuntimeFacts {
  readonly workloads: readonly ObservedWorkload[];
  readonly images: readonly ImageFact[];
  /** Flags of programs by image or, without images, by provider. `asking`: known soon. Default: not known. */
  readonly options?: ReadonlyMap<string, ProgramOptions | 'asking'>;
}

/** Milliseconds on the CPU, and on devices where the kernel counts them. */
export type Work = { readonly cpuMs: number; readonly deviceMs: number | undefined };
export type LogLine = { readonly stream: 'stdout' | 'stderr'; readonly text: string };

/**
 * Where workloads run. Methods may be called twice, and again after a crash. None throws for an expected failure.
 * - `apply` creates and starts a workload, or the one of this name and revision that exists, and returns its id.
 * What runs keeps everything that it was started with, except for what `inPlace` corrects. Fails with reason
 * `PortTaken` if the host port is in use, `ImageMissing`, `NameTaken`, `DeviceMissing` or `StartFailed`.
 * - `stop` asks the workload to end, waits `graceMs`, kills and removes it. It succeeds if there is no such workload.
 */
export interface Runtime {
  readonly traits: RuntimeTraits;
  observe(images: readonly ImageReference[], signal: AbortSignal): Promise<Result<RuntimeFacts>>;
  pull(image: ImageReference, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Result<void>>;
  apply(workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>>;
  stop(id: WorkloadId, options: { readonly graceMs: number }, signal: AbortSignal): Promise<Result<void>>;
  logs(id: WorkloadId, options: { readonly tail: number; readonly follow: boolean }, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Returns how long its processes have computed so far; undefined if that is unknown. */
  work?(id: WorkloadId): Promise<Work | undefined>;
  /** Runs a program of a local image without network and devices; returns its output. Undefined without images. */
  print?(image: ImageReference, argv: readonly [string, ...string[]], signal: AbortSignal): Promise<Result<string>>;
  changes(wake: Wake, signal: AbortSignal): void;
}

// ---- models, host, traffic ----
export type ModelPresence =
  | { readonly kind: 'present'; readonly facts: ModelFacts }
  /** Not in the store, but `pull` can fetch it. `refusal`: once its licence is accepted. `companion`: set in a view. */
  | { readonly kind: 'pullable'; readonly sizeBytes: number | undefined; readonly refusal?: string; readonly companion?: ModelId }
  /** Neither in store nor catalogue, or unusable: a user must add it. `isAbsent`: no file has this name. */
  | { readonly kind: 'missing'; readonly message: string; readonly isAbsent?: true };

export interface ModelStore {
  /** Absolute host path of the store. */
  readonly root: string;
  observe(ids: readonly ModelId[], signal: AbortSignal): Promise<ReadonlyMap<ModelId, ModelPresence>>;
  pull(id: ModelId, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Result<void>>;
  changes(wake: Wake, signal: AbortSignal): void;
}

export type HostProbe = { read(signal: AbortSignal): Promise<HostFacts> };

/** What the gateway knows of one workload. */
export interface WorkloadActivity {
  readonly inFlight: number;
  /** Requests that have ended on it, and those of them that it did not answer, or answered 5xx. Default: not known. */
  readonly ended?: number | undefined;
  readonly failed?: number | undefined;
  /** When the last request ended, or began if one is in flight; milliseconds of the clock's `now()`. */
  readonly lastUsedAt: number | undefined;
  /** When the last bytes of an answer came from it; undefined if there were none, or if that is not known. */
  readonly lastHeardAt?: number | undefined;
}

export interface Demand {
  /** Requests parked for the slot now. */
  readonly waiting: number;
  /** Since when the oldest of them waits, in milliseconds of the clock's `now()`; undefined if unknown. */
  readonly waitingSince?: number | undefined;
  /** Key of the caller of that request; undefined if a user asked for the load, or if it is unknown. */
  readonly caller?: string | undefined;
  /** When a request last asked for the slot or gave up waiting, in milliseconds of the clock's `now()`. */
  readonly lastAskedAt: number;
}

/** What the reconciler may read of the gateway's holds and parking, and the one thing it may ask of the gateway. */
export interface Traffic {
  read(): { readonly workloads: ReadonlyMap<WorkloadId, WorkloadActivity>; readonly demand: ReadonlyMap<SlotName, Demand> };
  /** Ends the requests in flight on a workload whose drain timeout has passed; they fail with `upstream.failed`. */
  abort(workload: WorkloadId): void;
  /** Resolves once no process sends to withdrawn workloads; false if some had unknown requests. Default: true. */
  settle?(workload: WorkloadId): Promise<boolean>;
  changes(wake: Wake, signal: AbortSignal): void;
}

// ---- what comes out ----
export interface Report {
  readonly at: number;
  readonly statuses: readonly SlotStatus[];
  /** Slots whose text was never valid; they have no status. */
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  /** New since the last report; by default, nothing is caused. */
  readonly entries: readonly TimelineEntry[];
  readonly caused?: readonly Caused[];
  /** Every change of state since the last report, also between `ready`, `serving` and `idle`. Default: none. */
  readonly moves?: readonly StateMove[];
}

export interface StatusSink {
  /** Never blocks a pass and never throws; a sink that fails logs it itself. */
  write(report: Report): void;
}
