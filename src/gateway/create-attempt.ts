/** Creates the kind of attempt that the provider has planned. */
import type { InferRequest } from '../providers/provider.ts';
import type { Attempt, AttemptOwner } from './attempt.ts';
import type { ForwardPlan } from './decide/forward-plan.ts';
import { Forward, type ForwardRequest } from './forward.ts';
import { TranslatedForward } from './translate/translated-forward.ts';

export function createAttempt(
  plan: Exclude<ForwardPlan, { kind: 'refuse' }>,
  request: ForwardRequest & { readonly asked: InferRequest },
  owner: AttemptOwner,
): Attempt {
  return plan.kind === 'forward' ? new Forward(request, plan.path, owner) : new TranslatedForward({ ...request, plan }, owner);
}
