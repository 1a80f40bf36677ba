/** Judges what slots that share memory did, by the requests of their clients and by their timelines. Pure. */
import type { SentRequest } from './slot-clients.ts';

export interface Start {
  readonly slot: string;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

/**
 * While a request waits, every other slot may have had one turn that was due before it, and one that follows because its memory is free anyway. This counts turns
 * instead of seconds, so that it holds on a busy machine as well.
 */
const MOST_STARTS_OF_ANOTHER = 2;

/** What was wrong, a line each. */
export function judgeTurns(requests: readonly SentRequest[], starts: readonly Start[]): readonly string[] {
  return [...lost(requests), ...starved(requests, starts), ...inVain(requests, starts)];
}

function lost(requests: readonly SentRequest[]): readonly string[] {
  return requests.flatMap(({ slot, problem }) => (problem === undefined ? [] : [`A request to "${slot}" was lost. ${problem}`]));
}

function starved(requests: readonly SentRequest[], starts: readonly Start[]): readonly string[] {
  return requests.flatMap(({ slot, sentAt, answeredAt = Number.POSITIVE_INFINITY }) => {
    // Requests that a server answers at once are answered without a start of their slot, however long they last.
    const meanwhile = starts.filter(({ at }) => at > sentAt && at < answeredAt);
    const own = meanwhile.find((start) => start.slot === slot)?.at ?? sentAt;
    const before = meanwhile.filter(({ at }) => at < own);
    const counts = Map.groupBy(before, (start) => start.slot);
    return [...counts]
      .filter(([, each]) => each.length > MOST_STARTS_OF_ANOTHER)
      .map(([other, each]) => `A request to "${slot}" waited while "${other}" was started ${each.length} times`);
  });
}

/** A slot that is loaded serves before it gives way, so no slots evict each other without an answer in between. */
function inVain(requests: readonly SentRequest[], starts: readonly Start[]): readonly string[] {
  return [...Map.groupBy(starts, ({ slot }) => slot)].flatMap(([slot, own]) =>
    own.flatMap(({ at }, index) => {
      const next = own[index + 1];
      const served = requests.some(
        (request) => request.slot === slot && (request.answeredAt ?? 0) > at && (request.answeredAt ?? 0) < (next?.at ?? 0),
      );
      return next === undefined || served ? [] : [`"${slot}" was started twice without an answer in between`];
    }),
  );
}
