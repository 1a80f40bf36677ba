/** Creates the attempt that a plan asks for: the request as it is, or a translation. */
import type { AttemptRequest, ExchangeDeps, ExchangeRequest } from './exchange-deps.ts';
import type { Attempt, AttemptEvents } from './request-events.ts';
import { askedOf, type ForwardPlan } from './route/decide/route.ts';
import { Forward } from './upstream/forward.ts';

type RequestToSend = Pick<ExchangeRequest, 'requestId' | 'head' | 'path' | 'direct' | 'trace'> &
  Omit<AttemptRequest, 'deps'> & { readonly deps: AttemptRequest['deps'] & Pick<ExchangeDeps, 'extensions'> };

export function createAttempt(plan: Exclude<ForwardPlan, { kind: 'refuse' }>, sent: RequestToSend, events: AttemptEvents): Attempt {
  const { deps, hold, requestId, requestBody, answer, startedAt, head, path, direct, trace } = sent;
  const request = { deps, hold, requestId, requestBody, answer, startedAt };
  trace?.begin('attempt', hold.slot, hold.endpoint);
  if (plan.kind === 'translate') {
    const traceLines = trace?.linesFor('') ?? '';
    return deps.extensions.translate({ ...request, plan, asked: askedOf(path), head, traceLines }, events);
  }
  const more = { method: direct?.method, isOpaque: direct?.target !== undefined, mistakes: plan.mistakes };
  const headerLines = trace?.linesFor(head.forwarded) ?? head.forwarded;
  return new Forward({ ...request, ...more, headerLines, path: plan.path, capability: path.capability }, events);
}
