/** Remembers the last inference requests that have failed or were slow, in memory: what they contained is not kept. */
import type { FinishedRequest, ReportRequest } from '../../gateway/exchange-deps.ts';
import { createRingBuffer } from '../../platform/ring-buffer.ts';

/** A few kilobytes. A client that fails in a loop pushes older ones out. */
const MOST_KEPT = 200;

export interface RecordedRequest extends FinishedRequest {
  /** Unix milliseconds of its end. */
  readonly at: number;
  readonly because: 'failed' | 'slow';
}

export interface RequestRecord {
  /** Allocates nothing for a request that was answered in time. */
  readonly note: ReportRequest;
  list(): readonly RecordedRequest[];
}

export function createRequestRecord(wallNow: () => number): RequestRecord {
  const kept = createRingBuffer<RecordedRequest>(MOST_KEPT);
  return {
    note(finished) {
      const because = judgeRequest(finished);
      if (because !== undefined) kept.push({ ...finished, at: wallNow(), because });
    },
    list: () => kept.items().reverse(),
  };
}

export function reportTo(...listeners: readonly ReportRequest[]): ReportRequest {
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
