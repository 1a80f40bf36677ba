/** Everything that a plan may look at, and what it answers. Facts only: nothing here is decided, nothing here does anything. */
import type { ModelFacts, ProviderRegistry } from '../../../providers/provider.ts';
import type { Failure } from '../../../schema/failure.ts';
import type { ModelId, Revision, SlotName, WorkloadId } from '../../../schema/names.ts';
import type { Backend, Capability, ProviderKind } from '../../../schema/provider-kinds.ts';
import type { SpecProblem } from '../../../schema/slot-spec.ts';
import type { Condition, SlotState } from '../../../schema/slot-status.ts';
import type { Admission, Target } from '../../board.ts';
import type {
  Demand,
  DesiredSlot,
  HostFacts,
  ImageReference,
  LogLine,
  ModelPresence,
  ObservedWorkload,
  Progress,
  RuntimeFacts,
  RuntimeTraits,
  WorkloadActivity,
  WaitingReason,
} from '../../ports.ts';
import type { Action } from './actions.ts';
import type { AttemptKind, Finding, Origin } from './finding.ts';
import type { MemoryVerdict } from '../rules/share-memory.ts';
import type { Comparison } from '../rules/drift.ts';
import type { WorkloadHistory } from './workload-history.ts';
import type { Template } from './workload.ts';

export interface Desired {
  readonly slots: ReadonlyMap<SlotName, DesiredSlot>;
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  readonly providers: ProviderRegistry;
  /** The image a provider runs in; undefined: none is known. */
  readonly images: (kind: ProviderKind, backend: Backend) => ImageReference | undefined;
  readonly portRange: { readonly first: number; readonly last: number };
  readonly modelsRoot: string;
  /** What admission may hand out; undefined: everything fits. */
  readonly memoryBudgetBytes: number | undefined;
  /** `makeTemplate` for this slot; undefined if its provider is not part of this installation. */
  readonly templateOf: (slot: DesiredSlot, model: ModelFacts, image: ImageReference | undefined) => Template | undefined;
  /** `compareWorkload` in this runtime. */
  readonly compare: (slot: DesiredSlot, template: Template, imageId: string | undefined, workload: ObservedWorkload) => Comparison;
}

export interface Observed {
  readonly traits: RuntimeTraits;
  /** Whether this controller carries its plans out. One that does not sees the same workloads, and nothing of what the one that does knows beyond. */
  readonly leads: boolean;
  readonly runtime:
    | { readonly kind: 'reachable'; readonly facts: RuntimeFacts }
    | { readonly kind: 'unreachable'; readonly message: string };
  readonly models: ReadonlyMap<ModelId, ModelPresence>;
  readonly host: HostFacts;
  readonly activity: ReadonlyMap<WorkloadId, WorkloadActivity>;
  readonly demand: ReadonlyMap<SlotName, Demand>;
  /** What is known of workloads beyond what their runtime says. */
  readonly histories: ReadonlyMap<WorkloadId, WorkloadHistory>;
  readonly attempts: ReadonlyMap<SlotName, Attempts>;
  /** By key. Holds those that ended after the observation began, too: the observation may not show their effect yet. */
  readonly running: ReadonlyMap<string, RunningAction>;
  /** When a slot last was of use; one that never was is missing. Unix milliseconds. */
  readonly lastActive: ReadonlyMap<SlotName, number>;
  /** Host ports that turned out to be used by somebody else. */
  readonly takenPorts: ReadonlySet<number>;
  readonly published: ReadonlyMap<SlotName, PublishedSlot>;
}

export interface Attempt {
  readonly at: number;
  readonly kind: AttemptKind;
  readonly failure: Failure;
  readonly logTail?: readonly LogLine[];
  /** Of which workload; a workload fails once, but for crashes in place. */
  readonly workload?: WorkloadId;
  /** Its runtime started it again by itself. */
  readonly inPlace?: true;
}

export interface Attempts {
  /** The failures of one generation of the slot; those of another one do not count. */
  readonly generation: number;
  /** Oldest first. */
  readonly failures: readonly Attempt[];
  /** Workloads started in this generation, and those that their runtime started again. */
  readonly starts: number;
}

export interface RunningAction {
  readonly action: Action;
  readonly startedAt: number;
  readonly progress?: Progress;
  /** It was told to end, and has not yet. */
  readonly cancelled?: true;
}

/** What was published of a slot by the last pass that decided something about it. */
export interface PublishedSlot {
  readonly decision: Decision;
  /** Unix milliseconds since when `decision.state` holds. */
  readonly since: number;
  readonly conditions: readonly Condition[];
}

export type ConditionInput = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** What was decided about one slot. */
export interface Decision {
  readonly name: SlotName;
  readonly generation: number;
  readonly state: SlotState;
  readonly wanted: boolean;
  /** The most telling one first. */
  readonly findings: readonly Finding[];
  readonly conditions: readonly ConditionInput[];
  readonly admission: Admission;
  readonly targets: readonly Target[];
  /** The workload behind the targets. */
  readonly serving: WorkloadId | undefined;
  /** Workloads that get no new requests and go when theirs have ended. */
  readonly draining: readonly WorkloadId[];
  readonly memory: MemoryVerdict | undefined;
  readonly memoryBytes: number | undefined;
  readonly revision: Revision | undefined;
  readonly capabilities: readonly Capability[];
  readonly nextAttemptAt: number | undefined;
  readonly lastFailure: Attempt | undefined;
  /** Keys of pulls that this slot waits for: their failure is its failure. */
  readonly waitsFor: readonly string[];
  readonly progress: Progress | undefined;
  /** Ready for so long that earlier failures are forgotten. */
  readonly stable: boolean;
  /** What was altered from outside. */
  readonly drift: readonly string[];
  /** What keeps a workload of it from running. */
  readonly waitingReason: WaitingReason | undefined;
  /** Of the workload that stands for the slot. */
  readonly replicas: ObservedWorkload['replicas'];
}

export interface Plan {
  /** In the order in which they are to be begun. */
  readonly actions: readonly Action[];
  readonly decisions: ReadonlyMap<SlotName, Decision>;
  /** Workloads of slots that are no longer desired, and why they have to go. */
  readonly orphans: ReadonlyMap<WorkloadId, Finding>;
  /** Unix milliseconds of the next moment at which time alone changes something. */
  readonly wakeAt: number | undefined;
}

export type { AttemptKind, Finding, Origin, WorkloadHistory };
