import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { askReadiness as askSpeech } from '../speech/ask-health.ts';
import { judgeSpeech } from '../speech/decide/judge-health.ts';

/** Letters that every model reads in some way. */
const TEXT = 'Hello.';

/** A short text must be spoken, and not as silence. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec }: Pick<SlotContext, 'spec'>,
  signal: AbortSignal,
): Promise<Health> {
  const body = JSON.stringify({ model: spec.model.default, input: TEXT, response_format: 'wav' });
  return await askSpeech(endpoint, io, { path: '/v1/audio/speech', body, judge: judgeSpeech }, signal);
}
