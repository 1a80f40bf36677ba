import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { askHealth, askReadiness as askSpeech } from '../speech/speech-health.ts';
import { judgeSpeech } from '../speech/decide/judge-health.ts';
import { needsSample } from './decide/tts-model.ts';

/** Letters that every model reads in some way. */
const TEXT = 'Hello.';

/**
 * A short text must be spoken, and not as silence. A model that imitates voices is only asked whether it is loaded: the check has no recording
 * of a voice, and what a model makes of another sound says nothing about it.
 */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec, model }: Pick<SlotContext, 'spec' | 'model'>,
  signal: AbortSignal,
): Promise<Health> {
  if (needsSample(model)) return await askHealth(endpoint, io, undefined, signal);
  const body = JSON.stringify({ model: spec.model.default, input: TEXT, response_format: 'wav' });
  return await askSpeech(endpoint, io, { path: '/v1/audio/speech', body, judge: judgeSpeech }, signal);
}
