/** Remembers the last inference requests that have failed or were slow, in memory: what they contained is not kept. */
import type { FinishedRequest, ReportRequest } from '../../gateway/exchange-deps.ts';
import { judgeRequest } from './decide/judge-request.ts';

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
  /** The newest first. */
  list(): readonly RecordedRequest[];
}

export function createRequestRecord(wallNow: () => number): RequestRecord {
  const kept: RecordedRequest[] = [];
  return {
    note(finished) {
      const because = judgeRequest(finished);
      if (because === undefined) return;
      if (kept.length === MOST_KEPT) kept.shift();
      kept.push({ ...finished, at: wallNow(), because });
    },
    list: () => kept.toReversed(),
  };
}

/** Reports each request to several listeners. */
export function reportTo(...listeners: readonly ReportRequest[]): ReportRequest {
  return (finished) => {
    for (const listener of listeners) listener(finished);
  };
}
