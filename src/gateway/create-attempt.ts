/** Creates the kind of attempt that the provider has planned. */
import type { InferRequest } from '../providers/provider.ts';
import type { Attempt, AttemptOwner } from './attempt.ts';
import type { ForwardPlan } from './decide/forward-plan.ts';
import { Forward, type ForwardRequest } from './forward.ts';
import { TranslatedForward } from './translated-forward.ts';

export function createAttempt(
  plan: Exclude<ForwardPlan, { kind: 'refuse' }>,
  request: Omit<ForwardRequest, 'path'> & { readonly asked: InferRequest },
  owner: AttemptOwner,
): Attempt {
  return plan.kind === 'forward' ? new Forward({ ...request, path: plan.path }, owner) : new TranslatedForward({ ...request, plan }, owner);
}
