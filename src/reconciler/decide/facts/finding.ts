/** The words that facts, actions and decisions share. */
import type { ModelFacts } from '../../../providers/provider.ts';
import type { Reason } from '../../../schema/reasons.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';

/** What a check found: its reason, and the same in one sentence. */
export interface Finding {
  readonly reason: Reason;
  readonly message: string;
}

export type AttemptKind = 'crash' | 'vanish' | 'apply' | 'pull-image' | 'pull-model' | 'start-timeout' | 'probe' | 'drift';

/** A failure of a workload, for which it is stopped or counted. */
export interface Fault extends Finding {
  readonly kind: AttemptKind;
}

/** What a workload was started with: while another model is wanted, it is still probed and counted as what it is. */
export interface Origin {
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  readonly memoryBytes: number;
}
