/** What both facts and actions are told with. */
import type { ModelFacts } from '../../../providers/provider.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';

/** Something that a check found, in one sentence. */
export interface Finding {
  /** Named for what is violated: `imageNotPresent`. */
  readonly name: string;
  readonly message: string;
}

export type AttemptKind = 'crash' | 'vanish' | 'apply' | 'pull-image' | 'pull-model' | 'start-timeout' | 'probe' | 'drift';

/** What a workload was started with: while another model is wanted, it is still probed and counted as what it is. */
export interface Origin {
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  readonly memoryBytes: number;
}
