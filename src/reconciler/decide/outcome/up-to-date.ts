/**
 * The condition `UpToDate`: what answers is what the newest spec says. It is derived from the other conditions, so that waiting for this one alone is
 * enough: it is true only if nothing is stalled, nothing is under way, and the slot answers or rests on purpose. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import type { Condition } from '../../../schema/status/slot-status.ts';
import type { ConditionInput } from '../facts/facts.ts';
import type { Gate } from '../rules/gates.ts';

export interface UpToDateFacts {
  readonly ready: ConditionInput;
  readonly reconciling: ConditionInput;
  readonly stalled: ConditionInput;
  /** Why the slot should not run now; undefined where it should. */
  readonly unwanted: Finding | undefined;
  readonly gate: Gate | undefined;
}

export function deriveUpToDate({ ready, reconciling, stalled, unwanted, gate }: UpToDateFacts): ConditionInput {
  if (stalled.status === 'True') return condition('False', stalled);
  if (ready.status === 'Unknown') return condition('Unknown', ready);
  if (ready.status === 'True') {
    // `PreviousServes` says more than what is under way.
    if (reconciling.status !== 'False') return condition('False', ready.reason === 'PreviousServes' ? ready : reconciling);
    return condition('True', { reason: 'SpecInForce', message: 'What answers is what the newest spec says' });
  }
  if (reconciling.status !== 'False') return condition('False', ready);
  // The next request would load the slot, and nothing could answer it.
  if (gate?.kind === 'stalled' && unwanted?.reason !== 'Disabled' && unwanted?.reason !== 'NoReplicas') return condition('False', gate);
  // A slot that should run, does not answer and for which nothing is under way, is one about which too little is known.
  return condition(unwanted === undefined ? 'Unknown' : 'True', ready);
}

function condition(status: Condition['status'], { reason, message }: Finding): ConditionInput {
  return { type: 'UpToDate', status, reason, message };
}
