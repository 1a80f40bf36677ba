/** Statuses of a slot named "primary" at generation 3. */
import { ModelId, SlotName } from '../../../../src/schema/words/names.ts';
import type { Condition, SlotStatus } from '../../../../src/schema/status/slot-status.ts';
import type { Reason } from '../../../../src/schema/status/reasons.ts';

export const AT = Date.UTC(2026, 0, 31, 12);
export const primary = SlotName.parse('primary');

export const condition = (type: Condition['type'], status: Condition['status'], reason: Reason = 'Unknown', at = AT): Condition => ({
  type,
  status,
  reason,
  message: reason === 'ProbePassed' ? 'The slot answers' : `About ${reason}`,
  lastTransitionAt: at,
  observedGeneration: 3,
});

export const READY: readonly Condition[] = [
  condition('Ready', 'True', 'ProbePassed'),
  condition('Reconciling', 'False', 'AtRest'),
  condition('Stalled', 'False', 'NotStalled'),
  condition('SpecValid', 'True', 'Parsed'),
];

export const slotStatus = (changes: Partial<SlotStatus> = {}): SlotStatus => ({
  name: primary,
  state: 'ready',
  conditions: READY,
  observedGeneration: 3,
  provider: 'gguf',
  backend: 'cpu',
  model: ModelId.parse('a.gguf'),
  endpoint: 'http://10.1.2.3:8080',
  restarts: 1,
  since: AT,
  ...changes,
});
