/** Maps a request to the path of the speech server that serves it: it speaks OpenAI's dialect itself. Pure. */
import type { InferPlan, InferRequest } from '../../provider.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';

const CAPABILITY_OF: Readonly<Partial<Record<string, Capability>>> = {
  '/v1/audio/transcriptions': 'transcription',
  '/v1/audio/translations': 'translation',
};

export function inferPath({ capability, path }: InferRequest, capabilities: readonly Capability[]): InferPlan {
  const needed = Object.hasOwn(CAPABILITY_OF, path) ? CAPABILITY_OF[path] : undefined;
  if (needed === capability && capabilities.includes(capability)) return { kind: 'forward', path };
  const message =
    capability === 'translation'
      ? 'Use a model that translates, such as a Whisper of several languages: the model of this slot only writes down what is said'
      : `Send this request to another slot: a slot for speech-to-text does not serve "${path}"`;
  return { kind: 'refuse', message };
}
