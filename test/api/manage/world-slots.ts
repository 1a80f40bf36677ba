/** How the in-memory world publishes its slots. */
import type { BoardSlot } from '../../../src/reconciler/board.ts';
import type { SlotName } from '../../../src/schema/words/names.ts';
import type { Reason } from '../../../src/schema/status/reasons.ts';
import type { SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import type { Condition, SlotState } from '../../../src/schema/status/slot-status.ts';

export function boardSlot(name: SlotName, spec: SlotSpec, state: SlotState, generation: number): BoardSlot {
  const ready = state === 'ready';
  const condition = (type: Condition['type'], holds: boolean, reason: Reason, message: string): Condition => ({
    type,
    status: holds ? 'True' : 'False',
    reason,
    message,
    lastTransitionAt: 1_700_000_000_000,
    observedGeneration: generation,
  });
  const reason = ready ? 'ProbePassed' : spec.enabled ? 'Warming' : 'Disabled';
  const conditions = [
    condition('Ready', ready, reason, ready ? '' : spec.enabled ? 'The model is loading' : 'Slot is off: "enabled" is false'),
    condition('Reconciling', state === 'warming', reason, ''),
  ];
  const { provider, backend } = spec;
  const status = { name, state, conditions, observedGeneration: generation, provider, backend, model: spec.model.default };
  return {
    name,
    capabilities: ['chat'],
    admission: { kind: 'park' },
    targets: [],
    status: { ...status, memoryBytes: 2 ** 20, restarts: 0, since: 1_700_000_000_000 },
    spec,
    generation,
    problems: [],
    explain: () => `slot ${name}: ${state}\n  because the model is "${spec.model.default}"`,
  };
}
