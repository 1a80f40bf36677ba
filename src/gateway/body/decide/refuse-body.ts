/** Refuses a request body for what the headers say about it, before it is read. Pure. */
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { BodyLimit } from '../../decide/body-limit.ts';
import { boundaryOf } from './multipart-head.ts';
import type { RequestHead } from '../../upstream/decide/request-head.ts';

export function refuseBody(
  { head, isMultipart }: { readonly head: RequestHead; readonly isMultipart: boolean },
  limit: BodyLimit,
): readonly [ErrorCode, string, string?] | undefined {
  const { contentLength, contentEncoding, contentType = '', chunked } = head;
  if (contentLength !== undefined && contentLength > limit.wholeBytes) return bodyTooLarge(limit);
  if (contentEncoding !== undefined && contentEncoding !== 'identity') {
    return ['request.media_type', 'Send the body without a content encoding: compressed bodies are not supported', 'Content-Encoding'];
  }
  if (!chunked && (contentLength === undefined || contentLength === 0)) {
    return ['request.invalid', isMultipart ? 'Send a multipart body' : 'Send a JSON object as the body'];
  }
  if (!isMultipart || boundaryOf(contentType) !== undefined) return undefined;
  return ['request.invalid', 'Name the boundary of the multipart body in the header "Content-Type", once', 'Content-Type'];
}

export function bodyTooLarge({ bytes, setting }: Pick<BodyLimit, 'bytes' | 'setting'>): readonly [ErrorCode, string] {
  const what = setting === 'SVC_AUDIO_LIMIT' ? 'Send a smaller or shorter file' : 'Send a smaller body';
  return ['request.too_large', `${what}: the limit is ${bytes} bytes ("${setting}")`];
}
