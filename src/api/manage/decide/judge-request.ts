/** Which inference requests people look for afterwards: those that have failed, and those that somebody waited for. Pure. */
import type { FinishedRequest } from '../../../gateway/exchange-deps.ts';

const LEAST_FAILED_STATUS = 400;
/** Until the first byte of an answer that was streamed. People begin to wonder after about ten seconds. https://www.nngroup.com/articles/response-times-3-important-limits/ */
const SLOW_FIRST_SECONDS = 10;
/** An answer in one piece takes as long as it is. */
const SLOW_WHOLE_SECONDS = 60;

export function judgeRequest({ status, seconds, ttftSeconds }: FinishedRequest): 'failed' | 'slow' | undefined {
  if (status >= LEAST_FAILED_STATUS) return 'failed';
  const isSlow = ttftSeconds === undefined ? seconds >= SLOW_WHOLE_SECONDS : ttftSeconds >= SLOW_FIRST_SECONDS;
  return isSlow ? 'slow' : undefined;
}
