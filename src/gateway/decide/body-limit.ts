/** How large the body of a request may be: a limit of its own for the routes of audio. Pure. */
import type { Settings } from '../../schema/settings/settings.ts';
import type { InferencePath } from '../route/decide/inference-paths.ts';

export interface BodyLimit {
  /** What a user may set. */
  readonly bytes: number;
  /** The setting, for messages. */
  readonly setting: 'SVC_BODY_LIMIT' | 'SVC_AUDIO_LIMIT';
  /** Bytes of the whole body, with the fields and boundaries around a recording. */
  readonly wholeBytes: number;
}

/** A recording of exactly the limit is accepted: OpenAI's limit is that of the file as well. Fields and boundaries take a few hundred bytes, and a long prompt a few thousand. */
const AROUND_RECORDING_BYTES = 64 * 1024;

export function bodyLimitOf(
  { audio, body }: Pick<InferencePath, 'audio' | 'body'>,
  settings: Pick<Settings, 'SVC_BODY_LIMIT' | 'SVC_AUDIO_LIMIT'>,
): BodyLimit {
  if (audio !== true) return { bytes: settings.SVC_BODY_LIMIT, setting: 'SVC_BODY_LIMIT', wholeBytes: settings.SVC_BODY_LIMIT };
  const bytes = settings.SVC_AUDIO_LIMIT;
  return { bytes, setting: 'SVC_AUDIO_LIMIT', wholeBytes: body === 'multipart' ? bytes + AROUND_RECORDING_BYTES : bytes };
}
