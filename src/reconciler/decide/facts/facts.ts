/** What a plan is made from (`Desired`, `Observed`) and what it consists of (`Plan`, `Decision`). Types only. */
import type { ModelFacts, ProgramOptions, ProviderRegistry, Voice } from '../../../providers/provider.ts';
import type { HostFacts, Hardware } from '../../../schema/status/hardware.ts';
import type { Failure, Finding } from '../../../schema/words/failure.ts';
import type { ModelId, Revision, SlotName, WorkloadId } from '../../../schema/words/names.ts';
import type { FallbackSpec } from '../../../schema/slot/fallback.ts';
import type { Backend, Capability, ProviderKind } from '../../../schema/slot/provider-kinds.ts';
import type { SpecProblem } from '../../../schema/slot/slot-spec.ts';
import type { Condition, SlotState } from '../../../schema/status/slot-status.ts';
import type { Admission, Target } from '../../board.ts';
import type {
  Demand,
  DesiredSlot,
  ImageReference,
  LogLine,
  ModelPresence,
  NextModel,
  ObservedWorkload,
  Progress,
  PromptReport,
  ReadAheadReport,
  RuntimeFacts,
  RuntimeTraits,
  WorkloadActivity,
  WaitingReason,
} from '../../ports.ts';
import type { Action, AttemptKind } from './actions.ts';
import type { MeasuredMemory } from './measured-memory.ts';
import type { MemoryVerdict, Newcomer } from './memory-pools.ts';
import type { Comparison } from './drift.ts';
import type { WorkloadHistory } from './workload-history.ts';
import type { Template } from './workload.ts';

export interface Desired {
  readonly slots: ReadonlyMap<SlotName, DesiredSlot>;
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  readonly providers: ProviderRegistry;
  /** The image that a provider runs in; undefined where the manifest has none. */
  readonly images: (kind: ProviderKind, backend: Backend) => ImageReference | undefined;
  readonly portRange: { readonly first: number; readonly last: number };
  /** The port of the gateway itself. */
  readonly ownPorts?: readonly number[];
  readonly modelsRoot: string;
  /** How much memory of the host admission may hand out; undefined where everything fits. */
  readonly memoryBudgetBytes: number | undefined;
  /** The hardware of this host; undefined where it is not known or does not matter. */
  readonly hardware?: Hardware | undefined;
  /** `makeTemplate` for this slot; undefined if its provider is not part of this installation. */
  readonly templateOf: (
    slot: DesiredSlot,
    model: ModelFacts,
    image: ImageReference | undefined,
    more?: { readonly options?: ProgramOptions | undefined; readonly companions?: readonly ModelFacts[] | undefined },
  ) => Template | undefined;
  /** `compareWorkload` in this runtime. */
  readonly compare: (slot: DesiredSlot, template: Template, imageId: string | undefined, workload: ObservedWorkload) => Comparison;
}

export interface Observed {
  readonly traits: RuntimeTraits;
  /** Whether this controller executes its plans. A follower lacks the leader's memory of the workloads. */
  readonly leads: boolean;
  readonly runtime:
    | { readonly kind: 'reachable'; readonly facts: RuntimeFacts }
    | { readonly kind: 'unreachable'; readonly message: string };
  readonly models: ReadonlyMap<ModelId, ModelPresence>;
  readonly host: HostFacts;
  readonly activity: ReadonlyMap<WorkloadId, WorkloadActivity>;
  readonly demand: ReadonlyMap<SlotName, Demand>;
  /** What this controller remembers about workloads, in addition to what their runtime reports. */
  readonly histories: ReadonlyMap<WorkloadId, WorkloadHistory>;
  readonly attempts: ReadonlyMap<SlotName, Attempts>;
  /** Peak measured memory per slot; no entry if nothing was measured. */
  readonly measured?: ReadonlyMap<SlotName, MeasuredMemory>;
  /** By key. Includes actions that ended after the observation began, as it may not show their effect yet. */
  readonly running: ReadonlyMap<string, RunningAction>;
  /** When a slot was last used, in monotonic milliseconds; without an entry for one that never was. */
  readonly lastActive: ReadonlyMap<SlotName, number>;
  /** Why slots are to be loaded ahead of requests now. Default: none is. */
  readonly warm?: ReadonlyMap<SlotName, Finding>;
  /** Slots that a schedule loads within a minute. Default: none. */
  readonly warmSoon?: ReadonlySet<SlotName>;
  /** When time alone changes `warm` or `warmSoon` next, in monotonic milliseconds. */
  readonly warmChangesAt?: number | undefined;
  /** Host ports that turned out to be used by another program. */
  readonly takenPorts: ReadonlySet<number>;
  readonly published: ReadonlyMap<SlotName, PublishedSlot>;
}

export interface Attempt {
  readonly at: number;
  /** When an earlier controller saw it, in Unix milliseconds; undefined for one of this controller. */
  readonly recordedAt?: number;
  readonly kind: AttemptKind;
  readonly failure: Failure;
  readonly logTail?: readonly LogLine[];
  /** A workload fails only once, unless its runtime restarts it. */
  readonly workload?: WorkloadId;
  /** The host port of a workload that was never ready. */
  readonly port?: number | undefined;
  /** The runtime restarted the workload automatically. */
  readonly restartedInPlace?: true;
}

