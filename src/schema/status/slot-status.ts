/** The observed status of a slot for users and programs. Derived in each pass; never read back to decide. */
import type { FailedRollout } from '../slot/evaluation-case.ts';
import type { ModelId, SlotName } from '../words/names.ts';
import type { Reason } from './reasons.ts';
import type { Backend, ProviderKind } from '../slot/provider-kinds.ts';

export const SLOT_STATES = ['offline', 'pulling', 'starting', 'warming', 'ready', 'serving', 'idle', 'unloading'] as const;
export type SlotState = (typeof SLOT_STATES)[number];
/** Between these, a slot moves with its requests. */
export const ANSWERING_STATES: ReadonlySet<SlotState> = new Set(['ready', 'serving', 'idle']);

/** Conditions of kstatus and our own. https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md */
export const CONDITION_TYPES = ['Ready', 'UpToDate', 'Reconciling', 'Stalled', 'SpecValid', 'DriftDetected', 'Sleeping'] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];

/** What each condition means when it is true; for the documentation. */
export const CONDITION_MEANINGS = {
  Ready: 'The slot answers requests',
  UpToDate: 'The latest change is live: wait for this one after an edit',
  Reconciling: 'The controller is working on the slot, or is waiting for something that it needs',
  Stalled: 'Somebody must act: the controller cannot make progress on its own',
  SpecValid: 'The text of the slot is valid',
  DriftDetected: 'The running workload was altered from outside',
  Sleeping: 'The server sleeps, and a request wakes it; only of slots whose engine can sleep',
} as const satisfies Record<ConditionType, string>;

export interface Condition {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: Reason;
  readonly message: string;
  /** Unix milliseconds of the last change of `status`. */
  readonly lastTransitionAt: number;
  readonly observedGeneration: number;
}

/** What `Reconciling` says of a slot that needs nothing. */
export const AT_REST = { reason: 'AtRest', message: 'No action required' } as const;

/** What failures of a workload count towards a crash loop. */
export const CRASH_KINDS = ['crash', 'probe', 'start-timeout'] as const;

export interface RecordedFailure {
  /** Unix milliseconds. */
  readonly at: number;
  readonly kind: (typeof CRASH_KINDS)[number];
  readonly reason: Reason;
  readonly message: string;
}

export interface SlotStatus {
  readonly name: SlotName;
  readonly state: SlotState;
  readonly conditions: readonly Condition[];
  readonly observedGeneration: number;
  readonly provider: ProviderKind;
  /** What really computes; undefined while nothing answers. */
  readonly backend?: Backend;
  /** The model that answers now; while none does, the model in the spec. */
  readonly model: ModelId;
  /** `http://host:port` of the workload that answers now. */
  readonly endpoint?: string;
  /** Memory that admission counts for the slot, in bytes. */
  readonly memoryBytes?: number;
  /** Number of restarts since the first start of this generation. */
  readonly restarts: number;
  /**
   * Failures since the last edit, other than of `replicas`, that count towards a crash loop, oldest first, at most ten:
   * what the next controller must know of them, since what failed is gone. Absent where there are none.
   */
  readonly failures?: readonly RecordedFailure[];
  /** Hash of the failed spec without replicas; failures keep counting if only the scale changed meanwhile. */
  readonly failedSpec?: string;
  /**
   * Set where a slot may have several replicas: those of the workload that answers, or else of the one that is to
   * answer. `selector` selects exactly these in a cluster, so that an autoscaler does not count the pods of two
   * workloads during a swap.
   */
  readonly replicas?: { readonly present: number; readonly ready: number; readonly selector?: string };
  /** Unix milliseconds since which the slot is in `state`. */
  readonly since: number;
  /** Progress of a running pull. */
  readonly progress?: { readonly what: string; readonly doneBytes: number; readonly totalBytes?: number; readonly bytesPerSecond?: number };
  /** Set where the model of the last edit has failed the cases of the slot, or did not start. */
  readonly rollout?: FailedRollout;
}

export interface StateMove {
  readonly slot: SlotName;
  readonly from: SlotState;
  readonly to: SlotState;
}

/** What a request has caused: a slot was loaded for it, or stopped to make room for such a slot. */
export interface Caused {
  readonly slot: SlotName;
  /** Key of the caller, not to be shown to everyone who may read the status. */
  readonly caller: string;
  readonly what: 'loads' | 'evictions';
}

export const TIMELINE_KINDS = ['state', 'spec', 'swap', 'action', 'failure', 'drift', 'condition', 'edit'] as const;

/** An entry of a slot's append-only timeline: what changed, and why. */
export interface TimelineEntry {
  /** Sequence number, which continues after a restart of the controller. Event streams use it as the event id. */
  readonly seq: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly slot: SlotName;
  readonly kind: (typeof TIMELINE_KINDS)[number];
  /** One sentence: `From "warming" to "ready"`, `Pulled image "…"`. */
  readonly message: string;
  /** What caused the change: name and message of a finding, or the id of a request. */
  readonly cause?: string;
  readonly from?: SlotState;
  readonly to?: SlotState;
}

/** The part of a status that the next controller reads. Whatever writes statuses writes it. */
export type RecordedFailures = Pick<SlotStatus, 'observedGeneration' | 'failures' | 'failedSpec'>;

/**
 * Reads back the one thing that is stored and decides something: failures, which the world cannot show again. Called
 * when a controller begins to act. Rejects if nothing can be read, and leaves out a slot whose record is missing or
 * damaged. Both mean that its failures are counted from zero.
 */
export interface FailureRecords {
  read(signal: AbortSignal): Promise<ReadonlyMap<SlotName, RecordedFailures>>;
}
