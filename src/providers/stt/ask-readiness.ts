import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { askReadiness as askSpeech } from '../speech/speech-health.ts';
import { judgeTranscription } from '../speech/decide/judge-health.ts';
import { PROBE_FORM_TYPE, probeForm } from '../speech/decide/probe-recording.ts';

/** A second of sound must be transcribed without an error. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec }: Pick<SlotContext, 'spec'>,
  signal: AbortSignal,
): Promise<Health> {
  const form = { body: probeForm(spec.model.default), contentType: PROBE_FORM_TYPE };
  return await askSpeech(endpoint, io, { path: '/v1/audio/transcriptions', ...form, judge: judgeTranscription }, signal);
}