/** Repairs of workloads altered from outside. */
export interface Repairs {
  readonly times: number;
  readonly lastAt: number;
  /** The workload that was repaired last. */
  readonly workload: WorkloadId;
}

export interface Attempts {
  /** Only the failures of this generation of the slot count. */
  readonly generation: number;
  /** Oldest first. */
  readonly failures: readonly Attempt[];
  /** Undefined where nothing was repaired. Apart from the failures, so that endless repairs do not displace them. */
  readonly repairs: Repairs | undefined;
  /** Starts in this generation, including automatic restarts by the runtime. */
  readonly starts: number;
  /** Starts by this controller since the last edit or stable time, oldest first. Default: none. */
  readonly startLog?: readonly StartRecord[];
  /** The last time that prompts were saved or restored. */
  readonly prompts?: PromptReport;
  /** The last model that was read ahead. */
  readonly readAhead?: ReadAheadReport;
}

interface StartRecord {
  readonly revision: string;
  readonly at: number;
}

export interface RunningAction {
  readonly action: Action;
  readonly startedAt: number;
  readonly progress?: Progress;
  /** It was cancelled and has not ended yet. */
  readonly cancelled?: true;
}

/** The publication of a slot by the last pass that decided something about it. */
export interface PublishedSlot {
  readonly decision: Decision;
  /** Since when `decision.state` holds, in Unix milliseconds: a timestamp for users, which decides nothing. */
  readonly since: number;
  readonly conditions: readonly Condition[];
}

export type ConditionInput = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The decision for one slot. */
export interface Decision {
  readonly name: SlotName;
  readonly generation: number;
  readonly state: SlotState;
  readonly wanted: boolean;
  /** Set where it runs ahead of requests only: when it was last active before. */
  readonly ahead?: { readonly lastActiveAt: number | undefined } | undefined;
  /** Most important finding first. */
  readonly findings: readonly Finding[];
  readonly conditions: readonly ConditionInput[];
  readonly admission: Admission;
  readonly targets: readonly Target[];
  /** The workload that the targets belong to. */
  readonly serving: WorkloadId | undefined;
  /** Workloads that get no new requests and are stopped when their last request has ended. */
  readonly draining: readonly WorkloadId[];
  readonly memory: MemoryVerdict | undefined;
  readonly memoryBytes: number | undefined;
  /** Key of the caller whose request it is loaded for. Not for everyone who may read the status. */
  readonly loadsFor?: string | undefined;
  /** The slot that has its memory, where it had to give way. */
  readonly gaveWayTo?: Newcomer | undefined;
  readonly revision: Revision | undefined;
  /** What the serving workload computes with; undefined where none serves, or where it cannot be what was asked for. */
  readonly backend?: Backend | undefined;
  /** Why it computes with another backend than the default one of its provider, if nobody asked for it. */
  readonly backendChoice?: string | undefined;
  /** What keys of the slot make of its server. Default: nothing. */
  readonly notes?: readonly string[] | undefined;
  readonly fallback?: FallbackSpec | undefined;
  readonly capabilities: readonly Capability[];
  /** The model that the serving workload was started for; undefined where that is not known. */
  readonly servedModel?: ModelFacts | undefined;
  /** Voices of a speech model; undefined for other models and while the model is unknown. */
  readonly voices?: readonly Voice[] | undefined;
  readonly nextAttemptAt: number | undefined;
  readonly lastFailure: Attempt | undefined;
  /** Keys of the pulls that this slot waits for: if one fails, the slot fails. */
  readonly waitsFor: readonly string[];
  readonly progress: Progress | undefined;
  /** The slot has been ready for so long that its earlier failures are forgotten. */
  readonly stable: boolean;
  /** The last time that prompts of the slot were saved or restored. */
  readonly prompts?: PromptReport | undefined;
  /** The model that it starts as soon as something else has ended. */
  readonly nextStart?: (NextModel & { readonly rank: number }) | undefined;
  readonly readAhead?: ReadAheadReport | undefined;
  /** Alterations from outside. */
  readonly drift: readonly string[];
  /** Why a workload of the slot does not run. */
  readonly waitingReason: WaitingReason | undefined;
  /** Replicas of the workload that represents the slot. */
  readonly replicas: ObservedWorkload['replicas'];
}

export interface Plan {
  /** Actions in the order to start them. */
  readonly actions: readonly Action[];
  readonly decisions: ReadonlyMap<SlotName, Decision>;
  /** Workloads of slots that are no longer desired, and why they are stopped. */
  readonly orphans: ReadonlyMap<WorkloadId, Finding>;
  /** Models whose files are read into the page cache meanwhile, in this order. Default: none. */
  readonly readAhead?: readonly NextModel[];
  /** When the passage of time alone changes the plan next, in monotonic milliseconds. */
  readonly wakeAt: number | undefined;
}

/** A violated rule. `slot` is undefined if the plan as a whole violates it. */
export interface Objection {
  readonly slot: SlotName | undefined;
  readonly message: string;
}

/** All facts that checks look things up in. */
export interface Case {
  readonly plan: Plan;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly now: number;
  readonly byId: ReadonlyMap<WorkloadId, ObservedWorkload>;
  readonly bySlot: ReadonlyMap<SlotName, readonly ObservedWorkload[]>;
  /** The desired workload; undefined if unknown. */
  readonly templateOf: (slot: DesiredSlot) => Template | undefined;
}
