/** What becomes of an upstream's answer that was collected: an error, or one that must be translated. Pure. */
import type { ErrorBody } from '../../../schema/words/error-codes.ts';
import type { Dialect } from '../../route/decide/dialects.ts';
import { isStillLoading, normaliseUpstreamError } from '../../decide/upstream-error.ts';

export type Verdict =
  /** The request was not processed and may be sent again; `body` is the answer if it cannot be. */
  | { readonly kind: 'loading'; readonly body: ErrorBody }
  | { readonly kind: 'error'; readonly body: ErrorBody }
  | { readonly kind: 'translated'; readonly body: object }
  /** The upstream broke its promise. */
  | { readonly kind: 'unusable'; readonly message: string };

export function judgeAnswer(
  { status, text }: { readonly status: number; readonly text: string },
  { translateAnswer }: Dialect,
  requestId: string,
): Verdict {
  if (status >= 300 && status < 400)
    return unusable(`The upstream answered an inference request with status ${status}, which is not supported`);
  if (status >= 400) {
    const body = normaliseUpstreamError(status, text);
    return { kind: isStillLoading(status, body) ? 'loading' : 'error', body };
  }
  const body = translateAnswer?.(parsed(text), requestId);
  return body === undefined
    ? unusable('The upstream answered in a form that cannot be translated for this path')
    : { kind: 'translated', body };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unusable(message: string): Verdict {
  return { kind: 'unusable', message };
}
