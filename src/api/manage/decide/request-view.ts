/** Requests that this gateway answers and has answered, as JSON of the API. Pure. */
import type { z } from 'zod';
import { RequestEntries } from '../../../schema/status/slot-lists.ts';
import type { TimelineEntry } from '../../../schema/status/slot-status.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Immutable } from '../../server/answer.ts';
import type { RunningRequest } from '../../../gateway/exchange-deps.ts';
import type { RecordedRequest } from '../request-record.ts';
import { explainSlow } from './explain-slow.ts';
import { answerOf } from './slot-view.ts';

export interface RequestFilter {
  readonly limit: number;
  readonly slot?: SlotName | undefined;
  readonly caller?: string | undefined;
  /** With both, requests that have failed or were slow. */
  readonly failed: boolean;
  readonly slow: boolean;
  /** Only those with a higher number. */
  readonly after?: number | undefined;
}

/** More would not be read, and the answer would be large. */
const MOST_RUNNING = 1000;

/** `ended`: the newest first. `running`: the oldest first. `entries`: of all slots, oldest first. */
export function viewRequests(
  { ended: all, running }: { readonly ended: readonly RecordedRequest[]; readonly running: readonly RunningRequest[] },
  entries: readonly TimelineEntry[],
  { limit, slot, caller, failed, slow, after = 0 }: RequestFilter,
): Immutable<z.output<typeof RequestEntries>> {
  const last = all[0]?.number ?? 0;
  // A number that was never used comes from another gateway, so everything is new.
  const least = after > last ? 0 : after;
  const isShown = ({ finished, number, because }: RecordedRequest): boolean =>
    number > least &&
    (slot === undefined || finished.slot === slot) &&
    (caller === undefined || finished.caller === caller) &&
    ((!failed && !slow) || (failed && because === 'failed') || (slow && because === 'slow'));
  const shown = all.filter(isShown).slice(0, limit);
  const ofSlot = Map.groupBy(entries, (entry) => entry.slot);
  const requestsOf = Map.groupBy(all, ({ finished }) => finished.slot);
  const view = (request: RecordedRequest) => {
    const { slot: name } = request.finished;
    const facts = { entries: (name && ofSlot.get(name)) ?? [], others: requestsOf.get(name) ?? [] };
    return viewRequest(request, explainSlow(request, facts));
  };
  const inFlight = running.filter((each) => (slot === undefined || each.slot === slot) && (caller === undefined || each.caller === caller));
  return { requests: shown.map(view), in_flight: inFlight.slice(0, MOST_RUNNING).map(viewRunning), last };
}

const viewRunning = ({ requestId: id, ...running }: RunningRequest) => answerOf(RequestEntries.shape.in_flight.element, { ...running, id });

function viewRequest({ finished, at, ...rest }: RecordedRequest, why: ReturnType<typeof explainSlow>) {
  const { requestId: id, ttftSeconds: firstSeconds, tokens, seconds, parkedSeconds = 0 } = finished;
  // The prompt of an answer whose events were counted is not known.
  const input = tokens?.isEstimated === true ? undefined : tokens?.input;
  const output = tokens?.output;
  const outputSeconds = seconds - (firstSeconds ?? parkedSeconds);
  return answerOf(RequestEntries.shape.requests.element, {
    ...finished,
    ...rest,
    id,
    at: new Date(at).toISOString(),
    firstSeconds,
    inputTokens: input,
    outputTokens: output,
    cachedTokens: tokens?.cached,
    tokensPerSecond: output === undefined || outputSeconds <= 0 ? undefined : output / outputSeconds,
    why,
  });
}
