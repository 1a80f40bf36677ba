/** What a slot is like now, as people and programs see it. Derived anew by each pass; never read back to decide anything. */
import type { ModelId, SlotName } from './names.ts';
import type { Backend, ProviderKind } from './provider-kinds.ts';
import type { Reason } from './reasons.ts';

export const SLOT_STATES = ['offline', 'pulling', 'starting', 'warming', 'ready', 'serving', 'idle', 'unloading'] as const;
export type SlotState = (typeof SLOT_STATES)[number];

/** kstatus conditions first, then our own. https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md */
export const CONDITION_TYPES = ['Ready', 'Reconciling', 'Stalled', 'SpecValid', 'DriftDetected'] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];

/** What each condition means when it is true; for the documentation. */
export const CONDITION_MEANINGS = {
  Ready: 'The slot answers requests',
  Reconciling: 'The controller is working on the slot, or is waiting for something that it needs',
  Stalled: 'Somebody must act: the controller cannot make progress on its own',
  SpecValid: 'The text of the slot is valid',
  DriftDetected: 'The running workload was altered from outside',
} as const satisfies Record<ConditionType, string>;

export interface Condition {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: Reason;
  readonly message: string;
  /** Unix milliseconds of the last change of `status`; moves only then. */
  readonly lastTransitionAt: number;
  readonly observedGeneration: number;
}

/** What `Reconciling` says of a slot that needs nothing. */
export const AT_REST = { reason: 'AtRest', message: 'No action required' } as const;

export interface SlotStatus {
  readonly name: SlotName;
  readonly state: SlotState;
  readonly conditions: readonly Condition[];
  readonly observedGeneration: number;
  readonly provider: ProviderKind;
  readonly backend: Backend;
  /** The model that answers now, or the wanted one while none does. */
  readonly model: ModelId;
  /** `http://host:port` of the workload that answers now. */
  readonly endpoint?: string;
  /** What admission counts for this slot, in bytes. */
  readonly memoryBytes?: number;
  /** Starts after the first one of this generation. */
  readonly restarts: number;
  /** Where a slot may have several. */
  readonly replicas?: { readonly present: number; readonly ready: number };
  /** Unix milliseconds since when `state` holds. */
  readonly since: number;
  /** Bytes of a pull under way. */
  readonly progress?: { readonly what: string; readonly doneBytes: number; readonly totalBytes?: number };
}

/** One line of a slot's timeline: what changed, and why. Append-only. */
export interface TimelineEntry {
  /** Grows by one for each entry of this controller's life and continues after a restart; the id of the event stream. */
  readonly seq: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly slot: SlotName;
  readonly kind: 'state' | 'spec' | 'action' | 'failure' | 'drift' | 'condition';
  /** One sentence: `"warming" to "ready"`, `Pulled image "…"`. */
  readonly message: string;
  /** What caused it: a reason, for a change of state with its sentence (`Crashed: The process …`), or a request id. */
  readonly cause?: string;
  readonly from?: SlotState;
  readonly to?: SlotState;
}
