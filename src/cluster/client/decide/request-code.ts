/** How a request to the API server ended, in one word; for metrics. The words have a bounded number of values whatever a server sends. Pure. */
import type { Result } from '../../../schema/words/failure.ts';
import type { Reason } from '../../../schema/status/reasons.ts';

/** The highest status of HTTP. */
const LAST_STATUS = 599;

/** Why a request has no answer. */
const WITHOUT_ANSWER: Partial<Record<Reason, string>> = {
  /** This service gave the request up: it stops, or no longer leads. */
  Aborted: 'aborted',
  /** No credentials could be obtained, so nothing was sent. */
  Unauthorized: 'no_credentials',
  /** The certificate of the server is not trusted. */
  ApiUntrusted: 'untrusted',
};

/** Returns the status of HTTP, or why there is none: `aborted`, `no_credentials`, `untrusted` or `unreachable` (no connection, or no answer in time). */
export function requestCode(answer: Result<{ readonly status: number }>): string {
  if (answer.ok) return String(Math.min(answer.value.status, LAST_STATUS));
  return WITHOUT_ANSWER[answer.failure.reason] ?? 'unreachable';
}
