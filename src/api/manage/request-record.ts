/** Remembers inference requests in memory: the last ones of all, and longer those that have failed or were slow. */
import type { FinishedRequest, ReportRequest, RunningRequest, RunningRequests } from '../../gateway/exchange-deps.ts';
import { createRingBuffer } from '../../platform/ring-buffer.ts';
import type { EndedRequest } from './decide/explain-slow.ts';

/** Under a megabyte, and some seconds of a busy gateway. */
export const MOST_RECENT = 1000;
/** A client that fails in a loop pushes older ones out, but requests that are answered in time do not. */
export const MOST_TROUBLED = 200;

export interface RecordedRequest extends EndedRequest {
  /** Increases with each request, also over restarts, unless the clock was set back. */
  readonly number: number;
  readonly because: 'failed' | 'slow' | undefined;
}

export interface RequestRecord {
  /** Costs a fraction of a microsecond for a request that was answered in time. */
  readonly note: ReportRequest;
  /** The newest first. */
  list(): readonly RecordedRequest[];
}

/** A gateway that serves fewer requests than this in a millisecond does not repeat numbers of the one before it. */
const NUMBERS_PER_MS = 1000;

export function createRequestRecord(wallNow: () => number): RequestRecord {
  const first = wallNow() * NUMBERS_PER_MS;
  let count = 0;
  const recent: FinishedRequest[] = [];
  const endedAt = new Float64Array(MOST_RECENT);
  const troubled = createRingBuffer<RecordedRequest>(MOST_TROUBLED);
  return {
    note(finished) {
      const at = wallNow();
      const place = count % MOST_RECENT;
      recent[place] = finished;
      endedAt[place] = at;
      count += 1;
      const because = judgeRequest(finished);
      if (because !== undefined) troubled.push({ finished, at, number: first + count, because });
    },
    list() {
      const oldest = Math.max(0, count - MOST_RECENT);
      const latest = Array.from({ length: count - oldest }, (_, index): RecordedRequest[] => {
        const place = (count - 1 - index) % MOST_RECENT;
        const finished = recent[place];
        const at = endedAt[place] ?? 0;
        return finished === undefined ? [] : [{ finished, at, number: first + count - index, because: judgeRequest(finished) }];
      });
      const older = troubled.items().filter(({ number }) => number <= first + oldest);
      return [...latest.flat(), ...older.toReversed()];
    },
  };
}

interface Runner {
  running(): readonly RunningRequest[] | Promise<readonly RunningRequest[]>;
  cancel(id: string): void;
}

/** Those of the gateway and of all workers. */
export function createRunningRequests(...runners: readonly Runner[]): RunningRequests {
  const list = async () =>
    (await Promise.all(runners.map(async (each) => await each.running()))).flat().toSorted((a, b) => b.seconds - a.seconds);
  return {
    list,
    async cancel(id) {
      const isKnown = (await list()).some(({ requestId }) => requestId === id);
      if (isKnown) for (const each of runners) each.cancel(id);
      return isKnown;
    },
  };
}

export function reportTo<Finished = FinishedRequest>(
  ...listeners: readonly ((finished: Finished) => void)[]
): (finished: Finished) => void {
  return (finished) => {
    for (const listener of listeners) listener(finished);
  };
}

const LEAST_FAILED_STATUS = 400;
/** Time to the first byte of a stream. https://www.nngroup.com/articles/response-times-3-important-limits/ */
const SLOW_FIRST_SECONDS = 10;
/** An answer in one piece takes as long as it is. */
const SLOW_WHOLE_SECONDS = 60;

/** Selects the requests that people look for afterwards. Pure. */
export function judgeRequest({ status, seconds, ttftSeconds }: FinishedRequest): 'failed' | 'slow' | undefined {
  if (status >= LEAST_FAILED_STATUS) return 'failed';
  const isSlow = ttftSeconds === undefined ? seconds >= SLOW_WHOLE_SECONDS : ttftSeconds >= SLOW_FIRST_SECONDS;
  return isSlow ? 'slow' : undefined;
}
