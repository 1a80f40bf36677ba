/** Limits of a request: the size of its body, and the time limits of an attempt. Pure. */
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { RequestHead } from '../../upstream/decide/request-head.ts';
import type { Settings } from '../../../schema/settings/settings.ts';
import type { InferencePath } from './inference-paths.ts';

export interface BodyLimit {
  readonly bytes: number;
  readonly setting: 'SVC_BODY_LIMIT' | 'SVC_AUDIO_LIMIT';
  /** Limit for the whole body, with the fields and boundaries around a recording. */
  readonly wholeBytes: number;
}

interface TranslationTimes {
  readonly now: number;
  /** Last progress of the request: to or from the server, or from the client's body. */
  readonly progressAt: number;
  readonly bodyAt: number | undefined;
  /** When the client was last sent something; undefined before its answer has begun. */
  readonly wroteAt: number | undefined;
  readonly isConnecting: boolean;
}

type PassedLimit =
  /** Another endpoint may answer. */
  { readonly kind: 'lost'; readonly message: string } | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string };

/** Upstreams are local or in the same cluster, where a connection takes milliseconds. */
export const CONNECT_MS = 5000;
const BODY_SILENCE_MS = 60_000;
/** A body may take this long at any rate. */
const BODY_GRACE_MS = 30_000;
/** Afterwards its average counts. The slowest mobile connections are ten times as fast. */
const LEAST_BYTES_PER_SECOND = 1024;
/** Fields and boundaries take a few hundred bytes, a long prompt a few thousand. */
const AROUND_RECORDING_BYTES = 64 * 1024;

/** Says why an incomplete body is too slow. Milliseconds of one clock; `lastAt`: when the last piece arrived. */
export function slowBody({ now, startedAt, lastAt, bytes }: Readonly<Record<'now' | 'startedAt' | 'lastAt' | 'bytes', number>>) {
  if (now - lastAt > BODY_SILENCE_MS) return `The body paused for more than ${BODY_SILENCE_MS / 1000} s: send it without pauses`;
  const expected = ((now - startedAt - BODY_GRACE_MS) / 1000) * LEAST_BYTES_PER_SECOND;
  return bytes < expected ? `The body arrived with less than ${LEAST_BYTES_PER_SECOND} bytes per second: send it faster` : undefined;
}

/** Times in milliseconds of one clock. After the body, only answers to the client count as progress. */
export function passedLimit(
  { now, progressAt, bodyAt, wroteAt, isConnecting }: TranslationTimes,
  settings: Pick<Settings, 'SVC_FIRST_BYTE_TIMEOUT' | 'SVC_STREAM_TIMEOUT'>,
): PassedLimit | undefined {
  const { SVC_FIRST_BYTE_TIMEOUT: firstByteMs, SVC_STREAM_TIMEOUT: silenceMs } = settings;
  if (bodyAt === undefined) return undefined;
  if (isConnecting && now - progressAt > CONNECT_MS)
    return { kind: 'lost', message: `The upstream did not accept a connection within ${CONNECT_MS / 1000} s` };
  if (wroteAt === undefined && now - bodyAt > firstByteMs)
    return timeout(`The upstream did not answer within ${firstByteMs / 1000} s ("SVC_FIRST_BYTE_TIMEOUT")`);
  if (wroteAt !== undefined && now - wroteAt > silenceMs)
    return timeout(`The client was sent nothing, or read nothing, for ${silenceMs / 1000} s ("SVC_STREAM_TIMEOUT")`);
  return undefined;
}

const timeout = (message: string): PassedLimit => ({ kind: 'failed', code: 'upstream.timeout', message });

export function bodyLimitOf(
  path: Pick<InferencePath, 'audio' | 'body'>,
  settings: Pick<Settings, 'SVC_BODY_LIMIT' | 'SVC_AUDIO_LIMIT'>,
): BodyLimit {
  const setting = bodySettingOf(path);
  const bytes = settings[setting];
  return { bytes, setting, wholeBytes: path.audio === true && path.body === 'multipart' ? bytes + AROUND_RECORDING_BYTES : bytes };
}

/** The setting that limits the bodies of a path. */
export function bodySettingOf({ audio }: Pick<InferencePath, 'audio'>): BodyLimit['setting'] {
  return audio === true ? 'SVC_AUDIO_LIMIT' : 'SVC_BODY_LIMIT';
}

export function refuseBody(
  { head, isForm, mayLack = false }: { readonly head: RequestHead; readonly isForm: boolean; readonly mayLack?: boolean | undefined },
  limit: BodyLimit,
): readonly [ErrorCode, string, string?] | undefined {
  const { contentLength, contentEncoding, chunked } = head;
  if (contentLength !== undefined && contentLength > limit.wholeBytes) return bodyTooLarge(limit);
  if (contentEncoding !== undefined && contentEncoding !== 'identity')
    return ['request.media_type', 'Compressed bodies are not supported: send the body without a content encoding', 'Content-Encoding'];
  if (!mayLack && !chunked && (contentLength === undefined || contentLength === 0))
    return ['request.invalid', isForm ? 'The body is missing: send a multipart form' : 'The body is missing: send a JSON object'];
  return undefined;
}

export function bodyTooLarge({ bytes, setting }: Pick<BodyLimit, 'bytes' | 'setting'>): readonly [ErrorCode, string] {
  const [what, fix] = setting === 'SVC_AUDIO_LIMIT' ? ['file', 'smaller or shorter file'] : ['body', 'smaller body'];
  return ['request.too_large', `The ${what} has more than ${bytes} bytes ("${setting}"): send a ${fix}`];
}
